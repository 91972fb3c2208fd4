"""Run every benchmark, one after the other, with nothing else running."""

from importlib import import_module

for name in ("commands", "leakage", "mechanisms", "knowledge", "calibration"):
    import_module(f"bench.{name}").main()
