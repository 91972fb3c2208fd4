"""The five networks of the reconstruction paper, section 4.1, and the plain learners to measure them against.

The paper names the layers but not their widths. A row is a sequence of attributes for the networks that
want one. Training is deterministic with a seed, and on a GPU where there is one.

Of the plain learners, scikit-learn's, gradient-boosted trees are the strong one. Imputation fills the secret
in from the attacker's records that look most like the release. It is a baseline of the paper, whose own
source (Kabir, Craig, Mehnaz 2025) is not followed in detail: the reading here is the plain one, the mean of
the secret over the nearest clean records.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import check_choice, invalid
from sidelight.foundation.modules import require
from sidelight.foundation.progress import track

Rows = tuple[Array, Array]
"""Rows (n, features) and their secrets (n, targets)."""
Epoch = Callable[[int], Rows]
"""From the number of an epoch to its rows and secrets."""
_SMALL = 128
"""Up to this width a network is trained on one core."""
_FEWEST = 10
"""A value with fewer records is not learnt: the split that stops training must have it on both sides."""
_WATCHED = 2048
"""How many training rows the history is measured on where none are held out."""


@dataclass(frozen=True, eq=False)
class Network:
    """The torch layers that hold the weights, and the way from (rows, features) to (rows, targets)."""

    layers: Any
    forward: Callable[[Any], Any]

    def predict(self, rows: Array, device: str) -> Array:
        """Return the secrets of rows, some at a time."""
        torch = torch_library()
        self.layers.eval()
        with torch.no_grad():
            parts = [self.forward(part) for part in _on(rows, device).split(1 << 16)]
            return np.asarray(torch.cat(parts).cpu().numpy(), dtype=np.float64)


def torch_library() -> Any:
    """Return torch, or say which extra brings it."""
    return require("torch", "neural", "a neural reconstruction attack")


def build(model: str, features: int, targets: int, width: int = 64) -> Network:
    """Return a fresh network of so many numbers in and out; its weights come from torch's random state."""
    check_choice("model", model, MODELS)
    return _MAKERS[model](torch_library().nn, features, targets, width)


def _mlp(nn: Any, features: int, targets: int, width: int) -> Network:
    """Five dense layers."""
    inner = [part for _ in range(3) for part in (nn.Linear(width, width), nn.ReLU())]
    layers = nn.Sequential(nn.Linear(features, width), nn.ReLU(), *inner, nn.Linear(width, targets))
    return Network(layers, layers)


