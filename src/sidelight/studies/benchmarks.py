"""The two benchmarks of paper CPL, for any analyser and any mechanism.

Analysers are placed by how much they undershoot and overshoot a reference, over all ordered pairs of
attributes (CPL, section V-A). Mechanisms are placed by the error of what they are collected for against the
leakage they cause, as a share of the most that any mechanism of their budget can cause (section V-B): once
for an adversary who keeps whole reports, once for one who keeps a single guessed value of each, which is all
that the paper looks at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sidelight.belief import Belief, check_belief
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, SidelightError, check_number, invalid
from sidelight.foundation.progress import track
from sidelight.leakage import normalised_overshoot, normalised_undershoot, region
from sidelight.leakage.analysers import ANALYSERS, TOLERANCE, Analyser, Region, generic_analysis
from sidelight.leakage.pair import pair_matrix
from sidelight.leakage.statistical import statistical_leakage
from sidelight.mechanisms import Channel, Mechanism, create
from sidelight.studies.figures import COLOURS, canvas, legend_beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")
Maker = Callable[[int, float], Mechanism]
"""Makes a mechanism for so many values at a budget."""
BUDGETS = (1.0, 3.0, 5.0)
LARGEST_BUDGET = 30.0
"""Budgets are compared below this one. A guess is wrong with a probability of about exp(-epsilon), which is 1
minus a double: at 30 its rounding, 2^-53, shifts the leakage by less than one part in ten thousand, at 37 it
is all that is left, and from 44 on the 64 random bits of a report realise less than the budget."""

_NAMES = {"GRR": "grr", "RAPPOR": "sue", "EXP": "exp", "OUE": "oue", "BLH": "blh", "OLH": "olh"}
MAKERS: Mapping[str, Maker] = {
    label: partial(create, name) for label, name in (_NAMES | {"SS": "ss", "SHE": "she"}).items()
}
"""The eight mechanisms of the paper by its names; its "RAPPOR" behaves as symmetric unary encoding."""
_MARKS = "osD^vP*"
_LEAST_REACH = 0.02
"""The shortest axis, so that rounding errors do not fill a panel."""


@dataclass(frozen=True)
class AnalyserPoint:
    """Where an analyser lies at one budget."""

    analyser: str  # its name
    epsilon: float  # the budget of every attribute
    undershoot: float  # its mean shortfall over all ordered pairs, in units of epsilon
    overshoot: float  # its mean surplus
    region: Region  # P1 exact, R1 only below, R2 only above, R3 both


@dataclass(frozen=True)
class AnalyserBenchmark:
    """The first benchmark on one table."""

    reference: str  # what the estimates are held against
    points: tuple[AnalyserPoint, ...]  # analyser by analyser
    refused: Mapping[str, str] = field(default_factory=dict)  # why one cannot be used here, by its name


@dataclass(frozen=True)
class MechanismPoint:
    """Where a mechanism lies at one budget."""

    mechanism: str  # its name
    epsilon: float  # the nominal budget of every attribute
    report: float  # TCPL through whole reports over that of the worst mechanism of this budget
    # the same for an adversary who keeps one guessed value; None where no guess is defined
    guess: float | None
    # expected squared error of all frequencies over the sum of their squares (CPL, eq. (23)), given the
    # records; None where the mechanism estimates no frequencies
    frequency_error: float | None
    # the expected share of guessed values that are wrong (CPL, eq. (24)), over all attributes
    wrong: float | None


@dataclass(frozen=True)
class MechanismBenchmark:
    """The second benchmark on one table: its points, and how many people report."""

    people: int
    points: tuple[MechanismPoint, ...]


def benchmark_analysers(
    belief: Belief,
    analysers: Mapping[str, Analyser] = ANALYSERS,
    budgets: Sequence[float] = BUDGETS,
    *,
    reference: Analyser = generic_analysis,
    name: str = "any mechanism of the budget",
    tolerance: float = TOLERANCE,
) -> AnalyserBenchmark:
    """Place analysers against a reference on one table.

    Args:
        belief: from the table.
        analysers: each takes the belief and a budget and returns a matrix (n, n): what the row's report says
            about the column.
        budgets: of every attribute.
        reference: what is right; the worst mechanism of the budget by default.
        name: what to call the reference.
        tolerance: what counts as 0 for a region; to be raised where the reference is an estimate.

    >>> belief = Belief.from_joint([[0.5, 0.0], [0.25, 0.25]], ["a", "b"])
    >>> half = {"half": lambda belief, epsilon: np.full((2, 2), epsilon / 2)}
    >>> benchmark_analysers(belief, half, [1.0]).points[0].region
    'R1'
    """
    check_belief("belief", belief)
    points, refused = [], {}
    for epsilon in _checked(budgets):
        truth = _matrix(belief, reference, epsilon, name)
        for label, analyser in track(list(analysers.items()), f"analysers, epsilon {epsilon:g}"):
            try:
                estimate = _matrix(belief, analyser, epsilon, label)
            except InputError as error:
                refused[label] = str(error)
                continue
            low = normalised_undershoot(truth, estimate, epsilon)
            high = normalised_overshoot(truth, estimate, epsilon)
            points.append(AnalyserPoint(label, epsilon, low, high, region(low, high, tolerance)))
    return AnalyserBenchmark(name, tuple(points), refused)


def _checked(budgets: Sequence[float]) -> list[float]:
    """Return the budgets; raise if one is so large that double precision cannot resolve the shares."""
    return [check_number("budgets", budget, above=0, below=LARGEST_BUDGET) for budget in budgets]


def _called(function: Callable[..., T], name: str, contract: str, *arguments: object) -> T:
    """Call a function that may be the user's; if it fails, say what it must take and return."""
    try:
        return function(*arguments)
    except Exception as error:
        ours: list[object] = [generic_analysis, *ANALYSERS.values(), *MAKERS.values()]
        if isinstance(error, SidelightError) or any(function is one for one in ours):
            raise
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise InputError(f"{name!r} failed with {reason.rstrip('.')}. It {contract}.") from error


