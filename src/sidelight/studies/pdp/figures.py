"""Paper PDP, Figs. 4 and 5: the published graph with random edges, Gaussian tuples, full against fast search.

Figs. 4(a,b) and 5 use graphs with random beta-distributed edges. No joint distribution is behind them; they
are reproduced as such. The paper gives the mean of its edges and not their spread. With a + b = 1,000 (a
standard deviation of 0.016 at most) the ratios that it shows come out; a wider spread, a + b = 10, does not
give them, and stands beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from sidelight.belief import Gaussian
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.foundation.intervals import student_interval
from sidelight.knowledge import Adversary, WeightedGraph, gaussian_leakage
from sidelight.knowledge.graph import fast_search, full_search
from sidelight.studies.figures import canvas, finish
from sidelight.studies.register import beside
from sidelight.studies.study import Drawing, Reading, StudyResult, Value, Verdict, Work, judged, seconds_of

TUPLES = 15
CONCENTRATION = 1000.0
"""The sum a + b of the beta edges, as we read the paper."""
WIDE = 10.0
"""A wider spread of the edges, which stands beside."""
FAR = 2.0
"""How many times fast search's time full search must take to be called far more."""
CLOSE = 1.1
"""How many times full search fast search may find and still be called very close to it."""
_FIG5 = {"fig5a": 0.2, "fig5b": 0.5, "fig5c": 0.8}


@dataclass(frozen=True, eq=False)
class Curve:
    """One line: a name, where its points are, and every run's heights there."""

    name: str
    x: tuple[float, ...]
    runs: tuple[tuple[float, ...], ...]

    @property
    def y(self) -> tuple[float, ...]:
        """The mean height at each place."""
        return _floats(np.mean(self.runs, axis=0))

    @property
    def spread(self) -> tuple[float, ...]:
        """The standard deviation over the runs at each place."""
        return _floats(np.std(self.runs, axis=0))


@dataclass(frozen=True, eq=False)
class Panel:
    """One figure."""

    key: str  # the study's name without the paper's
    title: str  # what it shows
    axes: tuple[str, str]  # the names of both axes
    curves: tuple[Curve, ...]  # its lines
    log: str = ""  # which axes are logarithmic: "", "y" or "xy"
    missing: tuple[float, ...] = ()  # correlations that could not be drawn
    beside: float = 0.0  # a figure that stands beside: the ratio with a wide spread, or a share


Judgement = tuple[Verdict, Sequence[Value]]
"""A verdict, and our value for each published one."""


def judge_panel(key: str, judge: Callable[[Panel], Judgement], panels: list[Panel]) -> StudyResult:
    """Return the result of the study that consists of one panel."""
    panel = next(panel for panel in panels if panel.key == key)
    verdict, ours = judge(panel)
    rows = [
        (curve.name, x, y, spread)
        for curve in panel.curves
        for x, y, spread in zip(curve.x, curve.y, curve.spread, strict=True)
    ]
    columns = ("line", *panel.axes, "standard deviation")
    said = beside(f"pdp-{key}", *ours)
    return StudyResult(verdict, said, columns, tuple(rows), (drawing(panel, verdict),))


def drawing(panel: Panel, verdict: Verdict) -> Drawing:
    """Return the panel as a figure of its study, its verdict in the title."""
    return Drawing(f"pdp-{panel.key}", panel.title, partial(_figure, panel, verdict.kind))


def _figure(panel: Panel, kind: str) -> Figure:
    figure, (axes,) = canvas(5.6, 3.9)
    for number, curve in enumerate(panel.curves):
        style = ("o-", "s--", "^-.", "d:")[number % 4]
        axes.plot(curve.x, curve.y, style, label=curve.name, markersize=4, linewidth=1.4)
        if len(curve.runs) > 1:
            low, high = (np.array(curve.y) + sign * np.array(curve.spread) for sign in (-1, 1))
            axes.fill_between(curve.x, low, high, alpha=0.2)
    axes.set(**{f"{axis}scale": "log" for axis in panel.log})
    finish(axes, *panel.axes, title=f"{panel.title} ({kind})", size=9, legend=9)
    return figure


def run(quick: bool = False) -> list[Panel]:
    """Compute every panel; `quick` takes fewer tuples and runs."""
    tuples, runs = (8, 5) if quick else (TUPLES, 30)
    return [
        beta_layers(tuples, (0.2, 0.4, 0.6, 0.8), min(runs, 5), "fig4a"),
        beta_layers(tuples, (-0.2, -0.4, -0.6, -0.8), min(runs, 5), "fig4b"),
        gaussian_layers(TUPLES, (0.2, 0.4, 0.6, 0.8), "fig4c"),
        gaussian_layers(TUPLES, (-0.02, -0.04, -0.06, -0.2, -0.4, -0.6, -0.8), "fig4d"),
        *(search_values(tuples, mean, runs, key) for key, mean in _FIG5.items()),
        search_times(tuples, runs),
    ]


