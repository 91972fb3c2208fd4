"""The likelihood of estimates whose variance rises with the frequency, as that of counts does.

It is e^(-D/2) with the deviance D = 2 int_x^f (f - t) / V(t) dt (Wedderburn 1974; McCullagh, Nelder 1989,
9.2), V the variance of independent noise. Counts of randomised response are Poisson counts given their sum.
So this is their own likelihood where an error is about those whom people were drawn from; about the people
themselves it is an approximation, since their noise stays as skewed when its variance is less. With V
constant it is the normal likelihood.

The kernels integrate normal factors only. Near the means that a prior leads to, such a factor has the height
and the slope of the likelihood there, and the likelihood's height at the estimate. So every prior is judged
twice: with noise near what a few priors make of the estimates, then near its own means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.estimation.bayes import Noisy
from sidelight.estimation.priors import SHAPES, possible
from sidelight.estimation.unbiased import Unbiased
from sidelight.estimation.under_priors import Averaged, by_size, stacked, under_one, write_some
from sidelight.foundation.arrays import Array, Mask

_FLATTEST = 0.1  # the least precision of a normal factor, of that at its frequency: nobody's report has none
_NEARLY_CONSTANT = 1e-3
_BEYOND = 15.0  # nats behind the likeliest prior of an attribute, where means hardly matter
_RIGHT = 0.2  # how far the logarithms of variances may be apart


@dataclass(frozen=True, eq=False)
class SkewedNoise:
    """Estimates of attributes of one size and the variance a + b x + c x^2 of their independent noise.

    All are (attributes, 1, values), but for `least`, which no variance is below, (attributes, 1, 1), and
    `offset`, (attributes, 1): what moving estimates to where they add up to 1 left out of the evidence.
    """

    estimate: Array
    constant: Array
    slope: Array
    curve: Array
    least: Array
    offset: Array

    @classmethod
    def of(cls, laws: Sequence[Unbiased], attributes: Sequence[Noisy]) -> SkewedNoise:
        """Return the noise of estimates with these laws, which are `attributes` near some frequencies."""
        estimate = np.array([law.estimate for law in laws])[:, None]
        constant, slope, curve = (
            np.array(rows)[:, None] for rows in zip(*map(_independent, laws), strict=True)
        )
        least = np.array([item.least for item in attributes])[:, None, None]
        whole = np.array([item.variances.sum() for item in attributes])[:, None]
        return cls(estimate, constant, slope, curve, least, (1 - estimate.sum(axis=2)) ** 2 / (2 * whole))

    def deviance(self, means: Array) -> Array:
        """Return D of every value at these frequencies, (attributes, priors, values)."""
        return self._deviance(means, self._variance(means))

    def excess(self, means: Array, centres: Array, variances: Array) -> Array:
        """Return the log-likelihood at these frequencies, less that of normal factors."""
        normal = (centres - means) ** 2 / variances
        return np.asarray(0.5 * (normal - self.deviance(means)).sum(axis=2) + self.offset)

    def under_one(self) -> tuple[Array, Array]:
        """Return means and evidence if one value has everything, and each is as likely to be it."""
        none, everything = (self.deviance(np.full_like(self.estimate, share))[:, 0] for share in (0.0, 1.0))
        means, evidence = under_one(none, everything)
        return means, evidence + self.offset[:, 0]

    def normal_at(self, means: Array) -> tuple[Array, Array]:
        """Return the centres and variances of the normal factors near these frequencies."""
        here, off = self._variance(means), self.estimate - means
        precise = 2 / here - self._deviance(means, here) / np.maximum(off**2, 1e-300)
        is_there = off**2 < 1e-12 * here
        wide = 1 / np.where(is_there, 1 / here, np.maximum(precise, _FLATTEST / here))
        return means + wide * off / here, wide

    def _variance(self, means: Array) -> Array:
        return np.maximum(self.constant + (self.slope + self.curve * means) * means, self.least)

    def _deviance(self, means: Array, here: Array) -> Array:
        """Return the integral with V linear between the frequency and the estimate, right at its third."""
        off = self.estimate - means
        rise = np.maximum(3 * (self._variance(means + off / 3) / here - 1), -1 + 1e-9)
        is_flat = np.abs(rise) < _NEARLY_CONSTANT
        safe = np.where(is_flat, 1.0, rise)
        curved = ((1 + safe) * np.log1p(safe) - safe) / safe**2
        return np.asarray(2 * off**2 / here * np.where(is_flat, 0.5 - rise / 6, curved))


def judged_again(
    laws: Sequence[Unbiased], items: Sequence[Noisy], before: Sequence[Averaged],
    given: Sequence[Array | None],
) -> list[Averaged]:  # fmt: skip
    """Return attributes under all priors, each with the likelihood near the means that it led to before."""
    found = list(before)
    for alike in by_size(items):
        places = [place for place in alike if _is_skewed(laws[place])]
        if places:
            noise = SkewedNoise.of([laws[place] for place in places], [items[place] for place in places])
            again = _judged_again(
                noise, [items[place] for place in places], [before[place] for place in places],
                [given[place] for place in places],
            )  # fmt: skip
            for place, result in zip(places, again, strict=True):
                found[place] = result
    return found


def _judged_again(
    noise: SkewedNoise, items: Sequence[Noisy], before: Sequence[Averaged], given: Sequence[Array | None]
) -> list[Averaged]:
    """Do as `judged_again` for attributes of one size.

    Where a prior is out of the question, or was judged with the right noise, its means stay and only its
    evidence is put right.
    """
    centres, deviations = stacked(items)
    used = deviations[:, None] ** 2
    found = means, spreads, evidence = _stacked(before)
    evidence += noise.excess(means, centres[:, None], used)
    is_likely = np.array([possible(means.shape[2], share is not None) for share in given])
    if is_likely[0, 0]:
        means[:, 0], evidence[:, 0] = noise.under_one()
        spreads[:, 0] = means[:, 0] * (1 - means[:, 0])
    middles, wide = noise.normal_at(means)
    again = _in_question(is_likely, evidence) & (np.abs(np.log(wide / used)).max(axis=2) > _RIGHT)
    fits = [one.fit for one in before]
    if again.any():
        write_some(again, middles, np.sqrt(wide), fits, given, found)
        evidence += np.where(again, noise.excess(means, middles, wide), 0.0)
    return [Averaged(*rows) for rows in zip(means, spreads, evidence, fits, strict=True)]


def _stacked(found: Sequence[Averaged]) -> tuple[Array, Array, Array]:
    """Return means, variances and evidence of attributes."""
    means, spreads, evidence = zip(*((one.means, one.spreads, one.evidence) for one in found), strict=True)
    return np.array(means), np.array(spreads), np.array(evidence)


def _in_question(is_likely: Mask, evidence: Array) -> Mask:
    """Return which priors may matter, (attributes, priors), but those whose means are known beforehand."""
    found = np.where(is_likely, evidence, -np.inf)
    near = found > found.max(axis=1, keepdims=True) - _BEYOND
    near[:, [0, len(SHAPES) - 1, -1]] = False
    return np.asarray(near)


def _is_skewed(law: Unbiased) -> bool:
    """Return whether the variance is known to change with the frequency."""
    return len(law.estimate) > 1 and bool(np.any(law.slope) or np.any(law.curve))


def _independent(law: Unbiased) -> tuple[Array, Array, Array]:
    """Return a, b and c of the independent noise that an estimate's is, once its sum is known.

    Where estimates add up to 1, V(x) = a + bx is taken to add up to the same whatever the frequencies are, as
    it does for randomised response, so that noise of variance V(1 - V/sum V) is left. The law says how much
    that is for even frequencies, and for a value of frequency 0.
    """
    size = len(law.estimate)
    if not law.adds_up:
        return law.constant, law.slope, law.curve
    whole = max(float(law.variance(np.full(size, 1 / size)).sum()) * size / (size - 1), 1e-300)
    constant = 2 * law.constant / (1 + np.sqrt(np.maximum(1 - 4 * law.constant / whole, 0.0)))
    slope = max(whole - float(constant.sum()), 0.0)
    return constant, np.full(size, slope), np.zeros(size)
