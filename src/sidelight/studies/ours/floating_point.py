"""The floating-point attack: what a naive Laplace sampler gives away, and our release under the same tests.

Values are drawn evenly from a few candidates and released by the naive sampler and by our own mechanism. The
naive sampler is asked which candidates could have made each double; ours is asked the same, and which
candidates its own grid allows. A seed makes the noise of both, so that the study is the same every time;
where the extra `numeric` is installed, the noise of a real release is tried as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sidelight.attacks.floating_point import FloatingPointResult, attack_naive, attack_release
from sidelight.foundation.errors import MissingExtraError
from sidelight.foundation.intervals import mean_interval, paired_interval
from sidelight.studies.figures import canvas, finish, legend_beside
from sidelight.studies.study import Reading, StudyResult, Verdict, Work, plain_table

CANDIDATES: Mapping[str, tuple[int, ...]] = {
    "0 or 1": (0, 1),
    "ages 17 to 89": tuple(range(17, 90)),
    "1000 or 1001": (1000, 1001),
}
"""The values that a person can have."""
REFERENCE: Mapping[str, tuple[str, float, float]] = {
    "0 or 1": ("80% to 92%", 0.80, 0.92),
    "ages 17 to 89": ("0.7%", 0.0065, 0.0075),
    "1000 or 1001": ("0.1%", 0.0005, 0.0015),
}
"""The share of values that an earlier, separate computation recovered for certain, as it was written down and
as the range that this stands for; its budgets were not kept."""
NAIVE = "naive sampler"
SIMULATED = "ours, seeded noise"
SECURE = "ours, noise of a real release"
GRID = "its grid"
DOUBLES = "doubles"
BUDGETS = (0.5, 1.0, 2.0, 4.0)
CONFIDENCE = 0.999
"""The confidence of each interval: two dozen together give a false alarm about once in a hundred studies."""
_SEED = 1


@dataclass(frozen=True)
class FloatingPointRow:
    """One release of one set of candidates under one test."""

    candidates: str  # the values that a person can have, in words
    values: int  # how many they are
    epsilon: float  # the budget
    release: str  # the sampler
    test: str  # what excludes candidates: the "doubles" that a naive sampler can make, or our release's grid
    people: int  # how many values were released
    recovered: float  # the share of values that are the only feasible ones
    recovered_lower: float  # the lower end of its interval
    recovered_upper: float  # the upper end
    misled: float  # the share of records whose only feasible value is a wrong one
    left: float  # the mean size of the feasible set
    gain: float  # how much rarer wrong guesses are than those of the nearest candidate
    gain_lower: float  # the lower end of its interval
    gain_upper: float  # the upper end

    @property
    def excludes_nothing(self) -> bool:
        """Whether every candidate is feasible in every record, so that the attack is its control."""
        return self.left == self.values and self.recovered == 0 and self.gain == 0


@dataclass(frozen=True)
class FloatingPointStudy:
    """All rows."""

    rows: tuple[FloatingPointRow, ...]  # candidates by candidates
    missing: str = ""  # why the noise of a real release was not tried; empty where it was

    def of(self, release: str, test: str = "", candidates: str = "") -> list[FloatingPointRow]:
        """Return the rows of a release, under one test and of one set of candidates where they are named."""
        rows = [row for row in self.rows if row.release == release and test in ("", row.test)]
        return [row for row in rows if candidates in ("", row.candidates)]


def run(quick: bool = False) -> FloatingPointStudy:
    """Attack every release of every set of candidates."""
    people, real = (5_000, 500) if quick else (30_000, 4_000)
    rows = []
    for (name, candidates), epsilon in product(CANDIDATES.items(), BUDGETS):
        result = attack_naive(candidates, epsilon, people, _SEED)
        rows.append(_row(name, epsilon, NAIVE, DOUBLES, result))
        for label, test in ((DOUBLES, "naive"), (GRID, "grid")):
            result = attack_release(candidates, epsilon, people, _SEED, secure=False, test=test)
            rows.append(_row(name, epsilon, SIMULATED, label, result))
    try:
        for (name, candidates), epsilon in product(CANDIDATES.items(), BUDGETS):
            result = attack_release(candidates, epsilon, real, _SEED)
            rows.append(_row(name, epsilon, SECURE, GRID, result))
    except MissingExtraError as error:
        return FloatingPointStudy(tuple(rows), str(error))
    return FloatingPointStudy(tuple(rows))


def _row(name: str, epsilon: float, release: str, test: str, result: FloatingPointResult) -> FloatingPointRow:
    own = result.feasible[np.arange(len(result.truth)), result.truth]
    alone = result.sizes == 1
    recovered = mean_interval(own & alone, CONFIDENCE)
    gain = paired_interval(result.attack.control_losses - result.attack.losses, CONFIDENCE)
    named = (name, result.feasible.shape[1], epsilon, release, test, len(result.truth))
    shares = (result.recovered, recovered.lower, recovered.upper, float((alone & ~own).mean()))
    return FloatingPointRow(*named, *shares, result.mean_size, *astuple(gain))


def recovery_figure(study: FloatingPointStudy) -> Figure:
    """Return the share recovered, and the share of the candidates that are left, against the budget."""
    figure, panels = canvas(9.5, 4.2, 2)
    for number, name in enumerate(CANDIDATES):
        colour = f"C{number}"
        _lines(panels, study.of(NAIVE, candidates=name), f"{NAIVE}, {name}", "-", colour)
        _lines(panels, study.of(SIMULATED, GRID, name), "" if number else "ours, all three", "--", "black")
        panels[0].axhspan(*REFERENCE[name][1:], color=colour, alpha=0.15, linewidth=0)
    panels[0].set_yscale("symlog", linthresh=1e-3)  # a plain logarithm could not show 0, which is ours
    panels[0].set(ylim=(-2e-4, 1.3), ylabel="share recovered for certain (shaded: reference)")
    panels[1].set(ylim=(0, 1.05), ylabel="mean share of the candidates that are left")
    legend_beside(panels[1])
    return figure


def _lines(panels: list[Axes], rows: list[FloatingPointRow], label: str, style: str, colour: str) -> None:
    """Draw a release into both panels."""
    budgets = [row.epsilon for row in rows]
    heights = ([row.recovered for row in rows], [row.left / row.values for row in rows])
    for axes, line in zip(panels, heights, strict=True):
        axes.plot(budgets, line, style, marker="o", color=colour, label=label or "_unnamed")
        axes.set_xscale("log")
        axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets], minor=False)
        axes.minorticks_off()
        finish(axes, "budget")


def _judge_floating_point(study: FloatingPointStudy) -> StudyResult:
    sampler, meets_reference = _naive_sampler(study)
    release, resists = _our_release(study)
    verdict = Verdict("measured" if meets_reference and resists else "differs", f"{sampler}; {release}")
    return StudyResult(verdict, {}, *plain_table(study.rows))


def _naive_sampler(study: FloatingPointStudy) -> tuple[str, bool]:
    """Say what the naive sampler gives away, and whether that meets the reference."""
    parts, missed = [], []
    for name, (words, low, high) in REFERENCE.items():
        rows = study.of(NAIVE, candidates=name)
        share = _range([row.recovered for row in rows], ".1%")
        left = _range([row.left for row in rows], ".3g")
        beside = f"reference {words}; {left} of {rows[0].values} candidates are left"
        parts.append(f"{share} where values are {name} ({beside})")
        # met where the shares of all budgets, with their intervals, overlap the range
        if min(row.recovered_lower for row in rows) > high or max(row.recovered_upper for row in rows) < low:
            missed.append(name)
    words = f"the naive sampler gives away for certain {', '.join(parts)}"
    return words + (f", which is not the reference on {', '.join(missed)}" if missed else ""), not missed


def _our_release(study: FloatingPointStudy) -> tuple[str, bool]:
    """Say whether our release excludes nothing by its grid and loses nothing by the naive sampler's test."""
    grid = [*study.of(SIMULATED, GRID), *study.of(SECURE, GRID)]
    open_rows = sum(not row.excludes_nothing for row in grid)
    beaten = sum(row.gain_lower > 0 for row in study.of(SIMULATED, DOUBLES))
    noise = f"seeded noise only: {study.missing}" if study.missing else "seeded noise and a real release's"
    if not open_rows and not beaten:
        return f"ours excludes no candidate ({noise}), and the naive sampler's test gains nothing on it", True
    shown = f"ours excludes candidates in {open_rows} of {len(grid)} settings ({noise})"
    return f"{shown}, and the naive sampler's test beats its control in {beaten}", False


def _range(values: Sequence[float], digits: str) -> str:
    low, high = format(min(values), digits), format(max(values), digits)
    return low if low == high else f"{low} to {high}"


STUDIES = {"floating-point": Reading(Work("floating-point", run), _judge_floating_point, recovery_figure)}
