"""Whether estimates will be of any use: the error to expect beside that of guessing, and people needed.

A guess needs no collection: that all values of an attribute are equally common, or what a public prior says.
Estimates that are further from the truth than a guess are worse than none. Errors here are root-mean-square
errors over an attribute's values, "right to 3 percentage points" in words, about the people who report.

Where the true frequencies are not known, every error is the mean over all frequencies there are, each equally
likely (a flat Dirichlet distribution); the noise is then taken at uniform frequencies, on which it hardly
depends: the summed variance of a + b f + c f^2 changes with the frequencies by c sum f^2 alone, c = -1/n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sidelight.estimation.outlook import Outlook
from sidelight.estimation.simulated import Frequencies
from sidelight.foundation.errors import InputError, check_number, check_whole
from sidelight.foundation.files import json_number
from sidelight.foundation.html import html_table, listed
from sidelight.foundation.numbers import of_people, points, whole
from sidelight.protocols.protocol import Design

Verdict = Literal["useful", "hardly better than guessing", "worse than guessing"]
USEFUL = 0.5
"""Estimates are called useful whose error is at most this share of the error of the best guess."""
WITHIN = 0.01
"""The precision that people are counted for unless another one is asked for: one percentage point."""
SURE = 0.95
"""The probability with which no value is further off than the largest error."""
RIGHT_TO = (
    "Right to x percentage points, or off by x, means that the root-mean-square error over the values is x, "
    "among the people who report."
)
_EVEN = 0.01
"""Values are called about equally common where the uniform guess is right to a percentage point."""
EXACT = 1e-9
"""Smaller errors are rounding: no noise is left, and no guess could be better."""


@dataclass(frozen=True)
class AttributeUse:
    """What to expect of one attribute's estimates; all errors are root-mean-square errors over its values.

    Attributes:
        values: how many values it has.
        error: that of the estimator "best", which `estimate` uses unless another one is asked for.
        unbiased_error: that of the unbiased estimates.
        largest_error: with 95 % probability none of its values is further off, by "best".
        uniform_error: that of calling all its values equally common.
        prior_error: that of a public prior; None where there is none.
    """

    attribute: str
    values: int
    error: float
    unbiased_error: float
    largest_error: float
    uniform_error: float
    prior_error: float | None = None

    @property
    def guess_error(self) -> float:
        """The error of the better guess."""
        return min(self.uniform_error, math.inf if self.prior_error is None else self.prior_error)

    @property
    def verdict(self) -> Verdict:
        """Whether the estimates beat the guess."""
        return _verdict(self.error, self.guess_error)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; infinity becomes a string."""
        return {name: _plain(value) for name, value in vars(self).items()} | {"verdict": self.verdict}


def _plain(value: Any) -> Any:
    return json_number(value) if isinstance(value, float) else value


def _verdict(error: float, guess: float) -> Verdict:
    if error < EXACT:
        return "useful"
    if error >= guess:
        return "worse than guessing"
    return "useful" if error <= USEFUL * guess else "hardly better than guessing"


