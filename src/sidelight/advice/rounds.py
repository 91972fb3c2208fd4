"""`advise_rounds`: how to ask the same people T times: keep responses, divide the people, or the budget."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidelight.estimation import division
from sidelight.estimation.division import NOISE_ON_TOP, ONE_SHOT, SENT_AGAIN, crossing_budget, noise
from sidelight.estimation.expected_error import Frequencies, check_frequencies
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import check_number, check_whole, invalid
from sidelight.foundation.files import json_plain
from sidelight.foundation.html import html_table
from sidelight.foundation.progress import track
from sidelight.leakage.over_time import Linking, linking
from sidelight.leakage.totals.composition import composed_losses
from sidelight.mechanisms import Mechanism, create
from sidelight.mechanisms.longitudinal import instant_budget
from sidelight.plan import Release
from sidelight.protocols.protocol import check_budget, even_part
from sidelight.schema import Attribute, Schema, as_schema

KEPT, NOISY, PEOPLE, BUDGET, EPOCHS, AT_DELTA = (
    "response kept, sent again as it is", "response kept, noise on top", "people divided", "budget divided",
    "response kept in epochs", "budget divided at delta",
)  # fmt: skip
_NEAR = 1.001
"""How near the largest budget of a round that keeps a limit at delta is searched for."""


@dataclass(frozen=True)
class RoundsOption:
    """One way to ask about an attribute in every round, at the same budget of a person.

    Attributes:
        name: what is kept or divided.
        release: what a person who takes part in all rounds sends, to be audited; in an epoch where there
            are some.
        level_error: the mean squared error to expect of a round's frequencies, about all people; in epochs
            of the values that are frozen.
        mean_error: that of the mean over all rounds, were values to stay the same.
        spent: what all reports spend while the value stays the same.
        changing: what they spend at most, whatever the value does.
        linking: how surely two batches of all reports can be told to be of one person; None where a person
            sends one report and there is nothing to link. In epochs, two batches of one.
        at_delta: what all reports say at delta while the value stays the same; None where none is given.
    """

    name: str
    release: Release
    level_error: float
    mean_error: float
    spent: float
    changing: float
    linking: Linking | None
    at_delta: float | None = None

    @property
    def same_or_not(self) -> float:
        """How often the best guess is right whether two batches are of one person; half is a guess."""
        return 0.5 if self.linking is None else self.linking.same_or_not


@dataclass(frozen=True, eq=False)
class AttributeRounds:
    """The ways to ask about one attribute, and which errs least.

    Attributes:
        attribute: its name.
        epsilon: what a person may spend on it in all rounds.
        options: the ways.
        crossing: the budget up to which dividing people errs less than dividing the budget, with the
            mechanism of the divided people; None where it always does.
    """

    attribute: str
    epsilon: float
    options: tuple[RoundsOption, ...]
    crossing: float | None

    def __getitem__(self, name: str) -> RoundsOption:
        return next(option for option in self.options if option.name == name)

    @property
    def if_constant(self) -> RoundsOption:
        """The way whose levels err least within the budget, were values to stay the same."""
        kept = [option for option in self.options if option.spent <= self.epsilon * (1 + 1e-9)]
        return min(kept, key=lambda option: (option.level_error, option.mean_error))

    @property
    def if_changing(self) -> RoundsOption:
        """The same among those that keep to the budget whatever the values do."""
        kept = [option for option in self.options if option.changing <= self.epsilon * (1 + 1e-9)]
        return min(kept, key=lambda option: option.level_error)


@dataclass(frozen=True, eq=False)
class RoundsAdvice:
    """How to ask about every attribute in so many rounds, of so many people at a record's budget."""

    attributes: tuple[AttributeRounds, ...]
    people: int
    rounds: int
    epsilon: float
    origin: str
    epoch: int | None = None
    delta: float | None = None

    def __getitem__(self, name: str) -> AttributeRounds:
        return next(item for item in self.attributes if item.attribute == name)

    def to_json(self) -> str:
        """Return everything as JSON; an infinite number becomes the string "infinity"."""
        head = {
            "people": self.people, "rounds": self.rounds, "epsilon": self.epsilon, "assumed": self.origin,
            "epoch": self.epoch, "delta": self.delta,
        }  # fmt: skip
        rows = [
            {
                "attribute": item.attribute, "epsilon": item.epsilon, "crossing": item.crossing,
                "if_constant": item.if_constant.name, "if_changing": item.if_changing.name,
                "options": [_plain(option) for option in item.options],
            }
            for item in self.attributes
        ]  # fmt: skip
        return json.dumps(json_plain(head | {"attributes": rows}), indent=2, allow_nan=False)

    def __repr__(self) -> str:
        return f"RoundsAdvice({len(self.attributes)} attributes, {self.rounds} rounds, {self.people} people)"

    def _repr_html_(self) -> str:
        titles = ("attribute", "way", "mechanism", "error of a level", "spent", "spent if values change")
        rows = [
            [item.attribute, o.name, o.release.mechanism, o.level_error, o.spent, o.changing]
            for item in self.attributes
            for o in item.options
        ]
        return html_table(repr(self), titles, rows)


