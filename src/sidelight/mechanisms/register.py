"""The register of the mechanisms that exist, and how they are made by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pkgutil import resolve_name
from typing import Any

from sidelight.foundation.errors import check_choice
from sidelight.mechanisms.mechanism import Mechanism

MECHANISMS: dict[str, str] = {
    "grr": "sidelight.mechanisms.grr:RandomisedResponse",
    "sue": "sidelight.mechanisms.unary:SymmetricUnary",
    "oue": "sidelight.mechanisms.unary:OptimisedUnary",
    "rappor": "sidelight.mechanisms.longitudinal.rappor:Rappor",
    "blh": "sidelight.mechanisms.hashing:BinaryHashing",
    "olh": "sidelight.mechanisms.hashing:OptimisedHashing",
    "she": "sidelight.mechanisms.histogram:SummedHistogram",
    "the": "sidelight.mechanisms.histogram:ThresholdedHistogram",
    "ss": "sidelight.mechanisms.subset:SubsetSelection",
    "exp": "sidelight.mechanisms.exponential:Exponential",
    "hadamard": "sidelight.mechanisms.hadamard:HadamardResponse",
    "laplace": "sidelight.mechanisms.numeric:Laplace",
    "gaussian": "sidelight.mechanisms.numeric:Gaussian",
    "discrete-laplace": "sidelight.mechanisms.numeric:DiscreteLaplace",
    "interval": "sidelight.mechanisms.exponential:Interval",
    "l-grr": "sidelight.mechanisms.longitudinal.response:LongitudinalRandomisedResponse",
    "l-sue": "sidelight.mechanisms.longitudinal.unary:LongitudinalSymmetric",
    "l-oue": "sidelight.mechanisms.longitudinal.unary:LongitudinalOptimised",
    "l-osue": "sidelight.mechanisms.longitudinal.unary:LongitudinalOptimisedSymmetric",
    "loloha": "sidelight.mechanisms.longitudinal.response:LongitudinalHashing",
    "dbitflip": "sidelight.mechanisms.longitudinal.bit_flips:BitFlips",
    "identity": "sidelight.mechanisms.plain:Identity",
    "withheld": "sidelight.mechanisms.plain:Withheld",
    "any": "sidelight.mechanisms.plain:Unspecified",
}
"""Every mechanism's name and where its class is; a class is loaded when it is asked for."""


def create(name: str, size: int, epsilon: float | None = None, **parameters: Any) -> Mechanism:
    """Return the mechanism called `name` for `size` values at nominal budget `epsilon`.

    >>> round(create("grr", 4, 1.0).epsilon, 9)
    1.0
    >>> create("withheld", 4).epsilon
    0.0
    """
    return make(name, size, epsilon, parameters)


def make(name: str, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism called `name`; like `create`, with the parameters as one mapping."""
    return mechanism_class(name).from_plan(size, epsilon, parameters)


def mechanism_class(name: str) -> type[Mechanism]:
    """Return the class of the mechanism called `name`."""
    check_choice("mechanism", name, MECHANISMS)
    return _loaded(MECHANISMS[name])


@cache
def _loaded(place: str) -> type[Mechanism]:
    found: type[Mechanism] = resolve_name(place)
    return found
