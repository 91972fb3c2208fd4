"""What no estimator of frequencies can do: be as good as each rival is where that one is best.

Several truths of one size, and at each the rival that errs least there. Whoever knew that one of these truths
holds, and how often each does, would err least by the posterior mean; so whatever the estimator, at one of
the truths its error is at least

    (mean error of that posterior mean) / (mean error of the rivals)

times that of the rival, the means weighted alike (a Bayes risk bounds every weighted risk from below). The
weights that make this largest are found on half of the trials and the bound is computed on the other half.
Truths come with their permutations, as an estimator is not told which value is the common one. The posterior
mean here sees every single report, the rivals their sums; its figures are exact but for the trials. How many
of these cells it loses itself, by the rule of `bench.estimates` and on that half, is printed too.

    python -m bench.bounds [TRIALS [SEED]]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.estimates import PEERS, law_of, lost, probabilities
from bench.frequency_peers import Given
from sidelight.estimation.averaging import improved
from sidelight.estimation.shrinkage import least_risk
from sidelight.foundation.arrays import Array, Whole

TRIALS = 100
_STEPS = 400
_ORDERS = 300
_Z = 1.96
_CELLS = 300
"""Cells that a grid has at least; intervals are corrected for so many."""


@dataclass(frozen=True)
class Family:
    """Truths of one size, by name, which so many people report at this budget."""

    size: int
    people: int
    epsilon: float
    truths: tuple[str, ...]


EXTREMES = ("even", "point", "99-1")
FAMILIES = (
    Family(2, 1_000, 0.1, EXTREMES), Family(2, 1_000, 4.0, EXTREMES), Family(4, 1_000, 0.1, EXTREMES),
    Family(8, 1_000, 0.1, EXTREMES), Family(10, 1_000, 0.1, ("even", "0.3", "1.2", "2", "point")),
    Family(15, 1_000, 0.1, EXTREMES), Family(15, 1_000, 2.0, EXTREMES), Family(30, 1_000, 0.1, EXTREMES),
    Family(2, 10_000, 0.1, (*EXTREMES, "any")), Family(2, 10_000, 0.5, (*EXTREMES, "any")),
    Family(2, 10_000, 1.0, (*EXTREMES, "any")), Family(4, 1_000, 0.5, (*EXTREMES, "any")),
    Family(4, 10_000, 0.1, (*EXTREMES, "any")), Family(10, 1_000, 0.5, ("even", "1.2", "2", "point", "any")),
    Family(30, 10_000, 0.1, EXTREMES), Family(100, 1_000, 0.1, ("even", "0.3", "2", "point")),
    Family(100, 10_000, 0.1, ("even", "2", "point")), Family(6, 1_000, 0.1, EXTREMES),
    Family(12, 1_000, 0.1, EXTREMES), Family(6, 1_000, 0.5, (*EXTREMES, "any")),
)  # fmt: skip
"""The places of lost cells. "any" are frequencies of which all are as likely, the others are in the grid."""


def candidates(name: str, size: int, rng: np.random.Generator) -> Array:
    """Return the frequencies that a name stands for, (candidates, values)."""
    if name == "any":
        return rng.dirichlet(np.ones(size), 10 * _ORDERS)
    if name in ("point", "99-1"):
        held = 1.0 if name == "point" else 0.99
        rest = (1 - held) / (size - 1)
        return np.full((size, size), rest) + (held - rest) * np.eye(size)
    share = 1 / np.arange(1, size + 1) ** (0.0 if name == "even" else float(name))
    share /= share.sum()
    if name == "even":
        return share[None, :]
    return np.stack([rng.permutation(share) for _ in range(_ORDERS if size < 100 else 100)])


@dataclass(frozen=True, eq=False)
class _Seen:
    """One collection: the people's frequencies, what rivals get, and how to weigh a truth against it."""

    truth: Array
    given: Given
    bits: Array | None

    def weighed(self, truths: Array) -> tuple[Array, Array]:
        """Return log-likelihoods of truths, and the mean frequencies of these people under each."""
        given, gap = self.given, self.given.keep - self.given.lie
        if self.bits is None:
            rates = given.lie + gap * truths
            per = given.counts / rates
            near = truths * (given.lie * per.sum(axis=1, keepdims=True) + gap * per) / given.reports
            return np.log(rates) @ given.counts, near
        # A report is as likely as one of no value times the sum of shares, each by what its bit says.
        yes, no = given.keep / given.lie, (1 - given.keep) / (1 - given.lie)
        sums = no + (yes - no) * (self.bits @ truths.T.astype(np.float32))
        inverse = 1 / sums
        each = no * inverse.sum(axis=0) + (yes - no) * (self.bits.T @ inverse)
        return np.log(sums).sum(axis=0, dtype=np.float64), truths * each.T / given.reports


def _collected(share: Array, family: Family, rng: np.random.Generator) -> _Seen:
    """Return the reports of people who are drawn with these frequencies."""
    size, people = family.size, family.people
    keep, lie, is_response = probabilities(size, family.epsilon)
    held = rng.multinomial(people, share)
    values = np.repeat(np.arange(size), held)
    if is_response:
        other = (values + rng.integers(1, size, people)) % size
        counts = np.bincount(np.where(rng.random(people) < keep, values, other), minlength=size)
        bits = None
    else:
        draws = rng.random((people, size), dtype=np.float32)
        bits = (draws < lie).astype(np.float32)
        bits[np.arange(people), values] = draws[np.arange(people), values] < keep
        counts = bits.sum(axis=0).astype(np.int64)
    return _Seen(held / people, _given(counts, family), bits)