def _plain(option: RoundsOption) -> dict[str, object]:
    at_delta = {} if option.at_delta is None else {"at_delta": option.at_delta}
    return {
        "way": option.name, "mechanism": option.release.mechanism, "epsilon": option.release.epsilon,
        "level_error": option.level_error, "mean_error": option.mean_error, "spent": option.spent,
        "spent_if_values_change": option.changing, "same_or_not": option.same_or_not,
        "same_or_not_is": "exact" if option.linking is None else option.linking.kind,
        **at_delta,
    }  # fmt: skip


def advise_rounds(
    schema: Schema, epsilon: float, people: int, rounds: int, frequencies: Frequencies | None = None, *,
    mechanisms: Sequence[str] = ONE_SHOT, epoch: int | None = None, delta: float | None = None,
) -> RoundsAdvice:  # fmt: skip
    """Compare the ways to ask the same people several times, by the error to expect.

    Args:
        schema: the attributes; a person's budget is divided evenly between them.
        epsilon: what a whole record may spend in all rounds together.
        people: how many there are.
        rounds: how many times they are asked.
        frequencies: public ones, by attribute; by default all values are taken to be equally frequent.
        mechanisms: those to choose from; for kept responses those of them that can be made again.
        epoch: compare with responses that are kept for so many rounds, the value frozen, and then made anew.
        delta: say also what all reports say with this probability of more, and compare with budgets that are
            divided so that they keep to the whole at delta.
    """
    known = as_schema(schema)
    part = even_part(check_budget(epsilon), len(known))
    count = check_whole("people", people, at_least=1)
    times = check_whole("rounds", rounds, at_least=2)
    if not set(mechanisms) & set(SENT_AGAIN):
        raise invalid("mechanisms", f"one of {', '.join(SENT_AGAIN)} at least", list(mechanisms))
    length = None if epoch is None else check_whole("epoch", epoch, at_least=1, at_most=times)
    failing = None if delta is None else check_number("delta", delta, above=0, below=1)
    if frequencies is not None:
        check_frequencies(known, frequencies)
    given = "all values are equally frequent" if frequencies is None else "frequencies that were given"
    shares = frequencies or {item.name: np.full(item.size, 1 / item.size) for item in known}
    made = tuple(
        _Asked(item, part, count, times, np.asarray(shares[item.name]), length, failing).compared(mechanisms)
        for item in track(known, "attributes")
    )
    return RoundsAdvice(made, count, times, float(epsilon), given, length, failing)


