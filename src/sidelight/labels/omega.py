"""Omega of kHR: given, from public records, or learnt from a share of the people; and the k that it allows.

The promise of kHR rests on omega(k) not being below the truth (CLLDP, section 4.3). So an omega from a sample
is by default an upper confidence limit, which holds for every attribute and every k at once. Public records
use the limits of `belief.credal`. A private sample is collected by subset selection of the pair (value,
label), and of the label alone by some: a count of reports is binomial with probability q + (p - q) f, so
Clopper and Pearson limit the pair's frequency from above and the label's from below.

The paper compares k = 1 and k = ceil(m / (e^eps + 1)) (CLLDP, Theorem 3, eq. (8)). Between them omega(k) may
be flat, so neither need be best; the search looks at every k with the exact total variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sidelight.belief.credal import Region, binomial_limit
from sidelight.foundation.arrays import Array, Whole
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole
from sidelight.labels.leakage import belief_curve, check_label_budget, check_omega, heaviest_sums, row_shares
from sidelight.labels.responses import AttributeTold, HeadsResponse
from sidelight.mechanisms.mechanism import Aggregate
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.subset import SubsetSelection

WidthRule = Literal["search", "published"]


@dataclass(frozen=True, eq=False)
class Omega:
    """The adversarial belief of one attribute, or combination, for every k.

    Attributes:
        curve: (values,) omega(k) for k = 1 to the number of values.
        source: where it came from, in words.
        confidence: the probability with which all curves made together are not below the truth; None where
            that is taken for granted, 0 for a point estimate, of which nothing is known.
    """

    curve: Array
    source: str
    confidence: float | None = None

    def __post_init__(self) -> None:
        curve = check_curve("curve", self.curve)
        least = np.arange(1, len(curve) + 1) / len(curve)
        # More values weigh no less, and k of n at least k/n.
        rising = np.maximum(np.maximum.accumulate(curve), least)
        object.__setattr__(self, "curve", np.minimum(rising, 1.0))

    @classmethod
    def given(cls, omega: float, values: int) -> Omega:
        """Take the weight of the likeliest value as given; k values weigh at most k times as much.

        >>> Omega.given(0.3, 5).curve.tolist()
        [0.3, 0.6, 0.9, 1.0, 1.0]
        """
        count = check_whole("values", values, at_least=1)
        weight = check_omega(omega)
        if weight * count < 1 - 1e-9:
            raise InputError(
                f"`omega` must be at least {1 / count:.4g}, since the likeliest of {count} values weighs "
                f"that much, got {omega!r}."
            )
        return cls(np.round(np.minimum(weight * np.arange(1, count + 1), 1.0), 15), "given")

    @classmethod
    def known(cls, conditionals: ArrayLike, source: str = "a known belief") -> Omega:
        """Take Pr(value | label) as known, shape (labels, values)."""
        return cls(belief_curve(conditionals), source)

    def at(self, width: int) -> float:
        """Return omega(k); 1 beyond the number of values."""
        return omega_at(self.curve, width)


def omegas_from_public(
    tables: Sequence[ArrayLike], *, confidence: float | None = 0.95, source: str = "public records"
) -> list[Omega]:
    """Return omega for each attribute from public counts, one table (labels, values) for each attribute.

    The confidence is that no figure of any attribute is below the truth; None for the point estimate.
    """
    counts = [_counts(table) for table in tables]
    if confidence is None:
        return [Omega(belief_curve(row_shares(table)), f"{source}, point estimate", 0.0) for table in counts]
    risk = (1 - check_number("confidence", confidence, above=0, below=1)) / len(tables)  # the union bound
    return [Omega(_public_curve(table, risk), source, confidence) for table in counts]


def _counts(table: ArrayLike) -> Array:
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.size == 0 or not np.all((counts >= 0) & (counts == np.floor(counts))):
        raise InputError(
            "every table must hold counts of people, one row for each label; shares will not do."
        )
    return counts


def _public_curve(counts: Array, risk: float) -> Array:
    """Return an upper limit of omega(k) for all k, from the limits of every set of values."""
    region = Region(counts, risk / len(counts))
    sets = region.upper_share(np.minimum(heaviest_sums(region.shares), 1.0))
    return np.asarray(np.minimum(np.minimum(heaviest_sums(region.high), sets).max(axis=0), 1.0))


def joint_confidence(omegas: Sequence[Omega]) -> tuple[str, float | None]:
    """Return where several omegas came from, and how sure it is that none is below the truth.

    Omegas of one source and confidence were made together and hold together; others by the union bound.
    """
    kinds = list(dict.fromkeys((omega.source, omega.confidence) for omega in omegas))
    risks = [1 - confidence for _, confidence in kinds if confidence is not None]
    source = " and ".join(dict.fromkeys(source for source, _ in kinds))
    return source, max(0.0, 1 - sum(risks)) if risks else None


def sample_response(values: int, labels: int, epsilon: float) -> HeadsResponse:
    """Return subset selection of (value, label): kHR with omega = 1, k = max(1, floor(m / (e^eps + 1)))."""
    usual = math.floor(values * labels / (math.exp(check_label_budget(epsilon)) + 1))
    return HeadsResponse(values, labels, epsilon, max(1, usual), 1.0)


@dataclass(frozen=True, eq=False)
class LabelSample:
    """What a share of the people sent about the label alone, by subset selection of it."""

    selection: SubsetSelection
    added: Aggregate

    @classmethod
    def of(cls, selection: SubsetSelection, reports: Reports) -> LabelSample:
        """Add reports up."""
        return cls(selection, selection.aggregate(reports))


def learn_omegas(
    samples: Sequence[AttributeTold], labels: LabelSample, *, confidence: float | None = 0.95
) -> list[Omega]:
    """Return omega for each attribute from the reports of a share of the people.

    Each person is in the sample of one attribute, by `sample_response`, or in `labels`. The confidence is
    that no figure of any attribute is below the truth; None for the published point estimate, below it about
    half of the time.
    """
    people = labels.added.reports + sum(sample.count for sample in samples)
    source = f"learnt from {people} people"
    if confidence is None:
        return [Omega(_estimated_curve(sample), f"{source}, point estimate", 0.0) for sample in samples]
    # Half for pairs, half for labels.
    risk = (1 - check_number("confidence", confidence, above=0, below=1)) / 2
    least = _least_labels(labels, risk)
    return [Omega(_upper_curve(sample, least, risk / len(samples)), source, confidence) for sample in samples]


def _estimated_curve(sample: AttributeTold) -> Array:
    """Return omega(k) of the estimated joint, negative cells set to 0 (CLLDP, section 7.3)."""
    values = sample.response.values
    if not sample.count:
        return np.ones(values)
    joint = np.maximum(sample.joint(), 0.0)
    occurring = row_shares(joint.T[joint.sum(axis=0) > 0])
    return np.asarray(np.clip(heaviest_sums(occurring).max(axis=0), 1 / values, 1.0))


def _upper_curve(sample: AttributeTold, least: Array, risk: float) -> Array:
    """Return an upper limit of omega(k) for all k: the cells' upper limits over the labels' lower ones."""
    response, people = sample.response, np.array(float(sample.count))
    counts = sample.added.sums.astype(np.float64)
    p, q = map(float, response.mechanism.mark_rates)
    cells = np.clip((binomial_limit(counts, people, risk / len(counts)) - q) / (p - q), 0.0, 1.0)
    ranked = heaviest_sums(cells.reshape(response.values, response.labels).T)
    curves = np.divide(ranked, least[:, None], out=np.ones_like(ranked), where=least[:, None] > 0)
    return np.asarray(np.minimum(np.where(ranked > 0, curves, 1e-12).max(axis=0), 1.0))


def hoped_curve(response: HeadsResponse, people: int, risk: float) -> Array:
    """Return the limit of omega(k) to expect from so many reports where all values and labels are alike.

    No distribution has a smaller omega; `risk` is that of one cell's limit.
    """
    from scipy.special import ndtri

    if people < 1:
        return np.ones(response.values)
    p, q = map(float, response.mechanism.mark_rates)
    alike = 1 / (response.values * response.labels)
    chance = q + (p - q) * alike
    above = -float(ndtri(risk)) * math.sqrt(chance * (1 - chance) / people) / (p - q)
    weight = (alike + above) * response.labels
    return np.asarray(np.minimum(weight * np.arange(1, response.values + 1), 1.0))


def _least_labels(sample: LabelSample, risk: float) -> Array:
    """Return lower limits of the labels' frequencies, shape (labels,)."""
    people = np.array(float(sample.added.reports))
    others = people - sample.added.sums.astype(np.float64)
    p, q = map(float, sample.selection.mark_rates)
    lower = 1 - binomial_limit(others, people, risk / len(others))  # a limit of its complement from above
    return np.asarray(np.clip((lower - q) / (p - q), 0.0, 1.0))


