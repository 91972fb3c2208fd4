"""What to say about a collection before it is made: its use, and what would make it more useful."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sidelight.estimation.affordable import Affordable, affordable
from sidelight.estimation.expected_error import Frequencies
from sidelight.estimation.usefulness import WITHIN, Usefulness, people_for_use, people_needed, usefulness
from sidelight.foundation.errors import check_number
from sidelight.foundation.html import listed
from sidelight.foundation.numbers import at_least, points, whole
from sidelight.protocols.direct import smp
from sidelight.protocols.groups import BEST
from sidelight.protocols.protocol import Design


@dataclass(frozen=True)
class Prospect:
    """The use of a collection's estimates, the people for a precision, and ways to more use.

    Attributes:
        within: the precision, a root-mean-square error; `people_within` is how many people every attribute
            needs for it, None where no number is enough.
        people_for_use: how many people would halve the error of guessing; None where it is halved already,
            or no number does.
        limit: the budget of a record that ways to more use keep to; None where none is known.
        people_if_sampled: how many people would halve it if each sent one attribute, drawn at random, with
            that budget.
        sampled, split: the attributes that could be collected usefully with these people and this limit, each
            person sending one of them, or all; None where not even one could, or that was not asked.
    """

    usefulness: Usefulness
    within: float
    people_within: int | None
    people_for_use: int | None
    limit: float | None = None
    people_if_sampled: int | None = None
    sampled: Affordable | None = None
    split: Affordable | None = None

    def notes(self) -> list[str]:
        """Say what to expect, the worst first, then what would help, then what the words mean."""
        first, *rest = self.usefulness.notes()
        needed = f"To be right to {points(self.within)} for every attribute"
        if self.people_within is None:
            needed = f"{needed}, no number of people is enough."
        else:
            needed = f"{needed}, about {at_least(self.people_within)} people must report."
        return [first, *self.remedies(), needed, *rest]

    def remedies(self) -> list[str]:
        """Say what would make the estimates useful, where they are not."""
        notes = [] if self.usefulness.verdict == "useful" else [self._people_words()]
        return notes if self.limit is None else [*notes, self._attribute_words()]

    def _people_words(self) -> str:
        if self.people_for_use is None:
            return "No number of people would halve the error of guessing."
        count = at_least(self.people_for_use)
        words = (
            f"Estimates would be useful, with half the error of guessing, if about {count} people reported"
        )
        if self.people_if_sampled is None or self.people_if_sampled >= self.people_for_use:
            return f"{words}."
        count = at_least(self.people_if_sampled)
        return (
            f"{words}; if each sent one attribute, drawn at random, at a budget of {self.limit:g}: {count}."
        )

    def _attribute_words(self) -> str:
        budget = f"a budget of {self.limit:g} for a record, which no secret's leakage can exceed"
        asked = f"With {whole(self.usefulness.people)} people and {budget}"
        if self.sampled is None and self.split is None:
            return f"{asked}, no attribute could be collected usefully."
        ways = {
            "each person sends one of them, drawn at random": self.sampled,
            "everyone sends all": self.split,
        }
        parts = [
            f"{len(option.names)} if {words} ({listed(option.names, 6)})"
            for words, option in ways.items()
            if option is not None
        ]
        return f"{asked}, attributes could be collected usefully: {'; '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; infinity becomes a string."""
        ways = {"sampled": self.sampled, "split": self.split}
        return {
            **self.usefulness.to_dict(), "within": self.within, "people_within": self.people_within,
            "people_for_use": self.people_for_use, "people_if_sampled": self.people_if_sampled,
            **{name: None if way is None else list(way.names) for name, way in ways.items()},
            "notes": self.notes(),
        }  # fmt: skip


def prospect(
    design: Design, people: int, frequencies: Frequencies | None = None, *, prior: Frequencies | None = None,
    within: float | None = None, limit: float | None = None,
) -> Prospect:  # fmt: skip
    """Return the use of a collection's estimates, and what would help; see `usefulness` for the arguments.

    Args:
        design: how the collection is run.
        people: how many report.
        frequencies: the true ones, as far as they are known.
        prior: public ones that a guess could be made from.
        within: the precision to count people for; 0.01, a percentage point, by default.
        limit: how much a secret may leak; a record's budget of as much keeps it whatever the population is.
    """
    precision = WITHIN if within is None else check_number("within", within, above=0, below=1)
    found = usefulness(design, people, frequencies, prior=prior)
    needed = people_needed(design, precision, frequencies)
    is_useful = found.verdict == "useful"
    enough = None if is_useful else people_for_use(design, frequencies, prior=prior)
    if limit is None or not 0 < limit < math.inf or (is_useful and not found.worse):
        return Prospect(found, precision, needed, enough)
    sampled, split = (
        affordable(design.schema, limit, people, frequencies, prior=prior, way=way)
        for way in ("sample", "split")
    )
    drawn = None if is_useful else people_for_use(smp(design.schema, limit, BEST), frequencies, prior=prior)
    return Prospect(found, precision, needed, enough, limit, drawn, sampled, split)
