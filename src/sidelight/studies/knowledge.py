"""Prior knowledge: the figures of the PDP paper, and the exact curves that it lacks.

`python -m sidelight.studies.knowledge [--quick] OUTDIR` writes the table and draws every figure. Figs. 4(a,b)
and 5 of the paper use graphs with random beta-distributed edges, so no joint distribution is behind them;
they are reproduced as such. The last figures are ours: exact, certified and published figures of joints that
exist, and what exact figures cost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief, Gaussian, Tree
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import write_atomically, write_text
from sidelight.leakage.knowledge import (
    Adversary,
    Edges,
    Query,
    all_adversaries,
    gaussian_leakage,
    knowledge_audit,
    prior_leakage,
)
from sidelight.leakage.knowledge.graph import fast_search, full_search

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Verdict = Literal["reproduced", "differs", "refuted", "not possible"]
TUPLES = 15
CONCENTRATION = 10.0
"""The paper gives the mean of its beta edges and not their spread; a + b = 10 is our reading."""
EXAMPLES = {
    "Example 2, (a), knows x2": ([[0.3, 0.2], [0.2, 0.3]], 1.0, ("x2",), 1.0),
    "Example 2, (a), knows nothing": ([[0.3, 0.2], [0.2, 0.3]], 1.0, (), 1.19),
    "Example 2, (b), knows nothing": ([[0.2, 0.3], [0.3, 0.2]], 1.0, (), 0.82),
    "Example 3, (a'), knows nothing": ([[0.49, 0.01], [0.01, 0.49]], 1.0, (), 1.95),
    "Example 3, (b'), knows nothing": ([[0.01, 0.49], [0.49, 0.01]], 1.0, (), 0.05),
    "Example 4, (c), knows nothing": ([[0.5, 0.0], [0.0, 0.5]], 1.0, (), 2.0),
    "Example 4, (d), knows nothing": ([[0.5, 0.0], [0.0, 0.5]], 5.0, (), 6.0),
}
"""The paper's examples: joint of x1 and x2, the value of x2's second code, what is known, what it prints."""
CLOSE = (0.5, 0.8)
"""The mean edges at which the paper finds fast search very close to full-space search."""
_FIG5 = {"fig5a": 0.2, "fig5b": 0.5, "fig5c": 0.8}
_SETTINGS: Any = {"svg.hashsalt": "sidelight", "svg.fonttype": "none", "font.size": 9}


@dataclass(frozen=True, eq=False)
class Curve:
    """One line: a name, where its points are, and their height; a spread where there were several runs."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Panel:
    """One figure with its verdict.

    Attributes:
        key: the file's name.
        title: what it shows.
        axes: the names of both axes.
        curves: its lines.
        verdict: how it compares with what the paper says.
        reason: why.
        is_log: whether the vertical axis is logarithmic.
    """

    key: str
    title: str
    axes: tuple[str, str]
    curves: tuple[Curve, ...]
    verdict: Verdict
    reason: str
    is_log: bool = False


@dataclass(frozen=True, eq=False)
class KnowledgeStudy:
    """All panels, and the examples with what the paper prints beside them."""

    panels: tuple[Panel, ...]
    examples: tuple[tuple[str, float, float], ...]
    settings: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The verdicts in one line."""
        return "; ".join(f"{panel.key}: {panel.verdict}" for panel in self.panels)

    def table(self) -> str:
        """Return everything as plain text."""
        lines = ["example | exact | printed"]
        lines += [f"{name} | {value:.5f} | {printed:g}" for name, value, printed in self.examples]
        for panel in self.panels:
            lines += ["", f"{panel.key}: {panel.title}", f"{panel.verdict}: {panel.reason}"]
            for curve in panel.curves:
                points = zip(curve.x, curve.y, strict=True)
                lines.append(f"{curve.name} | " + " ".join(f"{x:g}:{y:.4g}" for x, y in points))
        return "\n".join(lines) + "\n"


def run(quick: bool = False) -> KnowledgeStudy:
    """Compute every panel; `quick` takes fewer tuples and runs."""
    tuples, runs = (8, 5) if quick else (TUPLES, 30)
    panels = (
        beta_layers(tuples, (0.2, 0.4, 0.6, 0.8), min(runs, 5), "fig4a"),
        beta_layers(tuples, (-0.2, -0.4, -0.6, -0.8), min(runs, 5), "fig4b"),
        gaussian_layers(TUPLES, (0.2, 0.4, 0.6, 0.8), "fig4c"),
        gaussian_layers(TUPLES, (-0.02, -0.04, -0.06, -0.2, -0.4, -0.6, -0.8), "fig4d"),
        *(search_values(tuples, mean, runs, key) for key, mean in _FIG5.items()),
        search_times(tuples, runs),
        *(joint_curves(name, 5 if quick else 7) for name in FAMILIES),
        cost(10 if quick else TUPLES),
    )
    return KnowledgeStudy(panels, tuple(examples()), {"tuples": tuples, "runs": runs})


def examples() -> list[tuple[str, float, float]]:
    """Return Examples 2 to 4: the exact figure and the printed one."""
    found = []
    for name, (cells, second, known, printed) in EXAMPLES.items():
        belief = Belief.from_joint(cells, ["x1", "x2"])
        query = Query.additive(belief.schema, {"x1": [0, 1], "x2": [0, second]})
        found.append((name, prior_leakage(belief, query, Adversary("x1", known)).value, printed))
    return found


def beta_edges(tuples: int, mean: float, seed: int) -> Edges:
    """Return a graph whose edges are beta-distributed around a mean, with that mean's sign."""
    rng = np.random.default_rng(seed)
    size = abs(mean) * CONCENTRATION
    drawn = rng.beta(size, CONCENTRATION - size, size=(tuples, tuples, 1 << tuples))
    return Edges.given(np.copysign(drawn, mean), np.ones(tuples))