@dataclass(frozen=True)
class Usefulness:
    """What to expect of a collection's estimates before it is made, beside guessing.

    Attributes:
        attributes: one by one.
        people: how many report.
        is_known: whether the errors are about given frequencies; otherwise, of some or all attributes, they
            are means over all frequencies there are.
    """

    attributes: tuple[AttributeUse, ...]
    people: int
    is_known: bool

    def __getitem__(self, name: str) -> AttributeUse:
        for item in self.attributes:
            if item.attribute == name:
                return item
        raise InputError(f"there is no attribute {name!r} among those that are collected.")

    @property
    def error(self) -> float:
        """The error of "best" over all attributes: the root of the mean of their squared errors."""
        return _together([item.error for item in self.attributes])

    @property
    def unbiased_error(self) -> float:
        """The error of the unbiased estimates over all attributes."""
        return _together([item.unbiased_error for item in self.attributes])

    @property
    def guess_error(self) -> float:
        """The error of the best guess over all attributes."""
        return _together([item.guess_error for item in self.attributes])

    @property
    def verdict(self) -> Verdict:
        """Whether the estimates as a whole beat guessing."""
        return _verdict(self.error, self.guess_error)

    @property
    def beats_guessing(self) -> bool:
        """Whether the estimates as a whole beat guessing."""
        return self.verdict != "worse than guessing"

    @property
    def worse(self) -> tuple[str, ...]:
        """The attributes that a guess would be closer to."""
        return tuple(item.attribute for item in self.attributes if item.verdict == "worse than guessing")

    @property
    def even(self) -> tuple[str, ...]:
        """Those of them whose values happen to be about equally common: a guess is right already."""
        return tuple(name for name in self.worse if self[name].uniform_error <= _EVEN)

    @property
    def has_prior(self) -> bool:
        """Whether a guess could be made from a public prior, of some attribute at least."""
        return any(item.prior_error is not None for item in self.attributes)

    def summary(self) -> str:
        """Say in few words what to expect, what is worst first."""
        if math.isinf(self.error):
            return "Such reports do not determine every frequency, however many people send them"
        if not self.beats_guessing:
            return "These estimates would be worse than guessing"
        if self.worse:
            count = f"{len(self.worse)} of {len(self.attributes)} attributes"
            return f"For {count} these estimates would be worse than guessing"
        if self.verdict == "hardly better than guessing":
            return "These estimates would hardly be better than guessing"
        return f"Frequencies right to {points(self.error)}"

    def headline(self) -> str:
        """Say the same in a sentence, with the figures."""
        people = f"with {of_people(whole(self.people))}"
        figures = f"{points(self.error)} {people}, a guess"
        if math.isinf(self.error):
            return f"{self.summary()}."
        if not self.beats_guessing:
            return f"{self.summary()}: off by {figures} by {points(self.guess_error)}."
        if self.worse:
            rest = f"overall they are right to {figures} to {points(self.guess_error)}"
            return f"{self.summary()} ({listed(self.worse, 4)}); {rest}."
        if self.verdict == "hardly better than guessing":
            return f"{self.summary()}: right to {figures} to {points(self.guess_error)}."
        return f"{self.summary()} {people}, a guess to {points(self.guess_error)}."

    def words(self, name: str) -> str:
        """Say what to expect of one attribute: "Frequencies of income right to 3 percentage points ..."."""
        item = self[name]
        people = f"with {of_people(whole(self.people))}"
        if math.isinf(item.error):
            return f"Such reports do not determine the frequencies of {name}."
        right = f"Frequencies of {name} right to {points(item.error)} {people}"
        return f"{right}, {item.verdict}: a guess is right to {points(item.guess_error)}."

    def notes(self) -> list[str]:
        """Say what to expect, beginning with the worst, and what the words mean."""
        notes = [self.headline()]
        worst = max(self.attributes, key=lambda item: item.largest_error)
        if self.beats_guessing:
            off = f"none of its values off by more than {points(worst.largest_error)}"
            notes.append(f"Least certain is {worst.attribute}: with 95 % probability, {off}.")
        if self.even:
            known = "are about equally common, so a guess is right already and little could be learnt"
            notes.append(f"The values of {listed(self.even, 4)} {known}.")
        prior = ", or the prior where that is closer" if self.has_prior else ""
        guess = f"that all values are equally common{prior}"
        unknown = " Where frequencies are unknown, errors are means over all that there could be."
        return [*notes, RIGHT_TO, f"The guess is {guess}.{'' if self.is_known else unknown}"]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; infinity becomes a string."""
        figures = {
            "error": self.error,
            "unbiased_error": self.unbiased_error,
            "guess_error": self.guess_error,
        }
        return {
            "verdict": self.verdict, "headline": self.headline(), "people": self.people,
            "is_known": self.is_known, **{name: json_number(value) for name, value in figures.items()},
            "attributes": [
                item.to_dict() | {"words": self.words(item.attribute)} for item in self.attributes
            ],
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Usefulness({self.headline()})"

    def _repr_html_(self) -> str:
        titles = ("attribute", "values", "error", "unbiased", "largest", "guess", "verdict")
        rows = [
            [item.attribute, item.values, item.error, item.unbiased_error, item.largest_error,
             item.guess_error, item.verdict]
            for item in self.attributes
        ]  # fmt: skip
        return html_table(self.headline(), titles, rows)


def _together(errors: list[float]) -> float:
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


def usefulness(
    design: Design, people: int, frequencies: Frequencies | None = None, *, prior: Frequencies | None = None
) -> Usefulness:
    """Predict the error of a collection's estimates, and compare it with that of guessing.

    Args:
        design: a protocol, or a two-phase design; `protocols.planned` makes one of a plan.
        people: how many report.
        frequencies: the true ones, of a table for example, by attribute; for attributes without any, errors
            are means over all frequencies there are.
        prior: public frequencies that a guess could be made from instead of even ones, by attribute.
    """
    check_whole("people", people, at_least=1)
    return _with(Outlook.of(design, frequencies, prior), people)


def _with(outlook: Outlook, people: int) -> Usefulness:
    """Return what to expect with so many people."""
    schema, variances = outlook.design.schema, outlook.variances(people)
    errors, items = outlook.errors(people, variances), []
    for item in schema:
        plain, own = math.sqrt(float(variances[item.name].mean())), errors.get(item.name)
        best = math.inf if own is None else math.sqrt(float((own**2).mean()))
        most = math.inf if own is None else float(np.quantile(np.abs(own).max(axis=-1), SURE))
        items.append(AttributeUse(item.name, item.size, best, plain, most, *outlook.guesses[item.name]))
    return Usefulness(tuple(items), people, len(outlook.known) == len(schema))


def people_needed(
    design: Design, precision: float, frequencies: Frequencies | None = None, *, each: bool = True
) -> int | None:
    """Return how many people must report for a precision, within 1 %; None where no number is enough.

    It is a root-mean-square error, 0.01 for one percentage point, that of every attribute, or without `each`
    that over all attributes together.
    """
    check_number("precision", precision, above=0)

    outlook = Outlook.of(design, frequencies, None)

    def excess(people: int) -> float:
        found = _with(outlook, people)
        worst = max(item.error for item in found.attributes) if each else found.error
        return _logarithm(worst / precision)

    return outlook.least_people(excess, precision)


def people_for_use(
    design: Design, frequencies: Frequencies | None = None, *, prior: Frequencies | None = None,
    each: bool = False,
) -> int | None:  # fmt: skip
    """Return how many people make estimates useful as a whole, or `each` attribute's; None where none do.

    Useful are estimates with at most half the error of the best guess. A guess that is exactly right cannot
    be beaten.
    """
    outlook = Outlook.of(design, frequencies, prior)
    guesses = [min(even, math.inf if public is None else public) for even, public in outlook.guesses.values()]
    target = USEFUL * (min(guesses) if each else _together(guesses))

    def excess(people: int) -> float:
        found = _with(outlook, people)
        judged = found.attributes if each else (found,)
        return max(_logarithm(item.error / (USEFUL * item.guess_error)) for item in judged)

    return outlook.least_people(excess, target) if target > 0 else None


def _logarithm(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf
