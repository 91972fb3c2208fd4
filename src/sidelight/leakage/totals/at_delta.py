"""Leakage at delta: the smallest L whose hockey-stick divergence is at most delta for all pairs of values.

The worst case asks for the report that says most, however unlikely. Here a release may say more than L with a
small probability: delta averages over people, so 0.01 lets one in a hundred be exposed. Figures at several
deltas therefore stand together, with the worst case at their end.

Where all releases can be listed, the figure is exact. Otherwise releases are drawn (`draws`) and a bound is
certified (`certificate`), beside the bounds that need no draws (`composition`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sidelight.belief import Belief, check_belief
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import TooLargeError, check_is, check_number, check_whole, invalid, unknown
from sidelight.foundation.progress import track
from sidelight.leakage.bounds import Bound, Claim, Witness
from sidelight.leakage.divergence import epsilon_at
from sidelight.leakage.totals.base import joint_claim
from sidelight.leakage.totals.certificate import Draws
from sidelight.leakage.totals.composition import Losses, Releases, composed_losses
from sidelight.leakage.totals.coupling import coupled_losses
from sidelight.leakage.totals.delta_leakage import DeltaLeakage, DeltaPoint
from sidelight.leakage.totals.device import DeviceSampler
from sidelight.leakage.totals.draws import ReleaseSampler
from sidelight.plan import PLAN_FIX, Plan, Release

DELTAS = (1e-2, 1e-3, 1e-4)
"""Figures stand at all of these: one alone hides who is exposed beyond it."""
BETA = 1e-6
_LARGEST_EXACT = 1 << 20
_MOST_REPORTS = 1 << 12
_MOST_TIMES = 64
_MOST_DRAWS = 1 << 23
_MOST_RATIOS = 1 << 30
"""So many log-ratios of a release and a pair of values are drawn; a few in a hundred of them are kept."""
_MOST_COUPLED = 1 << 12
"""So many pairs of values are coupled: some seconds."""
_LEAST_DRAWN = 1e-5
_FEWEST_BEYOND = 32


def leakage_at(
    belief: Belief,
    plan: Plan,
    secret: str,
    delta: float = 1e-3,
    *,
    through: Iterable[str] | None = None,
    draws: int | None = None,
    precision: float | None = None,
    beta: float = BETA,
    seed: int | None = None,
    device: str = "cpu",
) -> DeltaLeakage:
    """Return the leakage of the secret at delta, and at the usual deltas beside it.

    Args:
        belief: what the adversary knows: a table, a tree or a population.
        plan: what is released.
        secret: the attribute to protect, released or not.
        delta: the probability, averaged over the people with a value, with which a release may say more.
        through: the releases that the adversary sees; all by default.
        draws: how many releases of each value; by default so many that few hundredths are usually missing.
        precision: draw on until the figure at delta is within this share of its estimate, or within so
            many nats where it is below 1.
        beta: the probability, over our own coin flips, with which a sampled figure may be too low.
        seed: for figures that can be repeated; else the operating system's coins.
        device: where releases are drawn: "cpu", or "cuda" for a table whose reports can be listed.
    """
    question = Question.of(belief, plan, secret, through)
    asked = check_number("delta", delta, above=0, below=1)
    check_number("beta", beta, above=0, below=1)
    deltas = tuple(sorted({asked, *DELTAS}, reverse=True))
    if (rows := question.exact_rows()) is not None:
        return question.listed(rows, asked, deltas, beta)
    if (wanted := question.wanted_draws(asked, beta, draws)) is None:
        return question.bounded(asked, deltas, beta)
    drawn = question.drawn((asked, deltas[0]), wanted, beta, seed, device)
    if precision is not None:
        drawn = question.drawn_on(drawn, asked, check_number("precision", precision, above=0), beta)
    return question.sampled(drawn, asked, deltas, beta)


def estimates_at(
    belief: Belief,
    plan: Plan,
    secret: str,
    deltas: Sequence[float],
    *,
    through: Iterable[str] | None = None,
    draws: int,
    seed: int | None = None,
) -> dict[float, float]:
    """Return the leakage at each delta by a quick look, without a certificate.

    Exact where all releases can be listed, an estimate from so many draws elsewhere, a bound where nothing
    can be drawn. A delta that so few draws do not reach is left out: their estimate would be too low.
    """
    question = Question.of(belief, plan, secret, through)
    rows = question.exact_rows()
    if rows is not None:
        return {delta: epsilon_at(rows, delta)[0] for delta in deltas}
    if not question.can_be_drawn:
        points = question.bounded(deltas[0], deltas, BETA).points
        return {point.delta: point.upper.value for point in points}
    sampler = ReleaseSampler.of(belief.view(secret), question.runnable, seed)
    drawn = Draws((sampler.block(draws, 0.0).ratios,), draws, 0.0)
    reached = [delta for delta in deltas if delta * draws >= 1]
    return {delta: drawn.estimated(delta)[0] + question.beyond for delta in reached}


def usual_draws(delta: float, beta: float = BETA) -> int:
    """Return how many draws bring the certified figure within a few hundredths of the truth.

    Below ln(1/beta)/delta of them nothing can be certified; what is needed beyond that grows more slowly
    than 1/delta. Nobody waits for what deltas below 1e-5 need: there the bounds without draws decide, and
    the draws are those of the least usual delta.

    >>> usual_draws(1e-2), usual_draws(1e-3), usual_draws(1e-4), usual_draws(1e-9)
    (20000, 89337, 414466, 414466)
    """
    drawn = delta if delta >= _LEAST_DRAWN else DELTAS[-1]
    return math.ceil(max(20_000 * math.pow(1e-2 / drawn, 0.65), -3 * math.log(beta) / drawn))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Releases that were drawn for each value of the secret.

    Attributes:
        sampler: where they come from.
        draws: their log-ratios.
        moves: block by block, by how much each release moves the odds.
    """

    sampler: ReleaseSampler | DeviceSampler
    draws: Draws
    moves: tuple[Array, ...]

    def and_more(self, count: int) -> _Drawn:
        """Return these draws and one more block."""
        block = self.sampler.block(count, self.draws.floor)
        return replace(self, draws=self.draws.and_more(block.ratios), moves=(*self.moves, block.moves))