def _matrix(belief: Belief, analyser: Analyser, epsilon: float, name: str) -> Array:
    """Return an analyser's matrix with a zero diagonal, after checking its shape and values."""
    count = len(belief.schema)
    contract = f"must take a Belief and a budget and return a matrix of leakages of shape {(count, count)}"
    said = _called(analyser, name, contract, belief, epsilon)
    wanted = (f"what {name} returns", f"a matrix of shape {(count, count)}")
    try:
        matrix = np.array(said, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise invalid(*wanted, said) from error
    if matrix.shape != (count, count):
        raise invalid(*wanted, matrix.shape)
    np.fill_diagonal(matrix, 0.0)  # what a report says about its own attribute is no correlation
    if not np.isfinite(matrix).all() or matrix.min() < 0:
        raise InputError(f"what {name} returns must be finite leakages of at least 0; some are not.")
    return matrix


def benchmark_mechanisms(
    belief: Belief,
    mechanisms: Mapping[str, Maker] = MAKERS,
    budgets: Sequence[float] = BUDGETS,
    *,
    people: int | None = None,
) -> MechanismBenchmark:
    """Place mechanisms by utility against normalised TCPL, with whole reports and with guesses.

    Args:
        belief: from the table.
        mechanisms: each takes a number of values and a budget and returns a mechanism.
        budgets: of every attribute.
        people: how many report; as many as the table has by default.
    """
    check_belief("belief", belief)
    count = people or belief.sample_size
    if count is None:
        raise InputError("the belief was given by hand; say how many `people` report.")
    points = []
    for epsilon in _checked(budgets):
        most = float(generic_analysis(belief, epsilon).sum())
        if most <= 0:
            words = "no attribute says anything about another here, so there is no leakage to compare"
            raise InputError(f"{words}; take a table whose attributes are related.")
        for name, maker in track(list(mechanisms.items()), f"mechanisms, epsilon {epsilon:g}"):
            made = _made(belief, maker, epsilon, name)
            points.append(_mechanism_point(belief, name, made, epsilon, most, count))
    return MechanismBenchmark(count, tuple(points))


def _made(belief: Belief, maker: Maker, epsilon: float, name: str) -> dict[str, Mechanism]:
    """Return a mechanism for every attribute, after checking that it is one."""
    contract = "must take a number of values and a budget and return a mechanism, which has a channel"
    made = {part.name: _called(maker, name, contract, part.size, epsilon) for part in belief.schema}
    for mechanism in made.values():
        try:
            _ = mechanism.channel
        except AttributeError as error:
            raise invalid(f"what {name} makes", "a mechanism, which has a channel", mechanism) from error
    return made


def _mechanism_point(
    belief: Belief, name: str, made: Mapping[str, Mechanism], epsilon: float, most: float, people: int
) -> MechanismPoint:
    report = _share(belief, {part: made[part].channel for part in made}, most, name)
    error = frequency_error(belief, made, people)
    try:
        guesses = {part: mechanism.guess_channel() for part, mechanism in made.items()}
    except InputError:
        return MechanismPoint(name, epsilon, report, None, error, None)
    right = [float(belief.prior(part) @ np.diagonal(channel.matrix())) for part, channel in guesses.items()]
    wrong = 1 - math.fsum(right) / len(right)
    return MechanismPoint(name, epsilon, report, _share(belief, guesses, most, name), error, wrong)


def _share(belief: Belief, channels: Mapping[str, Channel], most: float, name: str) -> float:
    """Return the total leakage of these releases as a share of the worst; infinite if one hides nothing."""
    share = float(leakage_matrix(belief, channels).sum()) / most
    if math.isnan(share):
        raise InputError(f"the leakage of {name!r} is no number; check the channel of its mechanism.")
    return share


def leakage_matrix(belief: Belief, channels: Mapping[str, Channel]) -> Array:
    """Return the leakage of every ordered pair through these releases, (n, n), 0 on the diagonal."""
    pairs = pair_matrix(belief, channels, belief.schema.names)
    return np.where(np.isnan(pairs.values), 0.0, pairs.values)


def frequency_error(belief: Belief, made: Mapping[str, Mechanism], people: int) -> float | None:
    """Return the expected squared error of all frequencies over the sum of their squares (CPL, eq. (23)).

    The records are fixed, so the variance of sampling people is subtracted.
    """
    error = size = 0.0
    for name, mechanism in made.items():
        shares = belief.prior(name)
        spread = mechanism.variance(people, shares)
        if spread.shape != shares.shape or not np.isfinite(spread).all():  # it estimates no frequencies
            return None
        error += float((spread - shares * (1 - shares) / people).sum())
        size += float((shares**2).sum())
    return error / size


def exact_analysis(maker: Maker, *, guess: bool = False) -> Analyser:
    """Return the analyser that is exact for a mechanism, through whole reports or through guesses."""

    def analyse(belief: Belief, epsilon: float) -> Array:
        made = _made(belief, maker, epsilon, "the reference")
        views = {name: each.guess_channel() if guess else each.channel for name, each in made.items()}
        return leakage_matrix(belief, views)

    return analyse


def statistical_analysis(maker: Maker, *, replicates: int = 50, seed: int = 1) -> Analyser:
    """Return the analyser that estimates as CPL, section III does: replicate, perturb, guess, count.

    If a cell was never seen, the largest finite figure is returned; `exact_analysis` has no such cells.
    """
    return lambda belief, epsilon: statistical_matrix(belief, maker, epsilon, replicates, seed)[0]


def statistical_matrix(
    belief: Belief, maker: Maker, epsilon: float, replicates: int = 50, seed: int = 1
) -> tuple[Array, int]:
    """Return the largest finite estimate of every ordered pair, (n, n), and how many pairs are infinite."""
    names = belief.schema.names
    views = {part.name: maker(part.size, epsilon).guess_channel().matrix() for part in belief.schema}
    matrix = np.zeros((len(names), len(names)))
    infinite = 0
    for (i, seen), (j, secret) in permutations(enumerate(names), 2):
        place = seed + i * len(names) + j  # every pair has random numbers of its own
        view = {seen: views[seen]}
        estimate = statistical_leakage(belief, view, secret, replicates=replicates, seed=place)
        matrix[i, j] = estimate.finite
        infinite += math.isinf(estimate.value)
    return matrix, infinite


def analyser_figure(benchmarks: Mapping[str, AnalyserBenchmark]) -> Figure:
    """Return the undershoot and overshoot plane of Fig. 6, a panel for each table."""
    wide = min(len(benchmarks), 3)
    high = -(-len(benchmarks) // wide)
    figure, panels = canvas(3.8 * wide + 1.2, 3.5 * high, wide, high)
    names = list(dict.fromkeys(point.analyser for each in benchmarks.values() for point in each.points))
    for axes, (title, benchmark) in zip(panels, benchmarks.items(), strict=False):
        _plane(axes, benchmark, names)
        axes.set_title(f"{title}, against {benchmark.reference}", fontsize=8)
    for axes in panels[::wide]:
        axes.set_ylabel("normalised overshoot")
    for axes in panels[-wide:]:
        axes.set_xlabel("normalised undershoot")
    legend_beside(panels[wide - 1], 7)
    return figure


def _plane(axes: Axes, benchmark: AnalyserBenchmark, names: Sequence[str]) -> None:
    """Draw the points of one table and the regions they may lie in."""
    for number, name in enumerate(names):
        chosen = [point for point in benchmark.points if point.analyser == name]
        places = [point.undershoot for point in chosen], [point.overshoot for point in chosen]
        mark, colour = _MARKS[number % len(_MARKS)], COLOURS[number % len(COLOURS)]
        axes.plot(*places, mark, color=colour, label=name, alpha=0.8, markersize=5)
    axes.axhline(0, color="grey", linewidth=0.6)
    axes.axvline(0, color="grey", linewidth=0.6)
    right = max(_LEAST_REACH, *(1.1 * point.undershoot for point in benchmark.points))
    top = max(_LEAST_REACH, *(1.1 * point.overshoot for point in benchmark.points))
    axes.set(xlim=(-0.06 * right, right), ylim=(-0.06 * top, top))
    axes.locator_params(nbins=5)
    for x, y, words in ((0.07, 0.07, "P1"), (0.92, 0.07, "R1"), (0.07, 0.93, "R2"), (0.5, 0.5, "R3")):
        axes.text(x, y, words, transform=axes.transAxes, color="grey", fontsize=8)


def mechanism_figure(benchmark: MechanismBenchmark, utility: str, label: str) -> Figure:
    """Return Fig. 7: an error against normalised TCPL, for a guess and for whole reports."""
    figure, panels = canvas(8.8, 3.6, 2)
    names = list(dict.fromkeys(point.mechanism for point in benchmark.points))
    titles = ("one guessed value", "whole report")
    for axes, title in zip(panels, titles, strict=True):
        for number, name in enumerate(names):
            points = [
                (x, y)
                for point in benchmark.points
                if point.mechanism == name
                and (x := point.guess if title == titles[0] else point.report) is not None
                and (y := point.wrong if utility == "wrong" else point.frequency_error) is not None
            ]
            if points:
                mark, colour = _MARKS[number % len(_MARKS)], COLOURS[number % len(COLOURS)]
                axes.plot(*zip(*points, strict=True), mark + "-", color=colour, label=name, linewidth=0.6)
        axes.set_yscale("log")
        axes.set_xlabel("normalised TCPL")
        axes.set_title(f"adversary keeps {title}", fontsize=9)
    panels[0].set_ylabel(label)
    legend_beside(panels[-1], 7)
    return figure