def _cnn(nn: Any, features: int, targets: int, width: int) -> Network:
    """Two convolutions along the attributes, then a dense layer."""
    layers = nn.Sequential(
        nn.Unflatten(1, (1, features)),
        nn.Conv1d(1, width // 2, 3, padding=1),
        nn.ReLU(),
        nn.Conv1d(width // 2, width // 2, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(width // 2 * features, targets),
    )
    return Network(layers, layers)


def _recurrent(nn: Any, _features: int, targets: int, width: int, *, has_memory: bool) -> Network:
    """A recurrent layer along the attributes, then a dense layer on its last state.

    One with long short-term memory has dropout between them.
    """
    layer = (nn.LSTM if has_memory else nn.RNN)(1, width, batch_first=True)
    layers = nn.ModuleList([layer, nn.Dropout(0.2 if has_memory else 0.0), nn.Linear(width, targets)])

    def forward(rows: Any) -> Any:
        states, _ = layers[0](rows.unsqueeze(2))
        return layers[2](layers[1](states[:, -1]))

    return Network(layers, forward)


def _attention(nn: Any, features: int, targets: int, width: int) -> Network:
    """Weights for the attributes computed from the row, the weighted row, then two dense layers."""
    layers = nn.ModuleList(
        [nn.Linear(features, features), nn.Linear(2 * features, width), nn.ReLU(), nn.Linear(width, targets)]
    )

    def forward(rows: Any) -> Any:
        weights = layers[0](rows).softmax(dim=1)
        seen = torch_library().cat([rows, weights * rows], dim=1)
        return layers[3](layers[2](layers[1](seen)))

    return Network(layers, forward)


_MAKERS: dict[str, Callable[..., Network]] = {
    "mlp": _mlp,
    "cnn": _cnn,
    "rnn": partial(_recurrent, has_memory=False),
    "lstm": partial(_recurrent, has_memory=True),
    "attention": _attention,
}
MODELS = tuple(_MAKERS)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn.

    Attributes:
        epochs: how often the attacker's records are seen.
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
    """A trained network, or another learner: from rows (n, features) to secrets (n, targets).

    A network's history is the mean distance after each epoch, on held-out rows or else on some of its own.
    """

    predict: Callable[[Array], Array]
    history: tuple[float, ...] = ()
    device: str = "cpu"


def choose_device(wanted: str | None) -> str:
    """Return the wanted device, or "cuda" where there is a GPU, else "cpu"."""
    has_gpu = bool(torch_library().cuda.is_available())
    if wanted is None:
        return "cuda" if has_gpu else "cpu"
    check_choice("device", wanted, ("cpu", "cuda"))
    if wanted == "cuda" and not has_gpu:
        raise invalid("device", "'cpu' on a machine without a GPU that torch can use", wanted)
    return wanted


def train(model: str, epoch: Epoch, held_out: Rows | None, schedule: Schedule, seed: int) -> Trained:
    """Train one of `MODELS` on fresh rows every epoch.

    Held-out rows and secrets decide which epoch's weights are kept; without any the last ones are. The seed
    is that of weights, order and dropout.
    """
    torch = torch_library()
    device = choose_device(schedule.device)
    first = epoch(0)
    with _same_bits(schedule.width), torch.random.fork_rng():
        torch.manual_seed(seed)
        network = build(model, first[0].shape[1], first[1].shape[1], schedule.width)
        network.layers.to(device)
        history = _learn(network, epoch, first, held_out, schedule)

    def predict(rows: Array) -> Array:
        with _same_bits(schedule.width):
            return network.predict(rows, device)

    return Trained(predict, tuple(history), device)


@contextmanager
def _same_bits(width: int) -> Iterator[None]:
    """Add in the same order every time, on a GPU and on any number of cores.

    A small network uses one core, which is faster too. What else is set for cuDNN stays as it is.
    """
    torch = torch_library()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # which cuBLAS reads when it is first used
    cores, is_ordered = torch.get_num_threads(), torch.backends.cudnn.deterministic
    torch.set_num_threads(1 if width <= _SMALL else cores)
    torch.backends.cudnn.deterministic = True
    try:
        yield
    finally:
        torch.set_num_threads(cores)
        torch.backends.cudnn.deterministic = is_ordered


def _learn(
    network: Network, epoch: Epoch, first: Rows, held_out: Rows | None, schedule: Schedule
) -> list[float]:
    """Train, and return the mean distance after each epoch; the best epoch's weights stay."""
    torch, device = torch_library(), choose_device(schedule.device)
    steps = schedule.epochs * -(-len(first[0]) // schedule.batch)
    optimiser = torch.optim.Adam(network.layers.parameters(), lr=schedule.rate)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    watched = held_out or (first[0][:_WATCHED], first[1][:_WATCHED])
    history: list[float] = []
    best = None
    for number in track(range(schedule.epochs), "training"):
        rows, secrets = (_on(part, device) for part in (epoch(number) if number else first))
        network.layers.train()
        for chosen in torch.randperm(len(rows)).to(device).split(schedule.batch):
            optimiser.zero_grad()
            difference = network.forward(rows[chosen]) - secrets[chosen]
            # The mean Euclidean distance, a little rounded at 0 so that it has a slope there.
            torch.sqrt((difference**2).sum(dim=1) + 1e-8).mean().backward()
            optimiser.step()
            falling.step()
        guesses = network.predict(watched[0], device)
        history.append(float(np.linalg.norm(guesses - watched[1], axis=1).mean()))
        if held_out is not None and history[-1] == min(history):
            best = copy.deepcopy(network.layers.state_dict())
    if best is not None:
        network.layers.load_state_dict(best)
    return history


def _on(rows: Array, device: str) -> Any:
    torch = torch_library()
    return torch.as_tensor(rows, dtype=torch.float32, device=device)


def fit_regression(rows: Array, secrets: Array, seed: int) -> Callable[[Array], Array]:
    """Return the function from rows to the secrets, each target on its own, with the least distance.

    It is trained on rows (n, features) and the secrets (n, targets) of the same records; the seed is for the
    split that stops training.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    make = partial(HistGradientBoostingRegressor, loss="absolute_error", max_iter=300, learning_rate=0.05)
    with _one_thread():
        models = [make(early_stopping=True, random_state=seed).fit(rows, column) for column in secrets.T]

    def predict(released: Array) -> Array:
        with _one_thread():
            return np.stack([model.predict(released) for model in models], axis=1)

    return predict


def fit_classification(rows: Array, codes: Positions, size: int, seed: int) -> Callable[[Array], Array]:
    """Return the function from rows (n, features) to the probability of each of so many codes.

    The seed is that of a regression.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    common = np.bincount(codes)[codes] >= _FEWEST
    stops = bool(common.any())
    kept = common if stops else np.ones_like(common)
    model = HistGradientBoostingClassifier(
        max_iter=300 if stops else 30, learning_rate=0.1, max_leaf_nodes=15, early_stopping=stops,
        random_state=seed,
    )  # fmt: skip
    with _one_thread():
        model.fit(rows[kept], codes[kept])

    def predict(released: Array) -> Array:
        out = np.zeros((len(released), size))
        with _one_thread():
            out[:, model.classes_] = model.predict_proba(released)
        return out

    return predict


def fit_imputation(rows: Array, secrets: Array) -> Callable[[Array], Array]:
    """Return the function from released rows to the mean secret of the nearest clean ones.

    It has the attacker's clean records without the secret, (n, attributes), and their secrets (n, targets).
    """
    from sklearn.neighbors import KNeighborsRegressor

    model = KNeighborsRegressor(n_neighbors=min(10, len(rows))).fit(rows, secrets)
    return lambda released: np.asarray(model.predict(released), dtype=np.float64)


def _one_thread() -> AbstractContextManager[object]:
    """Use one core inside: on a busy machine threads that wait for each other cost many times their gain."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="openmp")
    return limits
