"""The five networks of the reconstruction paper, section 4.1, for rows of attributes.

The paper names the layers but not their widths. A row is a sequence of attributes for the networks that
want one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sidelight.foundation.errors import check_choice
from sidelight.foundation.modules import require

MODELS = ("mlp", "cnn", "rnn", "lstm", "attention")


@dataclass(frozen=True, eq=False)
class Network:
    """Layers and the way a row takes through them.

    Attributes:
        layers: the torch module list that holds the weights.
        forward: from (rows, features) to (rows, targets).
    """

    layers: Any
    forward: Callable[[Any], Any]


def torch_library() -> Any:
    """Return torch, or say which extra brings it."""
    return require("torch", "neural", "a neural reconstruction attack")


def build(model: str, features: int, targets: int, width: int = 64) -> Network:
    """Return a fresh network; its weights come from torch's current random state.

    Args:
        model: "mlp", "cnn", "rnn", "lstm" or "attention".
        features: how many numbers a row has.
        targets: how many numbers are predicted.
        width: of the inner layers.
    """
    check_choice("model", model, MODELS)
    nn = torch_library().nn
    makers = {"mlp": _mlp, "cnn": _cnn, "rnn": _rnn, "lstm": _lstm, "attention": _attention}
    return makers[model](nn, features, targets, width)


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


def _rnn(nn: Any, _features: int, targets: int, width: int) -> Network:
    """A simple recurrent layer along the attributes, then a dense layer on its last state."""
    return _recurrent(nn, nn.RNN(1, width, batch_first=True), 0.0, targets, width)


def _lstm(nn: Any, _features: int, targets: int, width: int) -> Network:
    """A long short-term memory layer with dropout, then a dense layer on its last state."""
    return _recurrent(nn, nn.LSTM(1, width, batch_first=True), 0.2, targets, width)


def _recurrent(nn: Any, layer: Any, dropout: float, targets: int, width: int) -> Network:
    layers = nn.ModuleList([layer, nn.Dropout(dropout), nn.Linear(width, targets)])

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
