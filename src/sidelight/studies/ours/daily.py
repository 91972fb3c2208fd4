"""Asked daily for a year: a response that is kept, fresh noise, and people divided over the days.

Everybody may spend the same budget on one question in the whole year. Each way to spend it is simulated on
people whose values are known on every day, once with values that stay and once with values that change by a
chain. Beside its error stands what all reports of a year say, in the worst case and at delta, and how surely
two of a person's batches of reports can be told to be of one person.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sidelight.estimation.division import noise, people_error
from sidelight.foundation.arrays import Array, Whole
from sidelight.foundation.randomness import derive_seed
from sidelight.leakage.over_time import Chain, leakage_over_time, linking
from sidelight.leakage.totals.composition import composed_losses
from sidelight.mechanisms import Mechanism
from sidelight.mechanisms.longitudinal import memo_mechanism, sent_again
from sidelight.plan import Plan, Release
from sidelight.protocols.protocol import even_part
from sidelight.schema import Schema, categorical
from sidelight.sources.panels import drifting, simulate_panel
from sidelight.studies.figures import COLOURS, canvas, finish
from sidelight.studies.study import Reading, StudyResult, Verdict, Work, plain_table

EPSILON = 1.0
"""What a person may spend in the year."""
DELTA = 1e-6
TOLERANCE = 0.5
"""How far a measured error may lie from the predicted one, as a share of it. Of 40 responses to four values a
mean of squares has the standard error of sqrt(2 / 120), 13 %, so that a false alarm is four of them away."""
_SHARES = (0.7, 0.15, 0.1, 0.05)
_TARGET = (0.1, 0.2, 0.3, 0.4)
_MOVING = 1 / 60
_SEED = 11
_YEARS = 40
"""So many years of kept responses are simulated, each from responses of its own."""
_FRESH_DAYS = 400
"""About so many days of fresh noise are."""
_MARKS = "osD^vPX"
STAY, CHANGE = "stay the same", "change"


@dataclass(frozen=True)
class DailyRow:
    """One way to ask for a year."""

    values: str  # whether they stay the same
    way: str  # what is kept or divided
    mechanism: str  # how a report is made
    epsilon: float  # its nominal budget; of a kept response that of unlimited reports
    days: int  # how often people are asked
    people: int  # how many there are
    predicted: float  # the mean squared error of a day's frequencies to expect; NaN where values are frozen
    measured: float  # the error that was found
    of_the_year: float  # the error of the mean over all days that was found
    worst_case: float  # what all reports of a person say at most
    at_delta: float  # the same at delta; the worst case where values change
    same_or_not: float  # how often two batches are rightly told to be of one person or two, at most


@dataclass(frozen=True)
class _Setting:
    """How many people are asked on how many days, and for how many a value is frozen where values change."""

    people: int
    days: int
    epoch: int

    @property
    def schema(self) -> Schema:
        """The question, of four answers."""
        return Schema((categorical("mood", ["good", "fair", "poor", "bad"]),))

    @property
    def chain(self) -> Chain:
        """How values change, where they do: slowly, from one distribution to another."""
        return Chain.stated(drifting(_TARGET, _MOVING), _SHARES, self.schema)

    def states(self, values: str) -> Whole:
        """Return everybody's value on every day, (days, people)."""
        changes = None if values == STAY else self.chain.transition
        panel = simulate_panel(self.people, self.days, _SHARES, self.schema, seed=_SEED, changes=changes)
        return panel.codes[:, :, 0].astype(np.int64)


@dataclass(frozen=True)
class _Way:
    """A way to ask: what one person sends, and how."""

    name: str
    release: Release
    epoch: int | None = None  # for how many days a kept response lasts
    divides: bool = False  # whether everybody reports on one day only


def run(quick: bool = False) -> tuple[DailyRow, ...]:
    """Ask in every way; quickly, fewer people on fewer days."""
    setting = _Setting(600, 16, epoch=8) if quick else _Setting(20_000, 365, epoch=30)
    return tuple(row for values in (STAY, CHANGE) for row in _rows(setting, values))