def heads_variance(pairs: int, widths: ArrayLike, factors: ArrayLike, *, frequencies: float = 1.0) -> Array:
    """Return n times the total variance of kHR for each k and its factor theta.

    The sum of CLLDP, eq. (7), over all m pairs: m q(1-q)/(p-q)^2 + (1-p-q)/(p-q), with
    p = k theta / (k theta + m - k) and q = (k - p)/(m - 1); infinite where theta is 1. `frequencies` = 0
    leaves the second part out, as the paper does.
    """
    k, theta = np.asarray(widths, dtype=np.float64), np.asarray(factors, dtype=np.float64)
    p = k * theta / (k * theta + pairs - k)
    q = (k - p) / (pairs - 1)
    # The difference p - q without its cancellation at small budgets.
    gap = k * (pairs - k) * (theta - 1) / ((pairs - 1) * (k * theta + pairs - k))
    safe = np.where(gap > 0, gap, 1.0)
    variance = pairs * q * (1 - q) / safe**2 + frequencies * (1 - p - q) / safe
    return np.asarray(np.where(gap > 0, variance, np.inf))


def published_width(pairs: int, epsilon: float, omegas: ArrayLike) -> int:
    """Return 1 or ceil(m / (e^eps + 1)), whichever has the smaller variance (CLLDP, eq. (8)).

    There are m pairs of value and label; the omegas are omega(k) for k = 1, 2, ..., and 1 beyond.
    """
    large = min(math.ceil(pairs / (math.exp(check_label_budget(epsilon)) + 1)), pairs - 1)
    widths = np.array([1, max(large, 1)])
    scores = heads_variance(pairs, widths, _factors(epsilon, widths, omegas), frequencies=0.0)
    return int(widths[0] if scores[0] < scores[1] else widths[1])