@dataclass(frozen=True, eq=False)
class Question:
    """Which secret is asked about, and through what."""

    belief: Belief
    releases: Releases
    secret: str

    @classmethod
    def of(cls, belief: Belief, plan: Plan, secret: str, through: Iterable[str] | None) -> Question:
        """Check what is asked."""
        check_belief("belief", belief)
        check_is("plan", plan, Plan, PLAN_FIX)
        if secret not in belief.schema:
            raise unknown("attribute", secret, belief.schema.names)
        if through is None:
            releases = {release.name: release for release in plan.releases}
        else:
            releases = {name: plan[name] for name in ([through] if isinstance(through, str) else through)}
        for name in releases:
            if name not in belief.schema:
                raise unknown("attribute", name, belief.schema.names)
        return cls(belief, releases, secret)

    @cached_property
    def runnable(self) -> Releases:
        """The releases whose reports can be drawn."""
        return {name: item for name, item in self.releases.items() if _is_runnable(item)}

    @property
    def can_be_drawn(self) -> bool:
        """Whether releases can be drawn and weighed: a belief that knows pairs alone has no people."""
        return bool(self.runnable) and self.belief.knows_joints

    @cached_property
    def beyond(self) -> float:
        """What the other releases add at most: no report moves odds by more than its budget."""
        return math.fsum(_budget(item) for name, item in self.releases.items() if name not in self.runnable)

    def exact_rows(self) -> Array | None:
        """Return Pr(release | value) of every possible value and release; None if there are too many."""
        if len(self._priors) == 1:  # a secret that is no secret: every release is as likely
            return np.ones((1, 1))
        others = [name for name in self.releases if name != self.secret]
        sizes = [self.belief.schema[name].size for name in (self.secret, *others)]
        if not (self.belief.knows_joints or len(others) <= 1) or math.prod(sizes) > _LARGEST_EXACT:
            return None
        tables: dict[str, Array] = {}
        for name, item in self.releases.items():
            if (table := _report_table(item)) is None:
                return None
            tables[name] = table
        if sizes[0] ** 2 * math.prod(max(table.shape) for table in tables.values()) > _LARGEST_EXACT:
            return None
        cells = self.belief.joint([self.secret, *others])
        for name in others:  # the first of the other axes goes, its reports come last
            cells = np.tensordot(cells, tables[name], axes=(1, 0))
        rows = cells.reshape(len(cells), -1)
        own = tables.get(self.secret)
        if own is not None:
            rows = (own[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
        mass = rows.sum(axis=1, keepdims=True)
        return np.asarray((rows / np.where(mass > 0, mass, 1))[mass[:, 0] > 0])

    def listed(self, rows: Array, asked: float, deltas: Sequence[float], beta: float) -> DeltaLeakage:
        """Return the exact figures of releases that are listed."""
        # Every report is listed by itself, however often it is sent, so what one of them claims is enough.
        once = {name: item.randomiser().channel for name, item in self.releases.items()}
        claim: Claim = "model" if self.belief.is_model else joint_claim(once)
        points = []
        for delta in deltas:
            value, *pair = epsilon_at(rows, delta)
            bound = Bound(value, claim, "every release listed", self._witness(*pair))
            points.append(DeltaPoint(delta, bound, None, *self._without_draws(delta)))
        sent = rows[:, rows.any(axis=0)]
        with np.errstate(divide="ignore"):  # a value that rules a report out moves the odds without limit
            logs = np.log(sent)
        moves = logs.max(axis=0) - logs.min(axis=0)
        return self._result(asked, points, 0, beta, moves, self._priors @ sent)

    def wanted_draws(self, delta: float, beta: float, draws: int | None) -> int | None:
        """Return how many releases to draw for each value; None if too few can be to certify anything."""
        if not self.can_be_drawn:
            return None
        if draws is None:
            wanted = min(usual_draws(delta, beta), self._most_draws)
            return wanted if wanted >= max(16.0, -math.log(beta) / delta) else None
        if check_whole("draws", draws, at_least=16) > self._most_draws:
            raise TooLargeError(
                f"{draws} draws for each of {len(self._priors)} values of {self.secret!r} are more than "
                f"memory holds; ask for at most {self._most_draws}, or group the values."
            )
        return draws

    @property
    def _most_draws(self) -> int:
        """How many releases can be drawn for each value: each is compared with all other values."""
        return _MOST_RATIOS // math.perm(len(self._priors), 2)

    def drawn(
        self, deltas: tuple[float, float], wanted: int, beta: float, seed: int | None, device: str = "cpu"
    ) -> _Drawn:
        """Draw so many releases for each value, in blocks of which each settles the stakes on the next.

        Args:
            deltas: the one whose figure is shown on the way, and the largest that will be asked for.
            wanted: how many.
            beta: the probability with which the figure shown may be too low.
            seed: where the coins come from.
            device: where they are tossed.
        """
        sampler = self._sampler(seed, device)
        reach = [max(1, wanted // part) for part in (16, 8, 4, 2, 1)]
        first = sampler.block(reach[0], 0.0)
        draws = Draws((first.ratios,), wanted, 0.0)
        draws = replace(draws, floor=_floor(draws, deltas[1]))
        drawn = _Drawn(sampler, draws, (first.moves,))

        def running() -> str:
            return self._running(drawn, deltas[0], beta)

        for count in track(np.diff(reach).tolist(), running):
            drawn = drawn.and_more(count)
        return drawn

    def _sampler(self, seed: int | None, device: str) -> ReleaseSampler | DeviceSampler:
        if device == "cpu":
            return ReleaseSampler.of(self.belief.view(self.secret), self.runnable, seed)
        tables = {name: _report_table(item) for name, item in self.runnable.items()}
        listed = {name: table for name, table in tables.items() if table is not None}
        if missing := [name for name in tables if name not in listed]:
            raise invalid("device", f"'cpu', since the reports of {missing[0]!r} cannot be listed", device)
        return DeviceSampler.of(self.belief, listed, self.secret, device, seed)

    def drawn_on(self, drawn: _Drawn, delta: float, precision: float, beta: float) -> _Drawn:
        """Draw on until the certified figure is this close to the estimate."""

        def is_close() -> bool:
            figure, estimate = drawn.draws.certified(delta, beta), drawn.draws.estimated(delta)[0]
            if math.isinf(estimate):  # no draws will change that, once they are as many as show delta
                return drawn.draws.count >= usual_draws(delta, beta)
            return figure - estimate <= precision * max(figure, 1.0) < math.inf

        def running() -> str:
            return self._running(drawn, delta, beta)

        most = max(0, (min(_MOST_DRAWS, self._most_draws) // drawn.draws.count).bit_length() - 1)
        for _ in track(range(most), running):
            if is_close():
                break
            drawn = drawn.and_more(drawn.draws.count)
        return drawn

    def _running(self, drawn: _Drawn, delta: float, beta: float) -> str:
        """Return the figure so far, in words."""
        figure = drawn.draws.certified(delta, beta) + self.beyond
        estimate = drawn.draws.estimated(delta)[0] + self.beyond
        return f"releases about {self.secret}: {figure:.3g} (estimate {estimate:.3g})"

    def sampled(self, drawn: _Drawn, asked: float, deltas: Sequence[float], beta: float) -> DeltaLeakage:
        """Return figures from drawn releases, beside those that need no draws."""
        points, count = [], drawn.draws.count
        for delta in deltas:
            estimate, pair = drawn.draws.estimated(delta)
            value = drawn.draws.certified(delta, beta) + self.beyond
            claim: Claim = "model" if self.belief.is_model else "sampled"
            method = f"{count} releases drawn for each value"
            bound = Bound(value, claim, method, self._witness(*pair))
            composed, coupled = self._without_draws(delta)
            # Where two agree, the one that needs no coins comes first.
            options = [other for other in (composed, coupled, bound) if other is not None]
            upper = min(options, key=lambda option: option.value)
            points.append(DeltaPoint(delta, upper, estimate + self.beyond, composed, coupled))
        moves = np.concatenate(drawn.moves, axis=1)
        weights = np.repeat(self._priors / count, count)
        return self._result(asked, points, count, beta, moves.reshape(-1) + self.beyond, weights)

    def bounded(self, asked: float, deltas: Sequence[float], beta: float) -> DeltaLeakage:
        """Return figures that need no draws, where nothing can be drawn."""
        bounds = [(delta, *self._without_draws(delta)) for delta in deltas]
        points = [
            DeltaPoint(delta, coupled or composed, None, composed, coupled)
            for delta, composed, coupled in bounds
        ]
        worst = self._composed.leakage(0.0)
        return self._result(asked, points, 0, beta, np.array([worst]), np.ones(1))

    @cached_property
    def _composed(self) -> Losses:
        return composed_losses(self.releases)

    @cached_property
    def _coupled(self) -> Losses | None:
        records = self.belief.records
        if records is None or math.comb(len(self._priors), 2) > _MOST_COUPLED:
            return None
        return coupled_losses(records, self.belief.smoothing, self.releases, self.secret)

    def _without_draws(self, delta: float) -> tuple[Bound, Bound | None]:
        composed = Bound(self._composed.leakage(delta), "certified", "composition at delta")
        if self._coupled is None:
            return composed, None
        value = min(self._coupled.leakage(delta), composed.value)
        return composed, Bound(value, "certified", "records coupled")

    def _result(
        self,
        asked: float,
        points: Sequence[DeltaPoint],
        draws: int,
        beta: float,
        moves: Array,
        weights: Array,
    ) -> DeltaLeakage:
        order = np.argsort(moves)
        return DeltaLeakage(
            self.secret,
            tuple(self.releases),
            asked,
            tuple(points),
            draws,
            beta,
            moves[order],
            np.cumsum(weights[order]),
        )

    @cached_property
    def _priors(self) -> Array:
        """The probabilities of the values that can occur."""
        prior = self.belief.prior(self.secret)
        return prior[prior > 0]

    def _witness(self, likelier: int, unlikelier: int) -> Witness | None:
        if likelier == unlikelier:
            return None
        possible = np.flatnonzero(self.belief.prior(self.secret) > 0)
        labels = self.belief.schema[self.secret].values
        return Witness("reports together", labels[possible[likelier]], labels[possible[unlikelier]])


def _floor(first: Draws, largest: float) -> float:
    """Return what log-ratios to forget: half of what the first draws show at four times the largest delta.

    No figure will be asked for below it. Few draws say too little to forget anything.
    """
    if 4 * largest >= 1 or 4 * largest * first.count < _FEWEST_BEYOND:
        return 0.0
    floor = first.estimated(4 * largest)[0] / 2
    return floor if floor < math.inf else 0.0


def _is_runnable(release: Release) -> bool:
    mechanism, times = release.sent()
    return mechanism.makes_reports and times <= _MOST_TIMES


def _budget(release: Release) -> float:
    """Return by how much all reports of a release move odds at most; without limit where a delta remains."""
    mechanism, times = release.sent()
    return math.inf if mechanism.delta else times * mechanism.epsilon


def _report_table(release: Release) -> Array | None:
    """Return Pr(reports | value), shape (values, reports), where they can be listed."""
    mechanism, times = release.sent()
    once = mechanism.report_law(_MOST_REPORTS)
    if once is None or times * math.log(once.shape[1]) > math.log(_LARGEST_EXACT):
        return None
    table = once
    for _ in range(times - 1):
        table = (table[:, :, None] * once[:, None, :]).reshape(len(once), -1)
    return table