def layer_maxima(values: Array) -> list[float]:
    """Return the largest value of each layer, from the strongest adversaries to the weakest."""
    sizes = np.bitwise_count(np.arange(values.shape[1]))
    return [float(np.nanmax(values[:, sizes == known])) for known in range(len(values) - 1, -1, -1)]


def beta_layers(tuples: int, means: Sequence[float], runs: int, key: str) -> Panel:
    """Draw the mean over runs of each layer's largest value for random edges (PDP, Figs. 4(a) and 4(b))."""
    layers = tuple(float(layer) for layer in range(1, tuples + 1))
    curves = []
    for mean in means:
        found = [layer_maxima(full_search(beta_edges(tuples, mean, seed))) for seed in range(runs)]
        heights = np.array(found).mean(axis=0)
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
        "differs" if broken else "reproduced",
        f"{reason} (mean of {runs} runs; no joint distribution is behind these edges)",
    )


def _as_published(curve: Curve, mean: float) -> bool:
    """Whether the largest value is where the paper says: in the last layer, for negative edges the first."""
    return curve.y[-1 if mean > 0 else 0] >= max(curve.y)


def gaussian_layers(tuples: int, correlations: Sequence[float], key: str) -> Panel:
    """Draw leakage against the layer for equally correlated Gaussians (PDP, Figs. 4(c) and 4(d))."""
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
    verdict: Verdict = "not possible" if missing else "reproduced" if grows else "differs"
    return Panel(key, "Gaussian tuples", ("layer", "privacy leakage"), tuple(curves), verdict, reason)


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
        "reproduced" if is_above and is_close else "differs",
        reason,
    )