def beta_edges(tuples: int, mean: float, seed: int, concentration: float = CONCENTRATION) -> WeightedGraph:
    """Return a graph whose edges are beta-distributed around a mean, with that mean's sign."""
    rng = np.random.default_rng(seed)
    size = abs(mean) * concentration
    # beta(a, b) has the mean a / (a + b), so a = mean x (a + b)
    drawn = rng.beta(size, concentration - size, size=(tuples, tuples, 1 << tuples))
    return WeightedGraph.given(np.copysign(drawn, mean), np.ones(tuples))


def _floats(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def layer_maxima(values: Array) -> list[float]:
    """Return the largest value of each layer, from the strongest adversaries to the weakest."""
    sizes = np.bitwise_count(np.arange(values.shape[1]))
    return [float(np.nanmax(values[:, sizes == known])) for known in range(len(values) - 1, -1, -1)]


def beta_layers(tuples: int, means: Sequence[float], runs: int, key: str) -> Panel:
    """Find each layer's largest value in several runs, for random edges (PDP, Figs. 4(a) and 4(b))."""
    curves = []
    for mean in means:
        maxima = [layer_maxima(full_search(beta_edges(tuples, mean, seed))) for seed in range(runs)]
        heights = tuple(map(_floats, maxima))
        curves.append(Curve(f"mean edge {mean:g}", _floats(range(1, tuples + 1)), heights))
    title, axes = "published graph with random edges", ("layer", "privacy leakage")
    return Panel(key, title, axes, tuple(curves))


def gaussian_layers(tuples: int, correlations: Sequence[float], key: str) -> Panel:
    """Compute leakage by layer for equally correlated Gaussians (PDP, Figs. 4(c) and 4(d))."""
    curves, missing = [], []
    for correlation in correlations:
        try:
            belief = Gaussian.equicorrelated(tuples, correlation)
        except InputError:
            missing.append(correlation)
            continue
        known = (belief.names[layer:] for layer in range(1, tuples + 1))
        values = tuple(gaussian_leakage(belief, Adversary("x1", names)).value for names in known)
        curves.append(Curve(f"correlation {correlation:g}", _floats(range(1, tuples + 1)), (values,)))
    axes = ("layer", "privacy leakage")
    return Panel(key, "Gaussian tuples", axes, tuple(curves), missing=tuple(missing))


def search_values(tuples: int, mean: float, runs: int, key: str) -> Panel:
    """Find the largest value of full-space and fast search (PDP, Figs. 5(a) to 5(c))."""
    found = _searched(tuples, mean, runs, CONCENTRATION)
    curves = tuple(
        Curve(name, _floats(range(1, tuples + 1)), tuple(map(_floats, table)))
        for name, table in zip(("full space", "fast"), found, strict=True)
    )
    wide = _searched(min(tuples, 10), mean, min(runs, 10), WIDE).mean(axis=1)
    title, axes = f"full against fast search, mean edge {mean:g}", ("tuples", "largest leakage")
    return Panel(key, title, axes, curves, beside=float((wide[1] / wide[0]).max()))


def _searched(tuples: int, mean: float, runs: int, concentration: float) -> Array:
    """Return the largest value of both searches, shape (2, runs, tuples)."""
    found = np.empty((2, runs, tuples))
    for seed, row in np.ndindex(runs, tuples):
        # graphs of different sizes must not share their random numbers
        edges = beta_edges(row + 1, mean, 1000 * (row + 1) + seed, concentration)
        found[:, seed, row] = np.nanmax(full_search(edges)), max(fast_search(edges))
    return found


def search_times(tuples: int, runs: int) -> Panel:
    """Measure the time of both searches (PDP, Fig. 5(d)); making the edges is not counted."""
    counts = range(2, tuples + 1)
    times: dict[str, list[float]] = {"full space": [], "fast": []}
    for count in counts:
        edges = beta_edges(count, 0.5, count)
        for name, search in (("full space", full_search), ("fast", fast_search)):
            # the least of the runs: whatever else the machine does only adds time
            times[name].append(min(seconds_of(partial(search, edges)) for _ in range(min(runs, 5))))
    curves = tuple(Curve(name, _floats(counts), (tuple(values),)) for name, values in times.items())
    return Panel("fig5d", "time of full and fast search", ("tuples", "seconds"), curves, log="y")


def judge_layers(panel: Panel) -> Judgement:
    """Judge which layer is worst: the last with positive edges, the first with negative ones.

    Another layer is worse if the 95 % interval of its lead over the runs lies above 0.
    """
    is_positive = panel.key == "fig4a"
    place = -1 if is_positive else 0
    broken = [curve.name for curve in panel.curves if _lead(curve, place) > 0]
    layers = sorted({int(curve.x[int(np.argmax(curve.y))]) for curve in panel.curves})
    worst = "weakest adversary is worst" if is_positive else "strongest adversary is worst, no trend beyond"
    reason = f"the {worst}" if not broken else f"another adversary is worse for {', '.join(broken)}"
    reason += (
        f" ({len(panel.curves[0].runs)} runs, edges of a + b = {CONCENTRATION:g}; no joint distribution is "
        "behind them)"
    )
    shown = ", ".join(str(layer) for layer in layers)
    return judged(not broken, reason), [f"{shown} (of {int(max(panel.curves[0].x))})"]


def _lead(curve: Curve, place: int) -> float:
    """Return the lower end of the 95 % interval by which the highest layer leads another one."""
    runs = np.array(curve.runs)
    ahead = runs[:, int(np.argmax(curve.y))] - runs[:, place]
    return student_interval(ahead).lower if len(runs) > 1 else float(ahead[0])


def judge_gaussians(panel: Panel) -> Judgement:
    """Judge whether leakage grows with the layer and the correlation; exact but for rounding."""
    heights = np.array([curve.y for curve in panel.curves])
    grows = bool((np.diff(heights, axis=1) >= -1e-9).all() and (np.diff(heights, axis=0) >= -1e-9).all())
    trend = "grows" if grows else "does not grow"
    verdict = judged(grows, f"closed form; leakage {trend} with the layer and the correlation")
    tuples = int(max(panel.curves[0].x))
    if panel.missing:
        # equicorrelated covariances are positive semidefinite only down to -1 / (n - 1)
        shown = ", ".join(f"{value:g}" for value in panel.missing)
        least = f"{-1 / (tuples - 1):.4f}"
        reason = f"no covariance of {tuples} tuples has a common correlation below {least}, so {shown} cannot"
        verdict = Verdict("not possible", f"{reason} be drawn")
    if panel.key == "fig4d":
        drawn = ", ".join(curve.name.removeprefix("correlation ") for curve in panel.curves)
        return verdict, [f"{drawn}; {'the others are no covariance' if panel.missing else 'all'}"]
    layers = sorted({int(curve.x[int(np.argmax(curve.y))]) for curve in panel.curves})
    return verdict, [f"{', '.join(map(str, layers))} (of {tuples})"]


def judge_search(panel: Panel) -> Judgement:
    """Judge fast against full search over the runs, with 95 % intervals.

    It must not be below it, and where the paper says that both are close, their ratio not above 1.1.
    """
    full, fast = (np.array(curve.runs) for curve in panel.curves)
    below = [place for place in range(full.shape[1]) if _upper(fast[:, place] - full[:, place]) < -1e-9]
    ratios = fast.mean(axis=0) / full.mean(axis=0)
    most = int(np.argmax(ratios))
    low, high = _ratio_ends(fast[:, most], full[:, most])
    is_close = panel.key == "fig5a" or low <= CLOSE
    reason = (
        f"the mean of {len(full)} runs of fast search is below that of full search, beyond chance, at "
        f"{len(below)} of {full.shape[1]} sizes, and up to "
        f"{ratios[most]:.2f} times as large [{low:.2f}, {high:.2f}] with edges of a + b = {CONCENTRATION:g}; "
        f"with a + b = {WIDE:g} and up to ten tuples, {panel.beside:.2f} times"
    )
    never = f"at {full.shape[1] - len(below)} of {full.shape[1]} sizes"
    ours = (f"{ratios[most]:.2f} [{low:.2f}, {high:.2f}]", never)
    return judged(not below and is_close, reason), ours


def _upper(differences: Array) -> float:
    return student_interval(differences).upper if len(differences) > 1 else float(differences[0])


def _ratio_ends(above: Array, below: Array) -> tuple[float, float]:
    """Return the 95 % interval of a ratio of means over the same runs (delta method)."""
    value = float(above.mean() / below.mean())
    if len(above) == 1:
        return value, value
    rest = student_interval((above - value * below) / below.mean())
    return value + rest.lower, value + rest.upper


def judge_times(panel: Panel) -> Judgement:
    """Judge whether full search takes far more time at the most tuples: over twice as much, as we read it."""
    full, fast = panel.curves
    ratio = full.y[-1] / fast.y[-1]
    words = f"at {int(full.x[-1])} tuples fast search takes {ratio:.3g} times less time"
    return judged(ratio > FAR, words), [ratio]


_FIGURES = Work("pdp-figures", run, minutes=3)
_JUDGES: Mapping[str, Callable[[Panel], Judgement]] = {
    **dict.fromkeys(("fig4a", "fig4b"), judge_layers),
    **dict.fromkeys(("fig4c", "fig4d"), judge_gaussians),
    **dict.fromkeys(_FIG5, judge_search),
    "fig5d": judge_times,
}
STUDIES = {
    f"pdp-{key}": Reading(_FIGURES, partial(judge_panel, key, judge)) for key, judge in _JUDGES.items()
}