def best_width(pairs: int, epsilon: float, omegas: ArrayLike) -> int:
    """Return the k of 1 to m - 1 with the least total variance; never worse than `published_width`."""
    widths = np.arange(1, pairs)
    return int(widths[heads_variance(pairs, widths, _factors(epsilon, widths, omegas)).argmin()])


def heads_least_variance(pairs: int, epsilon: float, omegas: ArrayLike) -> float:
    """Return n times the total variance of kHR at the best k."""
    widths = np.arange(1, pairs)
    return float(heads_variance(pairs, widths, _factors(epsilon, widths, omegas)).min())


def chosen_width(rule: WidthRule | int, pairs: int, epsilon: float, omegas: ArrayLike) -> int:
    """Return k by rule, or the given one after checking it."""
    if isinstance(rule, str):
        check_choice("k", rule, ("search", "published"))
        return (best_width if rule == "search" else published_width)(pairs, epsilon, omegas)
    return check_whole("k", rule, at_least=1, at_most=pairs - 1)


def check_curve(name: str, omegas: ArrayLike) -> Array:
    """Return omega(k) for k = 1, 2, ... after checking that each is above 0 and at most 1."""
    curve = np.asarray(omegas, dtype=np.float64)
    if curve.ndim != 1 or not len(curve):
        raise InputError(f"`{name}` must list omega(k) for k = 1, 2, ...; it is empty.")
    for end in (curve.min(), curve.max()):
        check_omega(float(end))
    return curve


def omega_at(omegas: ArrayLike, width: int) -> float:
    """Return omega(k) from the curve; 1 beyond its end."""
    curve = np.asarray(omegas, dtype=np.float64)
    return float(curve[width - 1]) if width <= len(curve) else 1.0


def _factors(epsilon: float, widths: Whole, omegas: ArrayLike) -> Array:
    """Return theta = 1 + (e^eps - 1) / omega(k) for each k."""
    curve = check_curve("omegas", omegas)
    whole = np.ones(max(int(widths.max()), len(curve)))
    whole[: len(curve)] = curve
    return np.asarray(1 + math.expm1(check_label_budget(epsilon)) / whole[widths - 1])
