"""Prior knowledge: what the promised sizes take, beside a plain numpy version of one adversary."""

from __future__ import annotations

import math

import numpy as np

import sidelight as sl
from bench.timing import Row, best_of, show
from sidelight.studies.pdp.joints import drawn, weakest_of_chain

BITS = 15
PROMISED = {"everyone": 60.0, "chain": 5.0}


def main() -> int:
    """Print the seconds of both tasks; return 1 if one takes longer than promised."""
    everyone, chain = _everyone(), _chain()
    show("prior knowledge (numpy extrapolated from a sample of adversaries)", [everyone, chain])
    late = [
        row.step for row, most in zip((everyone, chain), PROMISED.values(), strict=True) if row.ours > most
    ]
    most = " and ".join(f"{seconds:g} s" for seconds in PROMISED.values())
    print(f"promised: {most}; missed: {', '.join(late) or 'none'}")
    return int(bool(late))


def _everyone() -> Row:
    joint = drawn(BITS, 0.5)
    belief = sl.Belief.from_joint(joint, [f"x{j}" for j in range(BITS)])
    query = sl.Query.sum(belief.schema)
    sample = [(target, known) for target in (0, 7) for known in ((), (1, 2), (1, 2, 3, 4, 5, 6))]
    plain = best_of(lambda: [plain_leakage(joint, *each) for each in sample], 1) / len(sample)
    ours = best_of(lambda: sl.knowledge.all_adversaries(belief, query), 1)
    total = BITS * 2 ** (BITS - 1)
    return Row(f"all {total} adversaries of {BITS} bits", None, plain * total, ours)


def plain_leakage(joint: np.ndarray, target: int, known: tuple[int, ...]) -> float:
    """One adversary as one would write it with numpy: a histogram of sums and the matrix of distances."""
    free = [j for j in range(joint.ndim) if j != target and j not in known]
    cells = joint.transpose([*known, target, *free]).reshape(2 ** len(known), 2, -1)
    sums = np.indices((2,) * len(free)).reshape(len(free), -1).sum(axis=0) if free else np.zeros(1, dtype=int)
    laws = np.zeros((*cells.shape[:2], len(free) + 2))
    for value in (0, 1):
        for total in range(len(free) + 1):
            laws[:, value, total + value] = cells[:, value, sums == total].sum(axis=1)
    points = np.arange(len(free) + 2)
    kernel = np.exp(-np.abs(points[:, None] - points))
    densities = laws / laws.sum(axis=2, keepdims=True) @ kernel
    return math.log(float((densities.max(axis=1) / densities.min(axis=1)).max()))


def _chain() -> Row:
    return Row(
        "weakest adversary of a chain of 1,000", None, None, best_of(lambda: weakest_of_chain(1000), 1)
    )


if __name__ == "__main__":
    raise SystemExit(main())
