"""Run every benchmark, one after the other, with nothing else running; then say what is below numpy."""

import time
from importlib import import_module
from pathlib import Path

from bench.timing import summary

ABSENT = (
    "__init__", "__main__", "timing", "frequency_peers", "devices", "estimates", "pairs", "learning",
    "service_millions", "studio",
)  # fmt: skip
"""Not benchmarks, one for a machine with a GPU, grids of errors and millions of uploads, which take long, and
one that needs a browser."""


def main() -> None:
    """Run them all and print how long it took."""
    start = time.perf_counter()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in ABSENT:
            import_module(f"bench.{path.stem}").main()
    summary()
    print(f"all benchmarks: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