def search_times(tuples: int, runs: int) -> Panel:
    """Compare the time of both searches (PDP, Fig. 5(d)); making the edges is not counted."""
    counts = tuple(range(2, tuples + 1))
    times: dict[str, list[float]] = {"full space": [], "fast": []}
    for count in counts:
        edges = beta_edges(count, 0.5, count)
        for name, search in (("full space", full_search), ("fast", fast_search)):
            times[name].append(min(_seconds(partial(search, edges)) for _ in range(min(runs, 5))))
    ratio = times["full space"][-1] / times["fast"][-1]
    x = tuple(float(count) for count in counts)
    return Panel(
        "fig5d",
        "time of full and fast search",
        ("tuples", "seconds"),
        tuple(Curve(name, x, tuple(values)) for name, values in times.items()),
        "reproduced" if ratio > 1 else "differs",
        f"at {counts[-1]} tuples fast search takes {ratio:.0f} times less time",
        is_log=True,
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def common_cause(tuples: int, strength: float) -> Array:
    """Return fair bits that each copy a hidden fair bit with probability (1 + strength) / 2."""
    joint = np.zeros((2,) * tuples)
    for cause in (0, 1):
        bit = np.full(2, (1 - strength) / 2)
        bit[cause] = (1 + strength) / 2
        part = np.full((), 0.5)
        for _ in range(tuples):
            part = np.multiply.outer(part, bit)
        joint += part
    return joint


def alternating(tuples: int, strength: float) -> Array:
    """Return the common cause with every second bit turned round: both signs of correlation."""
    joint = common_cause(tuples, strength)
    return np.flip(joint, axis=tuple(range(1, tuples, 2)))


def balanced(tuples: int, strength: float) -> Array:
    """Return bits whose sum stays near its middle: every correlation is negative."""
    sums = np.indices((2,) * tuples).sum(axis=0)
    joint = np.exp(-4 * strength * (sums - tuples / 2) ** 2)
    return np.asarray(joint / joint.sum())


def drawn(tuples: int, strength: float) -> Array:
    """Return a random joint, the less even the stronger."""
    rng = np.random.default_rng(round(100 * strength))
    joint = rng.gamma(max(1 - strength, 0.05), size=(2,) * tuples)
    return np.asarray(joint / joint.sum())


FAMILIES: dict[str, Callable[[int, float], Array]] = {
    "common cause": common_cause,
    "alternating": alternating,
    "balanced": balanced,
    "random": drawn,
}


def joint_curves(family: str, tuples: int, strength: float = 0.6) -> Panel:
    """Draw exact, certified and published figures by layer for a joint distribution that exists."""
    names = [f"x{j + 1}" for j in range(tuples)]
    belief = Belief.from_joint(FAMILIES[family](tuples, strength), names)
    audit = knowledge_audit(belief, Query.sum(belief.schema))
    layers = audit.layers[::-1]
    x = tuple(float(tuples - layer.known) for layer in layers)
    values = {
        "exact": tuple(layer.exact for layer in layers),
        "certified": tuple(layer.certified or 0.0 for layer in layers),
        "published": tuple(layer.published or 0.0 for layer in layers),
    }
    below = audit.understated or 0.0
    return Panel(
        f"joint-{family.replace(' ', '-')}",
        f"{tuples} bits, {family}, strength {strength:g}",
        ("layer", "largest leakage"),
        tuple(Curve(name, x, value) for name, value in values.items()),
        "refuted" if below > 0 else "reproduced",
        f"the published graph is below the truth for {below:.1%} of the adversaries; worst: {audit.standing}",
    )


def cost(tuples: int) -> Panel:
    """Draw the seconds of exact figures against the number of tuples."""
    counts = range(2, tuples + 1)
    all_adversaries(*_random_bits(11))  # compiles, which is not what is measured
    everyone = [_seconds(partial(all_adversaries, *_random_bits(count))) for count in counts]
    lengths = (10, 30, 100, 300, 1000)
    chains = [_seconds(partial(weakest_of_chain, length)) for length in lengths]
    return Panel(
        "cost",
        "seconds for exact figures",
        ("tuples", "seconds"),
        (
            Curve("all adversaries, bits", tuple(float(count) for count in counts), tuple(everyone)),
            Curve("weakest adversary of a chain", tuple(float(n) for n in lengths), tuple(chains)),
        ),
        "reproduced",
        f"all adversaries of {tuples} bits in {everyone[-1]:.2f} s, a chain of 1,000 in {chains[-1]:.2f} s",
        is_log=True,
    )


def _random_bits(count: int) -> tuple[Belief, Query]:
    belief = Belief.from_joint(drawn(count, 0.5), [f"x{j}" for j in range(count)])
    return belief, Query.sum(belief.schema)


def weakest_of_chain(length: int) -> float:
    """Return the exact leakage of a chain's middle bit to someone who knows nothing."""
    step = [[0.9, 0.1], [0.2, 0.8]]
    links = {(f"x{j}", f"x{j + 1}"): step for j in range(length - 1)}
    belief = Belief.from_tree(Tree.from_conditionals("x0", [2 / 3, 1 / 3], links))
    return prior_leakage(belief, Query.sum(belief.schema), Adversary(f"x{length // 2}")).value


def draw(panel: Panel, path: str | Path) -> Path:
    """Draw a panel to an SVG or PNG file."""
    from matplotlib import rc_context

    kind = Path(path).suffix.removeprefix(".").lower()
    if kind not in ("svg", "png"):
        raise InputError(f"{path} must end in .svg or .png.")
    with rc_context(_SETTINGS):
        figure = figure_of(panel)
        metadata = {"Date": None} if kind == "svg" else {}
        return write_atomically(path, lambda to: figure.savefig(to, format=kind, metadata=metadata))


def figure_of(panel: Panel) -> Figure:
    """Return a panel as a figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.9), layout="constrained")
    _fill(figure.subplots(), panel)
    return figure


def _fill(axes: Axes, panel: Panel) -> None:
    for number, curve in enumerate(panel.curves):
        style = ("o-", "s--", "^-.", "d:")[number % 4]
        axes.plot(curve.x, curve.y, style, label=curve.name, markersize=4, linewidth=1.4)
        if curve.spread:
            low, high = (np.array(curve.y) + sign * np.array(curve.spread) for sign in (-1, 1))
            axes.fill_between(curve.x, low, high, alpha=0.2)
    if panel.is_log:
        axes.set_yscale("log")
    if panel.is_log and panel.key == "cost":
        axes.set_xscale("log")
    axes.set_xlabel(panel.axes[0])
    axes.set_ylabel(panel.axes[1])
    axes.set_title(f"{panel.title} ({panel.verdict})", fontsize=9)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)


def main(arguments: Sequence[str]) -> int:
    """Write the table and all figures to the folder named on the command line."""
    quick = "--quick" in arguments
    rest = [argument for argument in arguments if argument != "--quick"]
    if len(rest) != 1 or not Path(rest[0]).is_dir():
        raise InputError("name one existing folder to write to; --quick takes fewer tuples and runs.")
    folder = Path(rest[0])
    study = run(quick)
    write_text(folder / "knowledge.txt", study.table())
    for panel in study.panels:
        draw(panel, folder / f"knowledge-{panel.key}.svg")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
