"""Adversary: whose value is attacked, and which values are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidelight.foundation.errors import InputError, unknown

ADVERSARY_FIX = "Adversary(target, known) makes one."


@dataclass(frozen=True)
class Adversary:
    """Someone who attacks one attribute and knows the values of some others (PDP, section III-A).

    >>> Adversary("income", ("age",)).unknown(("age", "sex", "income"))
    ('sex',)

    Attributes:
        target: the attribute under attack.
        known: the attributes whose values are known; the strongest adversary knows all others, the weakest
            none.
    """

    target: str
    known: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given: object = self.known
        if isinstance(given, str):
            raise InputError(f"`known` must be a list of attributes, got the text {given!r}.")
        object.__setattr__(self, "known", tuple(self.known))
        if self.target in self.known:
            raise InputError(
                f"the target {self.target!r} is among the known attributes; an adversary who knows it "
                "has nothing to learn, leave it out."
            )
        if len(set(self.known)) != len(self.known):
            twice = next(name for name in self.known if self.known.count(name) > 1)
            raise InputError(f"the known attribute {twice!r} is listed twice.")

    @classmethod
    def strongest(cls, target: str, names: Sequence[str]) -> Adversary:
        """Return the one who knows everything but the target."""
        return cls(target, tuple(name for name in names if name != target))

    def check(self, names: Sequence[str]) -> None:
        """Raise unless all attributes exist."""
        for name in (self.target, *self.known):
            if name not in names:
                raise unknown("attribute", name, names)

    def unknown(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the attributes that are neither known nor attacked."""
        taken = {self.target, *self.known}
        return tuple(name for name in names if name not in taken)

    def __str__(self) -> str:
        return f"{self.target} knowing {', '.join(self.known) or 'nothing'}"


def adversary_of(names: Sequence[str], target: int, mask: int) -> Adversary:
    """Return the adversary whose known attributes are the bits of `mask`."""
    return Adversary(names[target], tuple(name for bit, name in enumerate(names) if mask >> bit & 1))


def mask_of(names: Sequence[str], known: Sequence[str]) -> int:
    """Return the known attributes as bits, the first attribute the lowest."""
    places = {name: bit for bit, name in enumerate(names)}
    return sum(1 << places[name] for name in known)
