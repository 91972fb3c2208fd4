"""Run every benchmark, one after the other, with nothing else running."""

from importlib import import_module

NAMES = (
    "commands", "leakage", "totals", "mechanisms", "longitudinal", "knowledge", "population", "calibration",
    "collection", "streaming", "labels", "attacks", "reading", "scale",
    "service",
)  # fmt: skip

for name in NAMES:
    import_module(f"bench.{name}").main()
