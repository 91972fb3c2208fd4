"""What every channel must do, compared with plain loops over its matrix or its listed reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

import sidelight as sl
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import (
    MECHANISMS,
    AnyChannel,
    Channel,
    DenseChannel,
    FavouringChannel,
    GaussianChannel,
    ImplicitChannel,
    LaplaceChannel,
    as_channel,
    create,
    mechanism_class,
)
from sidelight.mechanisms.channel import DegradedChannel
from sidelight.schema import Attribute

SIZE = 4
RNG = np.random.default_rng(16)
CELLS = RNG.dirichlet(np.ones(5), size=SIZE)
POINTS = np.array([0.0, 1.0, 1.5, 4.0])
VALUES = Attribute("u", "categorical", tuple("abcd"))


@dataclass(frozen=True)
class Foreign(Channel):
    """Implements what is abstract and nothing else."""

    cells: np.ndarray
    size: int = SIZE
    epsilon: float = 0.1

    def likelihood(self, report: int) -> np.ndarray:
        return self.cells[:, report]

    def matrix(self) -> np.ndarray:
        return self.cells


class Reordered(Foreign):
    """Lists its reports in another order than its matrix does."""

    def all_columns(self) -> np.ndarray:
        return self.cells[:, ::-1]


OURS: dict[str, Channel] = {
    "singletons": FavouringChannel(SIZE, "singletons", math.exp(-1)),
    "identity": FavouringChannel(SIZE, "singletons", 0.0),
    "withheld": FavouringChannel(SIZE, "singletons", 1.0),
    "subsets": FavouringChannel(SIZE, "subsets", math.exp(-1), 2),
    "subsets of all": FavouringChannel(SIZE, "subsets", math.exp(-1), SIZE),
    "all": FavouringChannel(SIZE, "all", math.exp(-1)),
    "hashed": FavouringChannel(SIZE, "all", math.exp(-1), realises_all=False),
    "model": FavouringChannel(SIZE, "singletons", math.exp(-1), is_model=True),
    "beyond doubles": FavouringChannel(SIZE, "all", 0.0, budget=700.0),
    "dense": DenseChannel(CELLS),
    "dense with zeros": DenseChannel(np.array([[0.5, 0.5, 0], [0, 1, 0], [0.25, 0.75, 0], [1, 0, 0]])),
    "counted": create("grr", SIZE, 1.0).channel.repeated(2),
    "any": AnyChannel(SIZE, 1.0, 1e-6),
    "twice": AnyChannel(SIZE, 2.0, within=FavouringChannel(SIZE, "singletons", math.exp(-1))),
    "degraded": DegradedChannel(FavouringChannel(SIZE, "singletons", math.exp(-1)), 1.0),
    "implicit": ImplicitChannel(SIZE, DenseChannel(CELLS).epsilon, lambda report: CELLS[:, report]),
    "laplace": LaplaceChannel(POINTS, 2.0, 2.0),
    "gaussian": GaussianChannel(POINTS, 2.0, 1.0, 1e-6),
    "foreign": Foreign(CELLS),
    "reordered": Reordered(CELLS),
}


def registered() -> Iterator[tuple[str, Channel]]:
    for name in MECHANISMS:
        kind = mechanism_class(name)
        for number, parameters in enumerate(kind.examples(SIZE)):
            mechanism = kind.from_plan(SIZE, 1.0 if kind.has_budget else None, parameters)
            yield f"{name} {number}", mechanism.channel
            yield f"{name} {number}, three times", mechanism.repeated(3)


CHANNELS = OURS | {f"mechanism {name}": channel for name, channel in registered()}
every_channel = pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS.keys())


def listed(channel: Channel) -> np.ndarray:
    """The reports that can be worst, without the package's own list where that is possible."""
    if isinstance(channel, LaplaceChannel):
        far = 1e3 * channel.scale
        at = [*channel.points, channel.points.min() - far, channel.points.max() + far]
        logs = channel.log_density(at)
        return np.exp(logs - logs.max(axis=1, keepdims=True)).T
    if isinstance(channel, DegradedChannel):
        return channel.whole.matrix()
    if not channel.favours_sets:
        return channel.matrix()
    widths = range(SIZE + 1)
    if isinstance(channel, FavouringChannel) and channel.family == "subsets":
        widths = (channel.width,)
    sets = [chosen for width in widths for chosen in combinations(range(SIZE), width)]
    low = math.exp(-channel.epsilon)
    return np.array([[1.0 if value in chosen else low for chosen in sets] for value in range(SIZE)])


