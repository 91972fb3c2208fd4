"""Exact and certified curves, which paper PDP lacks, beside the published ones, on actual joints.

What exact figures cost is a benchmark of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import numpy as np

from sidelight.belief import Belief, Tree
from sidelight.foundation.arrays import Array
from sidelight.knowledge import Adversary, Query, all_adversaries, knowledge_audit, prior_leakage
from sidelight.studies.pdp.figures import TUPLES, Curve, Judgement, Panel, drawing, judge_panel
from sidelight.studies.register import beside
from sidelight.studies.study import Reading, StudyResult, Verdict, Work, measured, refuted_if, seconds_of


def common_cause(tuples: int, strength: float) -> Array:
    """Return fair bits that each copy a hidden fair bit with probability (1 + strength) / 2."""
    laws = np.full((2, 2), (1 - strength) / 2)
    np.fill_diagonal(laws, (1 + strength) / 2)
    first, second = (reduce(np.multiply.outer, [law] * tuples, np.full((), 0.5)) for law in laws)
    return np.asarray(first + second)


def alternating(tuples: int, strength: float) -> Array:
    """Return the common cause with every second bit turned round: both signs of correlation."""
    return np.flip(common_cause(tuples, strength), axis=tuple(range(1, tuples, 2)))


def balanced(tuples: int, strength: float) -> Array:
    """Return bits whose sum stays near its middle: every correlation is negative."""
    sums = np.indices((2,) * tuples).sum(axis=0)
    joint = np.exp(-4 * strength * (sums - tuples / 2) ** 2)  # a Gaussian in the sum, its middle likeliest
    return np.asarray(joint / joint.sum())


def drawn(tuples: int, strength: float) -> Array:
    """Return a random joint; the stronger, the less even."""
    rng = np.random.default_rng(round(100 * strength))
    # normalised gamma variates are Dirichlet; a smaller shape puts the mass on fewer cells
    joint = rng.gamma(max(1 - strength, 0.05), size=(2,) * tuples)  # a shape must be above 0
    return np.asarray(joint / joint.sum())


LONGEST = 60.0
"""Seconds within which exact figures of all sizes that are shown must come."""
FAMILIES: dict[str, Callable[[int, float], Array]] = {
    "common cause": common_cause,
    "alternating": alternating,
    "balanced": balanced,
    "random": drawn,
}


def joint_curves(family: str, tuples: int, strength: float = 0.6) -> Panel:
    """Compute exact, certified and published figures by layer for an actual joint distribution."""
    names = [f"x{j + 1}" for j in range(tuples)]
    belief = Belief.from_joint(FAMILIES[family](tuples, strength), names)
    audit = knowledge_audit(belief, Query.sum(belief.schema))
    layers = audit.layers[::-1]
    x = tuple(float(tuples - layer.known) for layer in layers)
    curves = (
        Curve("exact", x, (tuple(layer.exact for layer in layers),)),
        Curve("certified", x, (tuple(layer.certified or 0.0 for layer in layers),)),
        Curve("published", x, (tuple(layer.published or 0.0 for layer in layers),)),
    )
    key, title = f"joint-{family.replace(' ', '-')}", f"{tuples} bits, {family}, strength {strength:g}"
    return Panel(key, title, ("layer", "largest leakage"), curves, beside=audit.understated or 0.0)


def judge_joint(panel: Panel) -> Verdict:
    """Judge one family: the graph is no bound if it is below the truth for any adversary."""
    reason = f"the published graph is below the truth for {panel.beside:.1%} of the adversaries"
    return Verdict("refuted" if panel.beside > 0 else "reproduced", reason)


def cost(tuples: int) -> Panel:
    """Measure the seconds that exact figures take against the number of tuples."""
    counts = range(2, tuples + 1)
    all_adversaries(*_random_bits(11))  # compiles, which is not what is measured
    everyone = [seconds_of(partial(all_adversaries, *_random_bits(count))) for count in counts]
    lengths = (10, 30, 100, 300, 1000)
    chains = [seconds_of(partial(weakest_of_chain, length)) for length in lengths]
    curves = (
        Curve("all adversaries, bits", tuple(float(count) for count in counts), (tuple(everyone),)),
        Curve("weakest adversary of a chain", tuple(float(n) for n in lengths), (tuple(chains),)),
    )
    return Panel("cost", "seconds for exact figures", ("tuples", "seconds"), curves, log="xy")


def judge_cost(panel: Panel) -> Judgement:
    """Say what the largest sizes took; "differs" where one took over a minute, which is our claim."""
    everyone, chain = panel.curves
    reason = (
        f"all adversaries of {everyone.x[-1]:.0f} bits in {everyone.y[-1]:.2f} s, a chain of "
        f"{chain.x[-1]:,.0f} in {chain.y[-1]:.2f} s"
    )
    is_met = max(everyone.y[-1], chain.y[-1]) <= LONGEST
    return measured(is_met, reason), ()


def _random_bits(count: int) -> tuple[Belief, Query]:
    belief = Belief.from_joint(drawn(count, 0.5), [f"x{j}" for j in range(count)])
    return belief, Query.sum(belief.schema)


def weakest_of_chain(length: int) -> float:
    """Return the exact leakage of a chain's middle bit to someone who knows nothing."""
    step = [[0.9, 0.1], [0.2, 0.8]]
    links = {(f"x{j}", f"x{j + 1}"): step for j in range(length - 1)}
    belief = Belief.from_tree(Tree.from_conditionals("x0", [2 / 3, 1 / 3], links))
    return prior_leakage(belief, Query.sum(belief.schema), Adversary(f"x{length // 2}")).value


def _judge_joints(panels: list[Panel]) -> StudyResult:
    curves = [(panel.key, curve) for panel in panels for curve in panel.curves]
    rows = [(key, curve.name, x, y) for key, curve in curves for x, y in zip(curve.x, curve.y, strict=True)]
    verdicts = {panel.key: judge_joint(panel) for panel in panels}
    broken = [verdict for verdict in verdicts.values() if verdict.kind == "refuted"]
    reason = "; ".join(f"{key.removeprefix('joint-')}: {verdict.reason}" for key, verdict in verdicts.items())
    return StudyResult(
        refuted_if(bool(broken), reason, _COUNTER),
        beside("pdp-joints", f"below the truth in {len(broken)} of {len(panels)} families of joints"),
        ("joint", "figure", "layer", "largest leakage"),
        tuple(rows),
        tuple(drawing(panel, verdicts[panel.key]) for panel in panels),
    )


_COUNTER = "pdp-theorem2: two bits, 1.0653 published against 1.1586 exact"
_JOINTS = Work("pdp-joints", lambda quick: [joint_curves(name, 5 if quick else 7) for name in FAMILIES])
_COST = Work("pdp-cost", lambda quick: [cost(10 if quick else TUPLES)])
STUDIES = {
    "pdp-joints": Reading(_JOINTS, _judge_joints),
    "pdp-cost": Reading(_COST, partial(judge_panel, "cost", judge_cost)),
}
