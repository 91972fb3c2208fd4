"""Paper PDP on two tuples: Examples 2 to 5, the posteriors of Fig. 2, and where Theorem 2 falls short."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from sidelight.belief import Belief, Gaussian
from sidelight.knowledge import Adversary, Query, gaussian_leakage, prior_leakage
from sidelight.studies.figures import canvas
from sidelight.studies.register import CATALOGUE, beside
from sidelight.studies.study import Reading, StudyResult, Work, against_exact, gaps, judged

_JOINTS = {
    "Example 2, (a), knows x2": ([[0.3, 0.2], [0.2, 0.3]], 1.0, ("x2",)),
    "Example 2, (a), knows nothing": ([[0.3, 0.2], [0.2, 0.3]], 1.0, ()),
    "Example 2, (b), knows nothing": ([[0.2, 0.3], [0.3, 0.2]], 1.0, ()),
    "Example 3, (a'), knows nothing": ([[0.49, 0.01], [0.01, 0.49]], 1.0, ()),
    "Example 3, (b'), knows nothing": ([[0.01, 0.49], [0.49, 0.01]], 1.0, ()),
    "Example 4, (c), knows nothing": ([[0.5, 0.0], [0.0, 0.5]], 1.0, ()),
    "Example 4, (d), knows nothing": ([[0.5, 0.0], [0.0, 0.5]], 5.0, ()),
}
"""Examples 2 to 4: the joint of x1 and x2, the value of x2's second code, and what is known."""
_PRIORS = {
    "perfectly positive": ((0.5, 0.0), (0.0, 0.5)),
    "positive": ((0.3, 0.2), (0.2, 0.3)),
    "independent": ((0.25, 0.25), (0.25, 0.25)),
    "negative": ((0.2, 0.3), (0.3, 0.2)),
    "perfectly negative": ((0.0, 0.5), (0.5, 0.0)),
}
_ANSWER = 2.0


def _examples(_quick: bool) -> dict[str, float]:
    """Return the exact leakage of Examples 2 to 4, and of 5: two Gaussian tuples of variance 1."""
    exact = {}
    for name, (cells, second, known) in _JOINTS.items():
        belief = Belief.from_joint(cells, ["x1", "x2"])
        query = Query.additive(belief.schema, {"x1": [0, 1], "x2": [0, second]})
        exact[name] = prior_leakage(belief, query, Adversary("x1", known)).value
    for rho in (0.5, -0.5):
        pair = Gaussian.equicorrelated(2, rho)
        exact[f"Example 5, correlation {rho:g}"] = gaussian_leakage(pair, Adversary("x1")).value
    return exact


def _judge_examples(exact: dict[str, float]) -> StudyResult:
    printed = CATALOGUE["pdp-examples"].published
    gap = max(gaps(exact, printed).values())  # at most 0.0054: two digits are printed, one example rounded up
    rows = tuple((name, value, printed[name]) for name, value in exact.items())
    reason = f"every example within {gap:.4f}; Example 2(b), 0.8146, is printed as 0.82"
    return StudyResult(judged(gap < 0.006, reason), exact, ("example", "exact", "printed"), rows)


def _posteriors(_quick: bool) -> dict[str, tuple[float, float, float]]:
    """Return Pr(s_1 = 1 | r = 2), weak and strong adversary, and strong before r; noise of scale 1."""
    posteriors = {}
    for name, joint in _PRIORS.items():
        weights = [[joint[a][b] * math.exp(-abs(_ANSWER - a - b)) for b in (0, 1)] for a in (0, 1)]
        weak = sum(weights[1]) / (sum(weights[0]) + sum(weights[1]))
        strong = weights[1][1] / (weights[0][1] + weights[1][1])
        posteriors[name] = weak, strong, joint[1][1] / (joint[0][1] + joint[1][1])
    return posteriors


def _judge_posteriors(posteriors: dict[str, tuple[float, float, float]]) -> StudyResult:
    together, apart = posteriors["perfectly positive"], posteriors["perfectly negative"]
    alone = posteriors["independent"]
    ours = beside(
        "pdp-fig2",
        *(f"s1 = 1 with probability {share:.3f}" for share in (together[0], apart[0])),
        f"s1 = 0 with probability {1 - apart[1]:.3f}",
        f"{alone[1]:.3f} against {alone[0]:.3f}",
    )
    rows = tuple((name, *values) for name, values in posteriors.items())
    holds = together[0] > 0.8 and apart[:2] == (0.5, 0.0) and abs(alone[0] - alone[1]) < 1e-9
    verdict = judged(holds, "posteriors after the answer 2, noise of scale 1")
    columns = ("correlation", "weak after r = 2", "strong after r = 2", "strong before")
    return StudyResult(verdict, ours, columns, rows)


def _bars(posteriors: dict[str, tuple[float, float, float]]) -> Figure:
    figure, (axes,) = canvas(6.4, 3.4)
    for place, label in enumerate(("knows nothing", "knows s2 = 1")):
        heights = [values[place] for values in posteriors.values()]
        axes.bar([number + 0.4 * place for number in range(len(posteriors))], heights, 0.36, label=label)
    axes.set_xticks([number + 0.2 for number in range(len(posteriors))], list(posteriors), fontsize=8)
    axes.axhline(0.5, color="grey", linewidth=0.8)
    axes.set_ylabel("probability of s1 = 1 after the answer 2")
    axes.legend(frameon=False)
    return figure


def _theorem_2(_quick: bool) -> tuple[float, float]:
    """Return the published and the exact leakage of the smallest counter-example."""
    belief = Belief.from_joint([[0.5, 0.0], [0.45, 0.05]], ["x1", "x2"])
    query = Query.sum(belief.schema)
    published = prior_leakage(belief, query, Adversary("x1"), "published")
    return published.value, prior_leakage(belief, query, Adversary("x1")).value


def _judge_theorem_2(figures: tuple[float, float]) -> StudyResult:
    published, exact = figures
    words = (
        f"Theorem 2 looks at one end of the answers only: it gives {published:.4f}, the truth is {exact:.4f}",
        "two bits, Pr(x2 = 1 | x1 = 0) = 0 and Pr(x2 = 1 | x1 = 1) = 0.1, noise of scale 1, nothing known",
    )
    ours = beside("pdp-theorem2", f"{published:.4f} against the exact {exact:.4f}")
    return against_exact(figures, words, ours, "leakage")


STUDIES = {
    "pdp-examples": Reading(Work("pdp-examples", _examples), _judge_examples),
    "pdp-fig2": Reading(Work("pdp-posteriors", _posteriors), _judge_posteriors, _bars),
    "pdp-theorem2": Reading(Work("pdp-theorem2", _theorem_2), _judge_theorem_2),
}