def log_ratio(g: np.ndarray, h: np.ndarray, columns: np.ndarray) -> float:
    """The largest log-ratio of one row to another over all reports."""
    worst = 0.0
    for column in columns.T:
        top, bottom = math.fsum(g * column), math.fsum(h * column)
        if top > 0:
            worst = max(worst, math.inf if bottom == 0 else math.log(top) - math.log(bottom))
    return worst


def rows_of(count: int = 5) -> np.ndarray:
    rows = np.random.default_rng(count).dirichlet(np.full(SIZE, 0.7), size=count)
    rows[1] = [0.5, 0.5, 0.0, 0.0]
    rows[2] = [0.0, 0.0, 1.0, 0.0]
    return rows


@every_channel
def test_ratios_agree_with_loops_over_the_reports(channel: Channel) -> None:
    rows, columns = rows_of(), listed(channel)
    if channel.floor == 0 and math.isfinite(channel.epsilon):
        rows = rows[1:3]  # doubles hold no e^-700: between other rows the figure is rounded up
    truth = np.array([[log_ratio(g, h, columns) for h in rows] for g in rows])
    close = {"rel": 1e-9, "abs": 1e-9}
    worst = channel.worst_ratio(rows)
    assert worst.value == pytest.approx(truth.max(), **close)
    assert truth[worst.likelier, worst.unlikelier] == pytest.approx(truth.max(), **close)
    assert channel.ratio_pairs(rows) == pytest.approx(truth, **close)
    assert channel.answers(rows[:, None], rows[None]) == pytest.approx(truth, **close)
    stacked = channel.stacked_worst(np.stack([rows, rows[::-1]]), [channel, channel])
    assert [found.value for found in stacked] == pytest.approx([truth.max()] * 2, **close)
    for i, j in combinations(range(len(rows)), 2):
        assert channel.worst_of_pair(rows, (i, j)).value == pytest.approx(truth[i, j], **close)


@every_channel
def test_the_report_that_is_named_reaches_the_figure(channel: Channel) -> None:
    rows = rows_of()[[0, 3, 4]]
    worst = channel.worst_ratio(rows)
    if worst.value == 0 or channel.epsilon > 100:
        return
    likelihood = np.exp(channel.named_logs(worst.report))
    top, bottom = rows[[worst.likelier, worst.unlikelier]] @ likelihood
    assert math.log(top / bottom) == pytest.approx(worst.value, abs=1e-9)
    assert set(channel.likeliest(worst.report)) <= set(np.flatnonzero(likelihood > likelihood.max() - 1e-12))
    assert channel.describe(VALUES, worst.report).startswith("u")


@every_channel
def test_own_pairs_are_those_of_certain_values(channel: Channel) -> None:
    possible, columns = np.array([0, 2, 3]), listed(channel)
    certain = np.eye(SIZE)[possible]
    truth = [[log_ratio(g, h, columns) for h in certain] for g in certain]
    assert channel.own_pairs(possible) == pytest.approx(np.array(truth), rel=1e-9, abs=1e-9)