def _rows(setting: _Setting, values: str) -> Iterator[DailyRow]:
    states = setting.states(values)
    for way in _ways(setting, values):
        mechanism = way.release.randomiser()
        estimates, truth = _estimates(way, mechanism, states), _truth(states)
        yield DailyRow(
            values, way.name, way.release.mechanism, float(way.release.epsilon or 0.0), setting.days,
            setting.people, _predicted(way, mechanism, setting, truth), _error(estimates, truth),
            _error(estimates.mean(axis=1), truth.mean(axis=0)), *_leakages(way, setting, values),
            _linked(way),
        )  # fmt: skip


def _ways(setting: _Setting, values: str) -> Iterator[_Way]:
    """Return the ways to spend the budget, and one that does not keep to it."""
    question, days = setting.schema["mood"], setting.days
    if values == STAY:
        once = Release(question, "grr", EPSILON, times=days, memory="kept")
        yield _Way("response kept, sent again", once)
        yield _Way("response kept, noise on top", Release(question, "l-grr", EPSILON, times=days))
    else:
        part = even_part(EPSILON, -(-days // setting.epoch))
        yield _Way("response kept in epochs", Release(question, "l-grr", part, times=days), setting.epoch)
    yield _Way("people divided", Release(question, "grr", EPSILON), divides=True)
    yield _Way("budget divided", Release(question, "grr", even_part(EPSILON, days), times=days))
    yield _Way("budget divided at delta", Release(question, "grr", _part_at_delta(setting), times=days))
    yield _Way("fresh noise, a tenth a day", Release(question, "grr", EPSILON / 10, times=days))


def _part_at_delta(setting: _Setting) -> float:
    """Return the largest budget of a day, to three digits, whose year is within the budget at delta."""
    low, high = EPSILON / setting.days, EPSILON
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        release = Release(setting.schema["mood"], "grr", middle, times=setting.days)
        low, high = (middle, high) if _at_delta(release) <= EPSILON else (low, middle)
    return low


def _at_delta(release: Release) -> float:
    """Return what all reports of a value that stays say at delta, whatever is known about people."""
    return composed_losses({release.name: release}).leakage(DELTA)


def _leakages(way: _Way, setting: _Setting, values: str) -> tuple[float, float]:
    """Return what all reports of a person say: in the worst case, and at delta."""
    if values == STAY:
        return way.release.spent, _at_delta(way.release)
    told = leakage_over_time(setting.chain, Plan((way.release,)), "mood", epoch=way.epoch)
    return (told.worst.value,) * 2


def _linked(way: _Way) -> float:
    """Return how surely a person can be followed; who sends one report cannot."""
    if way.divides:
        return 0.5
    batch = way.release if way.epoch is None else replace(way.release, times=way.epoch)
    return linking(batch, np.array(_SHARES)).same_or_not


def _truth(states: Whole) -> Array:
    """Return the frequencies among all people on every day, (days, values)."""
    size = len(_SHARES)
    return np.array([np.bincount(day, minlength=size) / len(day) for day in states])


def _error(estimates: Array, truth: Array) -> float:
    return float(np.mean((estimates - truth) ** 2))


def _predicted(way: _Way, mechanism: Mechanism, setting: _Setting, truth: Array) -> float:
    """Return the mean squared error to expect of a day's frequencies, about all people."""
    if way.epoch is not None:
        return math.nan  # how far frozen values lag behind is for the measurement to say
    error: Callable[[Array], float] = lambda day: noise(mechanism, day)  # noqa: E731
    if way.divides:
        error = lambda day: people_error(mechanism, setting.days, day)  # noqa: E731
    return float(np.mean([error(day) for day in truth])) / setting.people


def _estimates(way: _Way, mechanism: Mechanism, states: Whole) -> Array:
    """Return the unbiased frequencies of every day from simulated years, (years, days, values).

    Days whose reports are alike, or rest on one draw, say little, so that such years are simulated again.
    """
    years = _YEARS if way.release.keeps else max(1, _FRESH_DAYS // len(states))
    return np.array([_year(way, mechanism, states, f"{way.name}/{year}") for year in range(years)])


def _year(way: _Way, mechanism: Mechanism, states: Whole, name: str) -> Array:
    """Return the unbiased frequencies of every day of a simulated year, (days, values)."""
    days, people = states.shape
    day_of = np.random.default_rng(derive_seed(_SEED, name)).integers(0, days, people)
    found, memos = [], None
    for day in range(days):
        seed = derive_seed(_SEED, f"{name}/{day}")
        if way.release.keeps:
            if memos is None or (way.epoch is not None and day % way.epoch == 0):
                memos = memo_mechanism(mechanism).randomise(states[day], seed=derive_seed(seed, "memo"))
            reports = sent_again(mechanism, memos, seed)
        else:
            reports = mechanism.randomise(
                states[day][day_of == day if way.divides else slice(None)], seed=seed
            )
        found.append(mechanism.estimate(mechanism.aggregate(reports)))
        if reports is memos and way.epoch is None:  # the same on every further day
            return np.repeat(found, days, axis=0)
    return np.array(found)


def daily_figure(rows: Sequence[DailyRow]) -> Figure:
    """Draw the error of each way against what it leaks."""
    from matplotlib.ticker import NullFormatter

    figure, panels = canvas(10, 4.4, 2, sharey=True)
    names = list(dict.fromkeys(row.way for row in rows))
    for axes, values in zip(panels, (STAY, CHANGE), strict=True):
        for row in (row for row in rows if row.values == values):
            place = names.index(row.way)
            look = {"color": COLOURS[place % len(COLOURS)], "marker": _MARKS[place % len(_MARKS)]}
            axes.loglog(row.worst_case, row.measured, linestyle="", label=row.way, markersize=8, **look)
        axes.axvline(EPSILON, color="#8b97a3", linewidth=1, zorder=1)
        axes.set_xlim(EPSILON / 5, 2 * max(row.worst_case for row in rows))
        axes.xaxis.set_minor_formatter(NullFormatter())
        finish(axes, "leakage of all reports, worst case (nats)", title=f"values {values}", legend=8)
    panels[0].set_ylabel("mean squared error of a day's frequencies")
    return figure


def judge_daily(rows: Sequence[DailyRow]) -> StudyResult:
    """Compare the ways within the budget, and the errors found with those predicted."""
    best, people_win = {}, True
    for values in (STAY, CHANGE):
        own = [row for row in rows if row.values == values]
        within = [row for row in own if row.worst_case <= EPSILON * (1 + 1e-6)]
        best[values] = min(within, key=lambda row: row.measured)
        by_way = {row.way: row for row in own}
        people_win &= by_way["people divided"].measured < by_way["budget divided"].measured
    stay = {row.way: row for row in rows if row.values == STAY}
    kept_wins = best[STAY].way.startswith("response kept")
    far = [row for row in rows if abs(row.measured / row.predicted - 1) > TOLERANCE]  # NaN is never far
    loud = stay["fresh noise, a tenth a day"]
    ratio = stay["budget divided"].measured / stay["people divided"].measured
    reason = (
        f"within {EPSILON:g} nats a year, {best[STAY].way!r} errs least if values stay the same and "
        f"{best[CHANGE].way!r} if they change; dividing the budget errs {ratio:.0f} times as much as "
        f"dividing people; a tenth a day adds up to {loud.worst_case:.3g}, {loud.at_delta:.3g} at delta "
        f"{DELTA:g}; "
        f"kept responses are linked in {best[STAY].same_or_not:.0%} of cases"
    )
    if far:
        reason += f"; {len(far)} errors lie {TOLERANCE:.0%} or more from the prediction"
    is_so = people_win and kept_wins and not far and loud.worst_case > EPSILON
    return StudyResult(Verdict("measured" if is_so else "differs", reason), {}, *plain_table(rows))


STUDIES = {"asked-daily": Reading(Work("asked-daily", run, minutes=0.7), judge_daily, daily_figure)}
