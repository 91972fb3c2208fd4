"""How far learnt attacks go on the way to the Bayes limit, and whether any goes beyond it.

On records of a known belief the posterior gives every report's least expected loss, the limit. An attacker
who knows no belief and learns from records of his own is measured twice. How far he goes is what his guesses
are *expected* to lose given the reports: the truth need not be drawn, and the share has a narrow interval.
Whether he is beyond the limit is judged by what he *did* lose on the true records, which could show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sidelight.attacks.attack import Guess, losses
from sidelight.attacks.learners import Schedule, torch_library
from sidelight.attacks.learnt import LearntAttacker
from sidelight.attacks.numbers import Numbers
from sidelight.attacks.owner import Noise, NoisyNumbers, protect
from sidelight.attacks.posterior import Posterior, posterior
from sidelight.attacks.reconstruction import fit_aware
from sidelight.attacks.released import Released, release
from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Codes
from sidelight.foundation.errors import MissingExtraError
from sidelight.foundation.intervals import Interval, student_interval
from sidelight.mechanisms import Reports
from sidelight.plan import Plan, Release
from sidelight.sources.examples import survey_joint
from sidelight.studies.figures import canvas, legend_beside
from sidelight.studies.study import Reading, StudyResult, Verdict, Work, plain_table

ENOUGH = 0.95
"""The share of the way that the best learnt attack is said to go in every setting."""
CONFIDENCE = 0.999
"""The confidence of each interval: two dozen together give a false alarm about once in a hundred studies."""
_SEED = 1


@dataclass(frozen=True)
class LimitRow:
    """One learnt attack in one setting; losses are error rates, or distances in shares of the range."""

    belief: str  # the records' law, in words
    mechanism: str  # what each attribute is reported through
    epsilon: float  # the budget of each attribute
    attacker: str  # who learns
    records: int  # how many true records are attacked
    control: float  # the expected loss without a release
    limit: float  # the least expected loss of anyone
    expected: float  # what the attacker's guesses are expected to lose given the reports
    share: float  # of the way from the control to the limit
    share_lower: float  # the lower end of its interval
    share_upper: float  # the upper end
    beyond_lower: float  # the lower end of the interval of what he did lose, less the limit
    beyond_upper: float  # the upper end; below 0 he is beyond the limit by more than the interval

    @property
    def setting(self) -> str:
        """The belief, the mechanism and the budget, in words."""
        return f"{self.belief}, {self.mechanism} at {self.epsilon:g}"


@dataclass(frozen=True)
class LimitStudy:
    """All rows."""

    rows: tuple[LimitRow, ...]  # setting by setting
    missing: str = ""  # why no network was tried; empty where one was


def run(quick: bool = False) -> LimitStudy:
    """Let boosted trees, and a network where torch is installed, attack every setting."""
    models, missing = learners(quick)
    rows = [row for case in _coded_cases()[: 2 if quick else None] for row in _coded_rows(case, quick)]
    for case in _number_cases()[: 1 if quick else None]:
        rows += _number_rows(case, models, quick)
    return LimitStudy(tuple(rows), missing)


def learners(quick: bool) -> tuple[list[str], str]:
    """Return who learns about numbers, and why no network does where none does."""
    if quick:
        return ["boosted"], "a quick run trains none"
    try:
        torch_library()
    except MissingExtraError as error:
        return ["boosted"], str(error)
    return ["boosted", "mlp"], ""


@dataclass(frozen=True, eq=False)
class _CodedCase:
    """A joint distribution of codes, the secret, and mechanisms with their budgets."""

    name: str
    belief: Belief
    joint: Array
    secret: str
    releases: tuple[tuple[str, float], ...]
    withheld: tuple[str, ...] = ()


def _coded_cases() -> list[_CodedCase]:
    schema, survey = survey_joint()
    step = np.array([[0.85, 0.15], [0.15, 0.85]])
    chain = np.einsum("a,ab,bc,cd,de->abcde", [0.5, 0.5], step, step, step, step)
    # a small concentration puts the weight on few cells, so that one attribute tells much about another
    table = np.random.default_rng(_SEED).dirichlet(np.full(64, 0.3)).reshape(4, 4, 4)
    several = (("grr", 2.0), ("grr", 1.0), ("grr", 4.0), ("oue", 2.0))
    two = (("grr", 2.0), ("grr", 1.0))
    bits, cells = Belief.from_joint(chain, list("abcde")), Belief.from_joint(table, list("abc"))
    return [
        _CodedCase("survey", Belief.from_joint(survey, schema), survey, "education", several),
        _CodedCase("chain of bits", bits, chain, "a", two, withheld=("a",)),
        _CodedCase("random table", cells, table, "a", two),
    ]


def _coded_rows(case: _CodedCase, quick: bool) -> Iterator[LimitRow]:
    """Attack with boosted trees that learn from reports of the attacker's own records."""
    own, true = _two_halves(case.joint, 5_000 if quick else 12_000)
    schema = case.belief.schema
    codes = true[:, schema.index(case.secret)].astype(np.intp)
    for mechanism, epsilon in case.releases[: 1 if quick else None]:
        plan = Plan.uniform(schema, mechanism, epsilon).withholding(list(case.withheld))
        reports = release(true, schema, plan, seed=_SEED)
        learnt = LearntAttacker.fit(own, schema, plan, case.secret, copies=2, seed=_SEED)
        guess = learnt.guess(reports, case.secret, CONFIDENCE)
        exact = posterior(case.belief, reports, case.secret)
        points = np.arange(exact.probabilities.shape[1], dtype=np.float64)
        yield _row((case.name, mechanism, epsilon, "boosted trees"), guess, exact, points, codes)