@every_channel
def test_listed_reports_are_complete_and_named(channel: Channel) -> None:
    columns = channel.all_columns()
    assert columns.shape == (SIZE, int(channel.count_reports()))
    assert channel.columns() is not None
    shapes = {tuple(np.round(column / column.max(), 9)) for column in columns.T if column.max() > 0}
    expected = {tuple(np.round(column / column.max(), 9)) for column in listed(channel).T if column.max() > 0}
    assert shapes == expected
    logs = channel.all_logs()
    for report in np.flatnonzero(columns.max(axis=0) > 0):
        for listed_logs in (logs[:, report], channel.named_logs(channel.named(int(report)))):
            likelihood = np.exp(listed_logs - listed_logs.max())
            assert likelihood == pytest.approx(columns[:, report] / columns[:, report].max(), rel=1e-12)


@every_channel
def test_contraction_replaces_values_by_reports(channel: Channel) -> None:
    cells = np.random.default_rng(3).random((2, SIZE, 3))
    truth = np.einsum("avb,vr->arb", cells, channel.all_columns())
    assert channel.contract(cells, 1) == pytest.approx(truth)


@every_channel
def test_listable_channels_have_the_law_of_reports(channel: Channel) -> None:
    rows = rows_of()
    if not channel.is_listable:
        with pytest.raises(InputError):
            channel.report_rows(rows)
        return
    law = channel.report_rows(rows)
    assert law == pytest.approx(rows @ channel.matrix())
    assert law.sum(axis=1) == pytest.approx(np.ones(len(rows)))
    for report in range(channel.matrix().shape[1]):
        likelihood, column = channel.likelihood(report), channel.matrix()[:, report]
        assert likelihood * column.sum() == pytest.approx(column * likelihood.sum())


@every_channel
def test_claims_are_never_more_than_is_known(channel: Channel) -> None:
    assert channel.claim in ("exact", "certified", "published")
    assert 0 <= channel.delta <= 1
    assert (channel.attained is channel) == (channel.claim == "exact")
    rows = rows_of()
    assert channel.attained.size == channel.size
    assert channel.attained.worst_ratio(rows).value <= channel.worst_ratio(rows).value + 1e-9
    assert 0 <= channel.floor <= 1
    assert channel.method


@every_channel
def test_repetition_adds_up_budgets(channel: Channel) -> None:
    assert channel.repeated(1) is channel
    twice = channel.repeated(2)
    says_same = channel.epsilon in (0.0, math.inf) and channel.claim == "exact"
    assert twice.epsilon == pytest.approx(channel.epsilon if says_same else 2 * channel.epsilon)
    assert twice.delta == pytest.approx(min(2 * channel.delta, 1.0))
    assert twice.attained.epsilon == pytest.approx(
        2 * channel.epsilon if twice.claim == "exact" and not says_same else channel.attained.epsilon
    )
    assert (twice.claim == "published") == (channel.claim == "published")


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("name", ["grr", "hadamard", "interval", "sue", "oue", "rappor", "the"])
def test_a_few_independent_reports_are_exact(name: str, times: int) -> None:
    mechanism = mechanism_class(name).from_plan(3, 1.0, {})
    once = mechanism.report_law(1 << 12)
    together = once
    for _ in range(times - 1):
        together = (together[:, :, None] * once[:, None, :]).reshape(3, -1)
    channel = mechanism.channel.repeated(times)
    assert channel.claim == "exact"
    for g, h in np.random.default_rng(times).dirichlet(np.ones(3), (20, 2)):
        assert channel.answers(g, h) == pytest.approx(log_ratio(g, h, together), abs=1e-9)


def test_counted_reports_are_told_in_words() -> None:
    channel = create("grr", SIZE, 1.0).channel.repeated(3)
    told = [channel.describe(VALUES, np.array([report])) for report in (0, 1, 5)]
    assert told == ["u: a 3 times", "u: a 2 times, b once", "u: a once, b once, c once"]
    many = create("grr", 9, 1.0).channel.repeated(5)
    assert many.describe(VALUES, np.array([int(np.argmax((many.counts == 1).sum(axis=1)))])).endswith(
        "and 1 more"
    )