def _given(counts: Whole, family: Family) -> Given:
    return law_of(counts, family.people, family.people, family.epsilon)[0]


@dataclass(frozen=True, eq=False)
class _Trials:
    """Collections of one truth: likelihoods (trials, truths), means (trials, truths, values), errors."""

    logs: Array
    means: Array
    truth: Array
    rivals: dict[str, Array]

    def errors(self, weights: Array) -> Array:
        """Return each trial's error of the posterior mean under these weights of the truths."""
        with np.errstate(divide="ignore"):
            logs = self.logs + np.log(weights)
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        found = np.einsum("tg,tgk->tk", chances, self.means)
        return np.asarray(((found - self.truth) ** 2).mean(axis=1))

    def half(self, second: bool) -> _Trials:
        """Return every other trial."""
        part = slice(int(second), None, 2)
        rivals = {name: errors[part] for name, errors in self.rivals.items()}
        return _Trials(self.logs[part], self.means[part], self.truth[part], rivals)


def _simulated(family: Family, trials: int, seed: int) -> list[_Trials]:
    """Return trials of each truth of a family."""
    rng = np.random.default_rng([seed, family.size, family.people, round(10 * family.epsilon)])
    truths = [candidates(name, family.size, rng) for name in family.truths]
    found = []
    for own in truths:
        rows = [_one(own[rng.integers(len(own))], truths, family, rng) for _ in range(trials)]
        logs, means, drawn, rivals = zip(*rows, strict=True)
        each = {name: np.array([row[name] for row in rivals]) for name in rivals[0]}
        found.append(_Trials(np.array(logs), np.array(means), np.array(drawn), each))
    return found


def _one(share: Array, truths: Sequence[Array], family: Family, rng: np.random.Generator) -> tuple:
    """Return what one collection says of every truth, and the errors of all estimators."""
    seen = _collected(share, family, rng)
    logs, means = [], []
    for rows in truths:
        likely, near = seen.weighed(rows)
        chances = np.exp(likely - likely.max())
        logs.append(likely.max() + math.log(chances.mean()))
        means.append(chances @ near / chances.sum())
    results = {name: peer(seen.given) for name, peer in PEERS.items()}
    given = seen.given
    results["best of 0.1"] = least_risk(given.estimate[None], given.variances.sum()[None])[0]
    law = law_of(given.counts, family.people, family.people, family.epsilon)[1]
    results["ours"] = improved([law], [[0]])[0].mean
    errors = {name: float(((found - seen.truth) ** 2).mean()) for name, found in results.items()}
    return np.array(logs), np.array(means), seen.truth, errors


def bounded(found: Sequence[_Trials]) -> tuple[float, float, Array, list[str]]:
    """Return the bound, half its interval, the weights of the truths and the rival at each."""
    first, second = [part.half(False) for part in found], [part.half(True) for part in found]
    names = [
        min((n for n in part.rivals if n != "ours"), key=lambda n: part.rivals[n].mean()) for part in first
    ]
    least = np.array([max(part.rivals[name].mean(), 1e-12) for part, name in zip(first, names, strict=True)])
    share, best, kept = np.full(len(found), 1 / len(found)), 0.0, None
    for step in range(_STEPS):  # multiplicative weights: more for truths where the ratio is large
        weights = share / least
        ratios = np.array([part.errors(weights).mean() for part in first]) / least
        if share @ ratios > best:
            best, kept = float(share @ ratios), weights
        share = share * np.exp(ratios / ratios.max() / math.sqrt(1 + step))
        share /= share.sum()
    weights = kept / kept.sum()
    own = [part.errors(weights) for part in second]
    others = [part.rivals[name] for part, name in zip(second, names, strict=True)]
    whole = sum(w * b.mean() for w, b in zip(weights, others, strict=True))
    ratio = sum(w * a.mean() for w, a in zip(weights, own, strict=True)) / whole
    spread = sum(w**2 * (a - ratio * b).var(ddof=1) / len(a)
                 for w, a, b in zip(weights, own, others, strict=True))  # fmt: skip
    return float(ratio), float(_Z * math.sqrt(spread) / whole), weights, names


def main(trials: int = TRIALS, seed: int = 1, *families: Family) -> None:
    """Print for every family how near one can be to all rivals at once, and how near ours is."""
    for family in families or FAMILIES:
        found = _simulated(family, trials, seed)
        ratio, half, weights, names = bounded(found)
        ours = [part.rivals["ours"].mean() / max(part.rivals[name].mean(), 1e-12)
                for part, name in zip(found, names, strict=True)]  # fmt: skip
        fresh = [part.half(True) for part in found]
        ideal = [lost(part.errors(weights), part.rivals[name], _CELLS)[1]
                 for part, name in zip(fresh, names, strict=True)]  # fmt: skip
        print(f"k={family.size} n={family.people} eps={family.epsilon:g}: nobody below {ratio:.2f} "
              f"({ratio - half:.2f} to {ratio + half:.2f}), ours {max(ours):.2f}; the posterior "
              f"mean of this bound loses {sum(ideal)} of {len(ideal)} cells", flush=True)  # fmt: skip
        for name, weight, rival, own in zip(family.truths, weights, names, ours, strict=True):
            print(f"    {name:>6}: weight {weight:.3f}, rival {rival}, ours {own:.2f}")


if __name__ == "__main__":
    main(*[int(part) for part in sys.argv[1:]])