def _two_halves(joint: Array, count: int) -> tuple[Codes, Codes]:
    """Draw the attacker's records and the attacked ones, each of the shape (count, attributes)."""
    cells = np.random.default_rng(_SEED).choice(joint.size, 2 * count, p=joint.reshape(-1))
    codes = np.stack(np.unravel_index(cells, joint.shape), axis=1).astype(np.uint16)
    return codes[:count], codes[count:]


@dataclass(frozen=True, eq=False)
class _NumberCase:
    """A joint distribution of the last attribute, the secret, and others, on evenly spaced numbers."""

    name: str
    joint: Array
    levels: tuple[float, ...]
    epochs: int

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes, the secret last."""
        return tuple("abcdef"[: self.joint.ndim])

    @property
    def points(self) -> list[Array]:
        """The numbers that each attribute can be."""
        return [np.linspace(0, 1, size) for size in self.joint.shape]

    def numbers(self, codes: Codes) -> Numbers:
        """Return records as numbers between 0 and 1, which they are already."""
        values = np.stack([points[codes[:, i]] for i, points in enumerate(self.points)], axis=1)
        ends = np.zeros(values.shape[1])
        return Numbers(self.names, values, ends, ends + 1, (False,) * values.shape[1])

    def reports(self, noisy: NoisyNumbers) -> tuple[Belief, Released]:
        """Return the belief, and the released numbers as reports that the Bayes attack reads."""
        belief = Belief.from_joint(self.joint, list(self.names))
        laws = ({"lower": 0.0, "upper": 1.0, "points": points.tolist()} for points in self.points)
        parts = zip(belief.schema, laws, strict=True)
        plan = Plan(tuple(Release(each, "laplace", noisy.level, parameters=law) for each, law in parts))
        columns = {name: Reports(noisy.values[:, i].copy()) for i, name in enumerate(self.names)}
        return belief, Released(plan, columns, len(noisy))


def _number_cases() -> list[_NumberCase]:
    """Return the beliefs; a network that sees the sum for a quarter as long stops at 94 % of the way."""
    points = np.linspace(0, 1, 9)
    near = np.exp(-6 * np.abs(points[:, None] - points))
    first, second, total = np.indices((5, 5, 9))
    added = (total == first + second) / 25
    return [
        _NumberCase("two near numbers", near / near.sum(), (3.0, 5.0, 10.0), epochs=20),
        _NumberCase("sum of two numbers", added, (3.0, 10.0), epochs=60),
    ]


def _number_rows(case: _NumberCase, models: Sequence[str], quick: bool) -> Iterator[LimitRow]:
    """Attack with noise-aware learners, each trained once for all levels."""
    own, true = (case.numbers(codes) for codes in _two_halves(case.joint, 5_000 if quick else 20_000))
    secret, noise = case.names[-1], Noise("laplace")
    levels = case.levels[1:2] if quick else case.levels
    training = Schedule(case.epochs, batch=512, rate=4e-3, device="cpu")
    fit = partial(fit_aware, own, [secret], noise, levels, schedule=training, seed=_SEED)
    attackers = {model: fit(model) for model in models}
    for level in levels:
        noisy = protect(true, noise, level, [secret], seed=_SEED)
        exact = posterior(*case.reports(noisy), secret)
        for model, attacker in attackers.items():
            guess = attacker.guess(noisy, secret, CONFIDENCE)
            named = (case.name, "laplace", level, _WORDS[model])
            yield _row(named, guess, exact, case.points[-1], attacker.truth(true, secret).reshape(-1))


_WORDS = {"boosted": "boosted trees", "mlp": "MLP"}


def _row(
    named: tuple[str, str, float, str], guess: Guess, exact: Posterior, points: Array, true: NDArray[Any]
) -> LimitRow:
    """Measure guesses against the posterior, which knows the belief, and against the truth."""
    is_value = guess.measure == "error rate"
    best = exact.mode() if is_value else exact.median(points)
    guesses = guess.guesses.reshape(-1)
    control, limit, expected = (
        _expected(np.broadcast_to(said.reshape(-1), best.shape), exact, points, is_value=is_value)
        for said in (guess.control, best, guesses)
    )
    share = ratio_interval(control - expected, control - limit, CONFIDENCE)
    beyond = student_interval(losses(guesses, true, guess.measure) - limit, CONFIDENCE)
    means = (float(control.mean()), float(limit.mean()), float(expected.mean()))
    return LimitRow(*named, len(best), *means, *(*astuple(share), beyond.lower, beyond.upper))


def _expected(guesses: NDArray[Any], exact: Posterior, points: Array, *, is_value: bool) -> Array:
    """Return what each guess is expected to lose given the report, shape (n,)."""
    difference = guesses[:, None] - points
    cost = (difference != 0) if is_value else np.abs(difference)
    return np.asarray((exact.probabilities * cost).sum(axis=1))


def ratio_interval(above: Array, below: Array, confidence: float) -> Interval:
    """Return the ratio of two means over the same records with its interval (Cochran 1977, section 6.3).

    >>> ratio_interval(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]), 0.95)
    Interval(value=0.5, lower=0.5, upper=0.5)
    """
    value = float(above.mean() / below.mean())
    # to first order the ratio's error is the mean of (above - value x below) over the mean below
    rest = student_interval((above - value * below) / below.mean(), confidence)
    return Interval(value, value + rest.lower, value + rest.upper)


def way_figure(study: LimitStudy) -> Figure:
    """Return every attack's share of the way with its interval, setting by setting."""
    settings = list(dict.fromkeys(row.setting for row in study.rows))[::-1]
    figure, (axes,) = canvas(9.5, 0.35 * len(settings) + 1.5)
    for number, attacker in enumerate(dict.fromkeys(row.attacker for row in study.rows)):
        rows = [row for row in study.rows if row.attacker == attacker]
        shares = np.array([row.share for row in rows])
        ends = [shares - [row.share_lower for row in rows], [row.share_upper for row in rows] - shares]
        heights = [settings.index(row.setting) - 0.2 * number for row in rows]
        axes.errorbar(shares, heights, xerr=ends, fmt="os"[number % 2], capsize=3, label=attacker)
    axes.axvline(1.0, color="black", linewidth=1, label="Bayes limit")
    axes.axvline(ENOUGH, color="black", linewidth=1, linestyle=":", label=f"{ENOUGH:.0%} of the way")
    axes.set_yticks(range(len(settings)), settings)
    axes.set_xlabel("share of the way from no release to the Bayes limit")
    axes.grid(visible=True, axis="x", alpha=0.3)
    legend_beside(axes)
    return figure