@dataclass(frozen=True, eq=False)
class _Asked:
    """An attribute, what a person may spend on it, who is asked and how often."""

    attribute: Attribute
    epsilon: float
    people: int
    rounds: int
    frequencies: Array
    epoch: int | None
    delta: float | None

    def compared(self, mechanisms: Sequence[str]) -> AttributeRounds:
        """Return the ways, each through its best mechanism."""
        best = division.least_noise(mechanisms, self.epsilon, self.frequencies)
        again = [name for name in SENT_AGAIN if name in mechanisms]
        options = [self._kept(again), self._noisy(), self._people(best), self._budget(mechanisms)]
        if self.epoch is not None:
            options.append(self._in_epochs(again, self.epoch))
        if self.delta is not None:
            options.append(self._budget_at(mechanisms, self.delta))
        crossing = crossing_budget(best.name, self.rounds, self.frequencies)
        return AttributeRounds(self.attribute.name, self.epsilon, tuple(options), crossing)

    def _release(self, mechanism: Mechanism, epsilon: float, times: int, *, kept: bool) -> Release:
        return Release(
            self.attribute, mechanism.name, epsilon, times=times, memory="kept" if kept else "fresh"
        )

    def _option(
        self, name: str, release: Release, level: float, mean: float, epochs: int | None = None
    ) -> RoundsOption:
        linked = None if release.times == 1 else linking(release, self.frequencies)
        spent, said = release.spent, self._at_delta(release)
        changing = max(spent, release.times * instant_budget(release.randomiser(), kept=release.keeps))
        if epochs is not None:  # a frozen value does not change, and each epoch is like a fresh report
            spent = changing = epochs * spent
            said = self._at_delta(replace(release, times=epochs, memory="fresh"))
        errors = level / self.people, mean / self.people
        return RoundsOption(name, release, *errors, spent, changing, linked, said)

    def _at_delta(self, release: Release) -> float | None:
        return None if self.delta is None else composed_losses({release.name: release}).leakage(self.delta)

    def _kept(self, names: Sequence[str]) -> RoundsOption:
        best = division.least_noise(names, self.epsilon, self.frequencies)
        release = self._release(best, self.epsilon, self.rounds, kept=True)
        error = noise(best, self.frequencies)
        return self._option(KEPT, release, error, error)

    def _noisy(self) -> RoundsOption:
        best = division.least_noise(NOISE_ON_TOP, self.epsilon, self.frequencies)
        release = self._release(best, self.epsilon, self.rounds, kept=True)
        together, _ = release.sent()
        return self._option(NOISY, release, noise(best, self.frequencies), noise(together, self.frequencies))

    def _people(self, best: Mechanism) -> RoundsOption:
        release = self._release(best, self.epsilon, 1, kept=False)
        level = division.people_error(best, self.rounds, self.frequencies)
        return self._option(PEOPLE, release, level, noise(best, self.frequencies))

    def _budget(self, mechanisms: Sequence[str]) -> RoundsOption:
        part = even_part(self.epsilon, self.rounds)
        best = division.least_noise(mechanisms, part, self.frequencies)
        release = self._release(best, part, self.rounds, kept=False)
        error = noise(best, self.frequencies)
        return self._option(BUDGET, release, error, error / self.rounds)

    def _in_epochs(self, names: Sequence[str], length: int) -> RoundsOption:
        """Return responses that are sent again as they are for an epoch, and the budget divided by epochs."""
        epochs = -(-self.rounds // length)
        part = even_part(self.epsilon, epochs)
        best = division.least_noise(names, part, self.frequencies)
        release = self._release(best, part, length, kept=True)
        error = noise(best, self.frequencies)
        shares = np.full(epochs, length / self.rounds)
        shares[-1] = 1 - shares[:-1].sum()
        return self._option(EPOCHS, release, error, error * float((shares**2).sum()), epochs)

    def _budget_at(self, mechanisms: Sequence[str], delta: float) -> RoundsOption:
        """Return the largest budget of a round with which all of them keep to the whole at delta."""
        low, high = even_part(self.epsilon, self.rounds), self.epsilon
        name = division.least_noise(mechanisms, low, self.frequencies).name
        while high / low > _NEAR:
            middle = math.sqrt(low * high)
            tried = Release(self.attribute, name, middle, times=self.rounds, memory="fresh")
            said = composed_losses({tried.name: tried}).leakage(delta)
            low, high = (middle, high) if said <= self.epsilon else (low, middle)
        best = create(name, self.attribute.size, low)
        error = noise(best, self.frequencies)
        release = self._release(best, low, self.rounds, kept=False)
        return self._option(AT_DELTA, release, error, error / self.rounds)
