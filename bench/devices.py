"""Training speed of the attackers' networks on the CPU and on a GPU.

Needs numpy and torch only: a machine that is lent for its GPU seldom has the rest of the house. So the
front of `sidelight.attacks`, which brings in every attack, is left out, and the rows are made here.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sidelight.attacks.learners import Schedule, Trained

ROWS = 50_000
EPOCHS = 3
NETWORKS = (("mlp", 64, 256), ("mlp", 512, 4096), ("cnn", 128, 4096), ("lstm", 128, 4096))
"""Model, width and batch of each comparison."""


def main() -> None:
    """Train small and large networks on each device and print the seconds and their ratio."""
    _leave_out_the_front()
    from sidelight.attacks.learners import torch_library

    torch = torch_library()
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    print(f"training on {ROWS:,} rows, {EPOCHS} epochs, torch {torch.__version__}")
    print(f"cpu: {os.cpu_count()} cores, {torch.get_num_threads()} threads for wide networks")
    print(f"gpu: {torch.cuda.get_device_name(0) if len(devices) > 1 else 'no GPU was found'}")
    heads = [*(f"{device} s" for device in devices), "speed-up", "same bits"]
    print(f"{'network':<40}" + "".join(f"{head:>12}" for head in heads))
    for model, width, batch in NETWORKS:
        trained = [_measure(model, width, batch, device) for device in devices]
        seconds = [taken for taken, _ in trained]
        ratio = f"{seconds[0] / seconds[1]:.1f}" if len(seconds) > 1 else "no GPU"
        again = "yes" if all(same for _, same in trained) else "no"
        cells = [*(f"{taken:.2f}" for taken in seconds), ratio, again]
        name = f"{model}, width {width}, batches of {batch}"
        print(f"{name:<40}" + "".join(f"{cell:>12}" for cell in cells), flush=True)


def _leave_out_the_front() -> None:
    """Let single modules of the attacks be imported without all that the package's front imports."""
    import sidelight

    if "sidelight.attacks" not in sys.modules:
        package = ModuleType("sidelight.attacks")
        package.__path__ = [str(Path(str(sidelight.__file__)).parent / "attacks")]
        sys.modules["sidelight.attacks"] = package


def _measure(model: str, width: int, batch: int, device: str) -> tuple[float, bool]:
    """Return the seconds of a training, and whether two trainings from one seed agree in every bit.

    The first training also wakes the device up, so only the second is timed.
    """
    from sidelight.attacks.learners import Schedule

    schedule = Schedule(epochs=EPOCHS, batch=batch, width=width, device=device)
    first = _train(model, schedule)
    start = time.perf_counter()
    second = _train(model, schedule)
    return time.perf_counter() - start, first.history == second.history


def _train(model: str, schedule: Schedule) -> Trained:
    from sidelight.attacks.learners import train

    rng = np.random.default_rng(2)
    parts = rng.normal(size=(ROWS, 5))
    noisy = np.column_stack([parts, parts.sum(axis=1)]) + rng.laplace(size=(ROWS, 6))
    secrets: Any = parts.sum(axis=1, keepdims=True)
    return train(model, lambda _: (noisy, secrets), (noisy[:8192], secrets[:8192]), schedule, seed=1)


if __name__ == "__main__":
    main()
