"""What the questions of a label collection's round rest on: the adversary's belief, and the tree so far."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.strict import Strict
from sidelight.labels import Omega
from sidelight.learning.decision_tree import DecisionTree, NodeFile

OMEGA = (
    "a number above 0 and at most 1, 'learnt', or a list of tables with `curve` (numbers), `source` and "
    "`confidence`, one for each attribute"
)
"""What a task may say that the adversary believes."""
MOST_SOURCE = 1000
"""How long the words may be that say where a belief comes from."""


def worded(wanted: str) -> WrapValidator:
    """Return what words the refusal of a field that may be one of several things, of which none fits."""

    def check(value: object, read: ValidatorFunctionWrapHandler) -> object:
        try:
            return read(value)
        except ValidationError as error:
            said = f"must be {wanted}{_within(error)}, got {reprlib.repr(value)}"
            raise PydanticCustomError("kind", "{said}", {"said": said}) from None

    return WrapValidator(check)


def _within(error: ValidationError) -> str:
    """Return what is wrong within a table of a list, and where; nothing if there is no such table."""
    for fault in error.errors():
        _, *place = fault["loc"] or ("",)  # what it could have been comes first
        if len(place) > 1:
            return f" ({'.'.join(map(str, place))}: {fault['msg']})"
    return ""


class OmegaFile(Strict):
    """The belief about one attribute, as documents have it."""

    curve: list[float]
    source: str
    confidence: float | None

    def made(self) -> Omega:
        """Return the belief."""
        if len(self.source) > MOST_SOURCE:
            raise InputError(
                f"`source` of an omega has at most {MOST_SOURCE} characters, got {len(self.source)}."
            )
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise invalid("confidence", "between 0 and 1", self.confidence)
        return Omega(np.array(self.curve, dtype=np.float64), self.source, self.confidence)


@dataclass(frozen=True, eq=False)
class Basis:
    """The omegas of kHR, one for each attribute, and the tree that the round decides about, if any."""

    omegas: tuple[Omega, ...]
    tree: DecisionTree | None = None

    def to_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        tree = None if self.tree is None else self.tree.to_data()
        return {"omegas": omegas_data(self.omegas), "tree": tree}


class BasisFile(Strict):
    """A basis as documents have it."""

    omegas: list[OmegaFile]
    tree: list[NodeFile] | None

    def made(self) -> Basis:
        """Return the basis, after checking that the tree is one."""
        tree = None if self.tree is None else DecisionTree.from_data(self.tree)
        return Basis(tuple(item.made() for item in self.omegas), tree)


def omegas_data(omegas: Sequence[Omega]) -> list[dict[str, Any]]:
    """Return beliefs as plain data."""
    return [{**asdict(omega), "curve": omega.curve.tolist()} for omega in omegas]