def test_every_class_of_channel_is_walked() -> None:
    def leaves(kind: type) -> set[type]:
        below = kind.__subclasses__()
        return {kind} if not below else set().union(*(leaves(part) for part in below))

    ours = {kind for kind in leaves(Channel) if kind.__module__.startswith("sidelight")}
    assert ours <= {type(channel) for channel in OURS.values()}


def test_what_is_abstract_must_be_implemented() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Channel()  # type: ignore[abstract]


class Outside:
    """The members that were documented before there was a base class, and a family that is not its own."""

    family = "subsets"
    size, epsilon = 2, 1.0

    def likelihood(self, report: int) -> np.ndarray:
        return self.matrix()[:, report]

    def matrix(self) -> np.ndarray:
        keep = math.e / (1 + math.e)
        return np.array([[keep, 1 - keep], [1 - keep, keep]])


class OnlyBudget:
    size, epsilon, delta = 2, 1.0, 1e-3


class TooLarge(Outside):
    def matrix(self) -> np.ndarray:
        raise sl.TooLargeError("too many reports to write down.")


@pytest.fixture(scope="module")
def copied() -> sl.Belief:
    """The neighbour is a copy of the secret, so that its report says all that it can."""
    return sl.Belief.from_joint([[0.5, 0.0], [0.0, 0.5]], ["x", "u"])


def test_a_channel_from_outside_is_taken_by_its_matrix_whatever_else_it_says(copied: sl.Belief) -> None:
    outside = Outside()
    truth = sl.pair_leakage(copied, DenseChannel(outside.matrix()), "x", "u")
    assert truth.value == pytest.approx(1.0)
    for leakage in (
        sl.pair_leakage(copied, outside, "x", "u"),
        sl.total_leakage(copied, {"u": outside}, "x"),
        sl.leakage.pair_matrix(copied, {"u": outside}, ["x"])[0][0],
    ):
        assert (leakage.value, leakage.upper.kind) == (pytest.approx(1.0), "exact")


def test_a_channel_that_states_its_budget_alone_is_never_exact(copied: sl.Belief) -> None:
    for outside, delta in ((OnlyBudget(), 1e-3), (TooLarge(), 0.0)):
        channel = as_channel(outside)
        assert (channel.claim, channel.delta) == ("certified", delta)
        leakage = sl.pair_leakage(copied, outside, "x", "u")
        assert leakage.value == pytest.approx(1.0)
        assert (leakage.upper.kind, leakage.lower.value) == ("certified", 0.0)


@pytest.mark.parametrize("nothing", [None, 1.0, "grr", np.eye(2), object(), DenseChannel])
def test_what_states_neither_is_refused(copied: sl.Belief, nothing: object) -> None:
    with pytest.raises(InputError, match="`channel` must be a `Channel`"):
        as_channel(nothing)
    with pytest.raises(InputError, match="`channel` must be a `Channel`"):
        sl.total_leakage(copied, {"u": nothing}, "x")


def test_a_wrong_matrix_from_outside_is_refused(copied: sl.Belief) -> None:
    class Wrong(Outside):
        def matrix(self) -> np.ndarray:
            return np.array([[0.5, 0.2], [0.3, 0.7]])

    with pytest.raises(InputError, match="must sum to 1"):
        sl.pair_leakage(copied, Wrong(), "x", "u")


@pytest.mark.parametrize("budget", [0.5, 2.0, math.inf])
def test_a_budget_that_the_law_contradicts_is_refused(budget: float) -> None:
    """Totals are capped by the budget, so one that is too small would make them too small."""
    matrix = Outside().matrix()
    with pytest.raises(InputError, match="`budget` must be what the channel spends, 1"):
        DenseChannel(matrix, budget)
    with pytest.raises(InputError, match="`budget` must be what the channel spends, 1"):
        FavouringChannel(2, "singletons", math.exp(-1), budget=budget)
    with pytest.raises(InputError, match="`budget` must be"):
        FavouringChannel(2, "all", 0.0, budget=1.0)
    assert DenseChannel(matrix, 1.0 + 1e-12).epsilon == 1.0 + 1e-12
