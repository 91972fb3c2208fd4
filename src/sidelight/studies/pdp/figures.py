"""Paper PDP, Figs. 4 and 5: the published graph with random edges, Gaussian tuples, full against fast search.

Figs. 4(a,b) and 5 use graphs with random beta-distributed edges. No joint distribution is behind them; they
are reproduced as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Gaussian
from sidelight.foundation.errors import InputError
from sidelight.knowledge import Adversary, Edges, gaussian_leakage
from sidelight.knowledge.graph import fast_search, full_search
from sidelight.studies.pdp.panels import Curve, Panel, read_panel, seconds_of
from sidelight.studies.study import Kind, Study, Value, Verdict, Work

Array = NDArray[np.float64]
TUPLES = 15
CONCENTRATION = 10.0
"""The paper gives the mean of its beta edges and not their spread; a + b = 10 is our reading."""
CLOSE = (0.5, 0.8)
"""The mean edges at which the paper finds fast search very close to full-space search."""
_FIG5 = {"fig5a": 0.2, "fig5b": 0.5, "fig5c": 0.8}


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


def beta_edges(tuples: int, mean: float, seed: int) -> Edges:
    """Return a graph whose edges are beta-distributed around a mean, with that mean's sign."""
    rng = np.random.default_rng(seed)
    size = abs(mean) * CONCENTRATION
    # beta(a, b) has the mean a / (a + b), so a = mean x (a + b)
    drawn = rng.beta(size, CONCENTRATION - size, size=(tuples, tuples, 1 << tuples))
    return Edges.given(np.copysign(drawn, mean), np.ones(tuples))


def layer_maxima(values: Array) -> list[float]:
    """Return the largest value of each layer, from the strongest adversaries to the weakest."""
    sizes = np.bitwise_count(np.arange(values.shape[1]))
    return [float(np.nanmax(values[:, sizes == known])) for known in range(len(values) - 1, -1, -1)]


def beta_layers(tuples: int, means: Sequence[float], runs: int, key: str) -> Panel:
    """Average each layer's largest value over runs, for random edges (PDP, Figs. 4(a) and 4(b))."""
    layers = tuple(float(layer) for layer in range(1, tuples + 1))
    curves = []
    for mean in means:
        maxima = [layer_maxima(full_search(beta_edges(tuples, mean, seed))) for seed in range(runs)]
        heights = np.array(maxima).mean(axis=0)
        curves.append(Curve(f"mean edge {mean:g}", layers, tuple(float(value) for value in heights)))
    broken = [curve.name for curve in curves if not _as_published(curve, means[0])]
    if means[0] > 0:
        reason = "the weakest adversary is worst"
        if broken:
            reason = (
                f"not for {', '.join(broken)}: a node keeps its least path, so positive edges alone do not "
                "make the weakest adversary worst, and Corollary 1(2) does not follow"
            )
    else:
        reason = (
            "another adversary is worst" if broken else "the strongest adversary is worst, no trend beyond"
        )
    return Panel(
        key,
        "published graph with random edges",
        ("layer", "privacy leakage"),
        tuple(curves),
        Verdict(
            "differs" if broken else "reproduced",
            f"{reason} (mean of {runs} runs; no joint distribution is behind these edges)",
        ),
    )


def _as_published(curve: Curve, mean: float) -> bool:
    """Whether the largest value is where the paper says: in the last layer, for negative edges the first."""
    return curve.y[-1 if mean > 0 else 0] >= max(curve.y)


def gaussian_layers(tuples: int, correlations: Sequence[float], key: str) -> Panel:
    """Compute leakage by layer for equally correlated Gaussians (PDP, Figs. 4(c) and 4(d))."""
    curves, missing = [], []
    for correlation in correlations:
        try:
            belief = Gaussian.equicorrelated(tuples, correlation)
        except InputError:
            missing.append(correlation)
            continue
        values = [
            gaussian_leakage(belief, Adversary("x1", belief.names[1 + unknown :])).value
            for unknown in range(tuples)
        ]
        curves.append(
            Curve(f"correlation {correlation:g}", tuple(float(n + 1) for n in range(tuples)), tuple(values))
        )
    heights = np.array([curve.y for curve in curves])
    grows = bool((np.diff(heights, axis=1) >= -1e-9).all() and (np.diff(heights, axis=0) >= -1e-9).all())
    reason = (
        f"closed form; leakage {'grows' if grows else 'does not grow'} with the layer and the correlation"
    )
    if missing:
        reason = (
            f"no covariance of {tuples} tuples has a common correlation below {-1 / (tuples - 1):.4f}, so "
            f"{', '.join(f'{value:g}' for value in missing)} cannot be drawn"
        )
    kind: Kind = "not possible" if missing else "reproduced" if grows else "differs"
    axes = ("layer", "privacy leakage")
    return Panel(key, "Gaussian tuples", axes, tuple(curves), Verdict(kind, reason))


