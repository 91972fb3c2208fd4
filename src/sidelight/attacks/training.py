"""Training a network: deterministic with a seed, on a GPU where there is one, with progress shown."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.attacks.networks import Network, build, torch_library
from sidelight.foundation.errors import check_choice, invalid
from sidelight.foundation.progress import track

Array = NDArray[np.float64]
Epoch = Callable[[int], tuple[Array, Array]]
"""From the number of an epoch to its rows (n, features) and secrets (n, targets)."""

_SMALL = 128
"""Up to this width a network is trained on one core."""
_WATCHED = 2048
"""Without held-out rows the history is measured on so many of the others."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn.

    Attributes:
        epochs: how often the attacker's records are seen.
        batch: how many rows a step takes.
        rate: the first step's size; it falls to 0 along a cosine.
        width: of the network's inner layers.
        device: "cpu", "cuda" or None: a GPU where there is one.
    """

    epochs: int = 30
    batch: int = 256
    rate: float = 2e-3
    width: int = 64
    device: str | None = None


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network.

    Attributes:
        predict: from rows (n, features) to secrets (n, targets).
        history: the mean distance after each epoch, on the held-out rows or else on some it was trained on.
        device: where it was trained.
    """

    predict: Callable[[Array], Array]
    history: tuple[float, ...]
    device: str


def choose_device(wanted: str | None) -> str:
    """Return the wanted device, or "cuda" where there is a GPU, else "cpu"."""
    has_gpu = bool(torch_library().cuda.is_available())
    if wanted is None:
        return "cuda" if has_gpu else "cpu"
    check_choice("device", wanted, ("cpu", "cuda"))
    if wanted == "cuda" and not has_gpu:
        raise invalid("device", "'cpu' on a machine without a GPU that torch can use", wanted)
    return wanted


def train(
    model: str, epoch: Epoch, held_out: tuple[Array, Array] | None, schedule: Schedule, seed: int
) -> Trained:
    """Train a network on fresh rows every epoch; with held-out rows the best epoch's weights are kept.

    Args:
        model: the network's name, see `networks`.
        epoch: gives the rows of each epoch.
        held_out: rows and secrets that decide which epoch was the best; None keeps the last.
        schedule: how long and how fast.
        seed: of weights, order and dropout.
    """
    torch = torch_library()
    device = choose_device(schedule.device)
    first = epoch(0)
    with _few_threads(torch, schedule.width), _same_bits(torch), torch.random.fork_rng():
        torch.manual_seed(seed)
        network = build(model, first[0].shape[1], first[1].shape[1], schedule.width)
        network.layers.to(device)
        history = _learn(torch, network, first, epoch, held_out, schedule, device)

    def predict(rows: Array) -> Array:
        with _few_threads(torch, schedule.width):
            return _predict(torch, network, rows, device)

    return Trained(predict, tuple(history), device)


@contextmanager
def _few_threads(torch: Any, width: int) -> Iterator[None]:
    """Use one processor core for a small network: it is faster so, and gives the same bits for any number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if width <= _SMALL else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _same_bits(torch: Any) -> Iterator[None]:
    """Let a GPU add in the same order every time; cuBLAS reads its setting when it is first used."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic = before


def _learn(
    torch: Any,
    network: Network,
    first: tuple[Array, Array],
    epoch: Epoch,
    held_out: tuple[Array, Array] | None,
    schedule: Schedule,
    device: str,
) -> list[float]:
    steps = schedule.epochs * -(-len(first[0]) // schedule.batch)
    optimiser = torch.optim.Adam(network.layers.parameters(), lr=schedule.rate)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    watched = held_out or (first[0][:_WATCHED], first[1][:_WATCHED])
    history: list[float] = []
    best: Any = None
    for number in track(range(schedule.epochs), "training"):
        rows, secrets = (_on(torch, part, device) for part in (epoch(number) if number else first))
        network.layers.train()
        for chosen in torch.randperm(len(rows)).to(device).split(schedule.batch):
            optimiser.zero_grad()
            _distance(torch, network.forward(rows[chosen]), secrets[chosen]).backward()
            optimiser.step()
            falling.step()
        guesses = _predict(torch, network, watched[0], device)
        history.append(float(np.linalg.norm(guesses - watched[1], axis=1).mean()))
        if held_out is not None and history[-1] == min(history):
            best = copy.deepcopy(network.layers.state_dict())
    if best is not None:
        network.layers.load_state_dict(best)
    return history


def _distance(torch: Any, guesses: Any, secrets: Any) -> Any:
    """Return the mean Euclidean distance, a little rounded at 0 so that it has a slope there."""
    return torch.sqrt(((guesses - secrets) ** 2).sum(dim=1) + 1e-8).mean()


def _on(torch: Any, rows: Array, device: str) -> Any:
    return torch.as_tensor(rows, dtype=torch.float32, device=device)


def _predict(torch: Any, network: Network, rows: Array, device: str) -> Array:
    network.layers.eval()
    with torch.no_grad():
        parts = [network.forward(part) for part in _on(torch, rows, device).split(1 << 16)]
        return np.asarray(torch.cat(parts).cpu().numpy(), dtype=np.float64)