def _judge_limits(study: LimitStudy) -> StudyResult:
    by_setting: dict[str, list[LimitRow]] = {}
    for row in study.rows:
        by_setting.setdefault(row.setting, []).append(row)
    best = [max(rows, key=lambda row: row.share) for rows in by_setting.values()]
    least = min(best, key=lambda row: row.share)
    short = sum(row.share < ENOUGH for row in best)
    beyond = sum(row.beyond_upper < 0 for row in study.rows)
    way = f"at least {least.share:.1%} [{least.share_lower:.1%}, {least.share_upper:.1%}] of the way"
    reached = f"{f'short of {ENOUGH:.0%} in {short} of ' if short else ''}{len(best)} settings"
    passed = f"{beyond or 'none'} of {len(study.rows)} attacks {'are' if beyond > 1 else 'is'} beyond it"
    reason = (
        f"the best learnt attack goes {way} to the Bayes limit ({least.setting}, {least.attacker}; "
        f"{reached}); {passed} by more than its interval"
    )
    if study.missing:
        reason += f"; no network was tried: {study.missing}"
    verdict = Verdict("differs" if short or beyond else "measured", reason)
    return StudyResult(verdict, {}, *plain_table(study.rows))


STUDIES = {"attack-limit": Reading(Work("attack-limit", run, minutes=0.5), _judge_limits, way_figure)}
