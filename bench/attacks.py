"""Speed of the attacks: a million records inferred, a network trained, and the GPU beside the CPU.

`python -m bench.attacks` prints the promised times; `python -m bench.attacks --device` trains the same
networks on the CPU and, where there is one, on a GPU, and prints both times and their ratio.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import sidelight as sl
from sidelight.attacks import BayesAttacker, Noise, Numbers, fit_aware, release
from sidelight.attacks.networks import torch_library
from sidelight.attacks.training import Schedule

RECORDS = 1_000_000
ROWS = 50_000
LEVELS = (0.5, 1.0, 2.0, 5.0, 10.0)
NETWORKS = (("mlp", 64, 256), ("mlp", 512, 4096), ("cnn", 128, 4096), ("lstm", 128, 4096))
"""Model, width and batch of the comparison of devices."""


def main(arguments: list[str] | None = None) -> None:
    """Print the times of the Bayes attack and of the MLP attack, or compare devices."""
    if "--device" in (arguments or []):
        _devices()
        return
    print("\nattacks")
    print(f"{'step':<64}{'seconds':>10}{'promised':>10}")
    for mechanism in ("grr", "oue"):
        name = f"Bayes, {RECORDS:,} records, 10 attributes of 10 values, tree, {mechanism}"
        print(f"{name:<64}{_bayes(mechanism):>10.2f}{10:>10}")
    name = f"noise-aware MLP, {ROWS:,} rows, 40 epochs, cpu"
    print(f"{name:<64}{_train('mlp', 'cpu', Schedule(epochs=40, device='cpu')):>10.2f}{60:>10}")


def _bayes(mechanism: str) -> float:
    rng = np.random.default_rng(1)
    rows = {(f"a{(i - 1) // 2}", f"a{i}"): rng.dirichlet(np.ones(10), size=10) for i in range(1, 10)}
    belief = sl.Belief.from_tree(sl.Tree.from_conditionals("a0", rng.dirichlet(np.ones(10)), rows))
    codes = rng.integers(0, 10, size=(RECORDS, 10)).astype(np.uint16)
    reports = release(codes, belief.schema, sl.Plan.uniform(belief.schema, mechanism, 1.0), seed=1)
    start = time.perf_counter()
    BayesAttacker(belief).posterior(reports, "a0").mode()
    return time.perf_counter() - start


def _records(rows: int) -> Numbers:
    rng = np.random.default_rng(2)
    parts = rng.lognormal(10, 1, size=(rows, 5))
    columns = {f"part {i}": parts[:, i] for i in range(5)} | {"total": parts.sum(axis=1)}
    return Numbers.of(columns, logarithmic=list(columns))


def _train(model: str, device: str, schedule: Schedule) -> float:
    own = _records(ROWS)
    start = time.perf_counter()
    found = fit_aware(own, ["total"], Noise(), LEVELS, model, schedule=schedule)
    assert found.device == device
    return time.perf_counter() - start


def _devices() -> None:
    """Train small and large networks on each device; the first, short training warms the device up."""
    torch = torch_library()
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    names = ", ".join(torch.cuda.get_device_name(0) if device == "cuda" else "cpu" for device in devices)
    print(f"training on {ROWS:,} rows, 3 epochs: {names}")
    print(f"{'network':<40}" + "".join(f"{device + ' s':>12}" for device in devices) + f"{'speed-up':>12}")
    for model, width, batch in NETWORKS:
        seconds = []
        for device in devices:
            _train(model, device, Schedule(epochs=1, batch=batch, width=width, device=device))
            schedule = Schedule(epochs=3, batch=batch, width=width, device=device)
            seconds.append(_train(model, device, schedule))
        shown = "".join(f"{value:>12.2f}" for value in seconds)
        ratio = f"{seconds[0] / seconds[1]:>12.1f}" if len(seconds) > 1 else f"{'no GPU':>12}"
        print(f"{f'{model}, width {width}, batches of {batch}':<40}{shown}{ratio}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