def search_values(tuples: int, mean: float, runs: int, key: str) -> Panel:
    """Compare the largest value of full-space and fast search (PDP, Figs. 5(a) to 5(c))."""
    counts = tuple(range(1, tuples + 1))
    full, fast = np.empty((2, tuples, runs))
    for row, count in enumerate(counts):
        for seed in range(runs):
            edges = beta_edges(count, mean, 1000 * count + seed)
            full[row, seed], fast[row, seed] = np.nanmax(full_search(edges)), max(fast_search(edges))
    is_above = bool(np.all(fast.mean(axis=1) >= full.mean(axis=1) - 1e-9))
    gap = float((fast.mean(axis=1) / full.mean(axis=1)).max())
    is_close = mean not in CLOSE or gap <= 1.1
    reason = f"fast is {'never' if is_above else 'sometimes'} below full in the mean of {runs} runs"
    reason += f", and up to {gap:.2f} times as large"
    if not is_close:
        reason += "; the paper finds them very close here, but does not say how its edges are spread"
    x = tuple(float(count) for count in counts)
    return Panel(
        key,
        f"full against fast search, mean edge {mean:g}",
        ("tuples", "largest leakage"),
        tuple(
            Curve(name, x, tuple(table.mean(axis=1)), tuple(table.std(axis=1)))
            for name, table in (("full space", full), ("fast", fast))
        ),
        Verdict("reproduced" if is_above and is_close else "differs", reason),
    )


def search_times(tuples: int, runs: int) -> Panel:
    """Compare the time of both searches (PDP, Fig. 5(d)); making the edges is not counted."""
    counts = tuple(range(2, tuples + 1))
    times: dict[str, list[float]] = {"full space": [], "fast": []}
    for count in counts:
        edges = beta_edges(count, 0.5, count)
        for name, search in (("full space", full_search), ("fast", fast_search)):
            times[name].append(min(seconds_of(partial(search, edges)) for _ in range(min(runs, 5))))
    ratio = times["full space"][-1] / times["fast"][-1]
    x = tuple(float(count) for count in counts)
    return Panel(
        "fig5d",
        "time of full and fast search",
        ("tuples", "seconds"),
        tuple(Curve(name, x, tuple(values)) for name, values in times.items()),
        Verdict(
            "reproduced" if ratio > 1 else "differs",
            f"at {counts[-1]} tuples fast search takes {ratio:.0f} times less time",
        ),
        log="y",
    )


def _worst_layer(panel: Panel) -> dict[str, Value]:
    """Return in which layer each line has its largest value."""
    layers = {int(curve.x[curve.y.index(max(curve.y))]) for curve in panel.curves}
    last = int(max(panel.curves[0].x))
    words = ", ".join(str(layer) for layer in sorted(layers))
    return {"layer of the largest leakage": f"{words} (of {last})"}


def _gaps(panel: Panel) -> dict[str, Value]:
    full, fast = panel.curves
    return {
        "fast search over full search, at most": max(a / b for a, b in zip(fast.y, full.y, strict=True)),
        "fast search is never below full search": str(
            all(a >= b - 1e-9 for a, b in zip(fast.y, full.y, strict=True))
        ).lower(),
    }


def _times(panel: Panel) -> dict[str, Value]:
    full, fast = panel.curves
    return {"full search over fast search, time at the most tuples": full.y[-1] / fast.y[-1]}


def _negative(panel: Panel) -> dict[str, Value]:
    shown = ", ".join(curve.name.removeprefix("correlation ") for curve in panel.curves)
    return {"correlations drawn": f"{shown}; the others are no covariance"}


_FIGURES = Work("pdp-figures", run, minutes=3)
_POSITIVE: dict[str, Value] = {"layer of the largest leakage": "the last: the weakest adversary"}
_NEGATIVE: dict[str, Value] = {"layer of the largest leakage": "1: the strongest adversary"}


def _panel(
    key: str, title: str, published: dict[str, Value], ours: Callable[[Panel], dict[str, Value]]
) -> Study:
    read = partial(read_panel, key, ours)
    return Study(f"pdp-{key}", "PDP", title, _FIGURES, read, published)


def _search(key: str, mean: float, close: str) -> Study:
    published: dict[str, Value] = {
        "fast search over full search, at most": close,
        "fast search is never below full search": "generally",
    }
    return _panel(
        key, f"Fig. {key[3]}({key[4]}): full against fast search, mean edge {mean:g}", published, _gaps
    )


STUDIES = (
    _panel("fig4a", "Fig. 4(a): published graph, positive edges", _POSITIVE, _worst_layer),
    _panel("fig4b", "Fig. 4(b): published graph, negative edges", _NEGATIVE, _worst_layer),
    _panel("fig4c", "Fig. 4(c): Gaussian tuples, positive correlation", _POSITIVE, _worst_layer),
    _panel(
        "fig4d",
        "Fig. 4(d): Gaussian tuples, negative correlation",
        {"correlations drawn": "-0.2, -0.4, -0.6, -0.8"},
        _negative,
    ),
    _search("fig5a", 0.2, "larger"),
    _search("fig5b", 0.5, "very close to 1"),
    _search("fig5c", 0.8, "very close to 1"),
    _panel(
        "fig5d",
        "Fig. 5(d): time of full and fast search",
        {"full search over fast search, time at the most tuples": "far more"},
        _times,
    ),
)
