"""The channel of one attribute that is most useful under limits on what it says about secrets.

For every report y, every two values x, x' of a secret and its limit e,
sum_u Pr(u | x) Q[u, y] <= exp(e) sum_u Pr(u | x') Q[u, y]: linear in the channel Q, like its expected
utility, so the best channel is the solution of a linear program (solved by HiGHS; Huangfu and Hall 2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sidelight.belief import Belief, check_belief
from sidelight.calibration.problem import check_mapping
from sidelight.calibration.uniform import largest_safe
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, TooLargeError, check_number, invalid
from sidelight.leakage.bounds import Leakage
from sidelight.leakage.pair import conditional_rows, direct_leakage, pair_leakage
from sidelight.mechanisms import Channel, DenseChannel, create
from sidelight.plan import Release

LARGEST_PROGRAMME = 1 << 22
_LARGEST_EXPONENT = 600.0  # e^-limit must stay a normal double, with room for a product
_FIRST_MIX = 1e-13  # well below the solver's tolerance of 1e-10, so that little is given away
_ULPS = 4e-16  # rules are sums of rounded products, so rounding alone breaks them by this share
_LEAST_MIX = 1e-9  # a cell of 0 has no logarithm, so a little of every report is mixed in
_LEAST_SPREAD = 1e-9  # a channel whose largest log-ratio is smaller tells nothing


@dataclass(frozen=True, eq=False)
class _Limits:
    """What a channel of the attribute must keep; see `OptimalChannel`."""

    belief: Belief
    attribute: str
    limits: Mapping[str, float]
    epsilon: float

    @property
    def size(self) -> int:
        """How many values the attribute has."""
        return self.belief.schema[self.attribute].size

    def leakage(self, channel: Channel) -> dict[str, Leakage]:
        """Return what a channel says about every secret."""
        return {
            secret: direct_leakage(self.belief, channel, secret)
            if secret == self.attribute
            else pair_leakage(self.belief, channel, secret, self.attribute)
            for secret in self.limits
        }

    def excess(self, channel: Channel) -> float:
        """Return by how much a channel breaks its worst limit or the budget; negative if it breaks none."""
        leaks = self.leakage(channel)
        over = [leaks[secret].value - limit for secret, limit in self.limits.items()]
        return max([channel.epsilon - self.epsilon, *over])

    def rules(self) -> Array:
        """Return one row a for each rule a.Q[:, y] <= 0 that every report y must keep, shape (rules, k)."""
        itself = np.eye(self.size)
        rules = [_ratios(itself, self.epsilon)] if math.isfinite(self.epsilon) else []
        for secret, limit in self.limits.items():
            if secret == self.attribute:
                rows = itself[self.belief.prior(self.attribute) > 0]
            else:
                rows, _ = conditional_rows(self.belief, secret, self.attribute)
            rules.append(_ratios(rows, limit))
        return np.concatenate(rules)

    def response(self) -> Channel:
        """Return randomised response with the largest budget under the same limits."""

        def channel(budget: float) -> Channel:
            return create("grr", self.size, budget).channel

        least = 1e-9
        if self.excess(channel(least)) > 0:
            return create("withheld", self.size).channel
        return channel(largest_safe(lambda budget: self.excess(channel(budget)), least))


@dataclass(frozen=True, eq=False)
class OptimalChannel:
    """The best channel of an attribute under limits, with randomised response under the same limits.

    Attributes:
        belief: what the adversary knows.
        attribute: what is reported.
        limits: how much each secret may leak through it.
        epsilon: the budget it keeps for its own values; infinite if none was asked for.
        channel: the channel; report number y is the guess y where the utility is accuracy.
        utility: its expected utility.
        bound: what no channel under these limits exceeds, by the program's dual, to the solver's tolerance.
        leakage: what it says about every secret.
        response_epsilon: the largest budget of randomised response under the same limits.
        response_utility: its expected utility, a report taken as it is; NaN where reports are no values.
        response_best: its expected utility if each report is turned into the most useful one.
    """

    belief: Belief
    attribute: str
    limits: Mapping[str, float]
    epsilon: float
    channel: DenseChannel
    utility: float
    bound: float
    leakage: Mapping[str, Leakage]
    response_epsilon: float
    response_utility: float
    response_best: float

    def release(self) -> Release:
        """Return the channel as a part of a plan, under the same limits.

        The exponential mechanism with the logarithm of a channel as its utility is that channel, if its
        nominal budget is twice the largest log-ratio. Its probabilities are whole numbers of a random word,
        so as little of a useless channel is mixed in as keeps the limits once they are rounded.
        """
        asked = _Limits(self.belief, self.attribute, self.limits, self.epsilon)
        attribute, cells = self.belief.schema[self.attribute], self.channel.cells
        mix = _LEAST_MIX
        while mix < 1:
            logs = np.log((1 - mix) * cells + mix / cells.shape[1])
            spread = float(np.ptp(logs, axis=0).max())
            if spread < _LEAST_SPREAD:
                break
            release = Release(attribute, "exp", 2 * spread, parameters={"utility": logs.tolist()})
            if asked.excess(release.channel()) <= 0:
                return release
            mix *= 4  # few tries, and at most four times what is needed is given away
        raise InputError(
            f"the optimal channel of {self.attribute!r} tells next to nothing under these limits; withhold "
            "it, or raise the limits."
        )


def optimal_channel(
    belief: Belief, attribute: str, limits: Mapping[str, float], *, epsilon: float | None = None,
    utility: ArrayLike | None = None,
) -> OptimalChannel:  # fmt: skip
    """Return the channel of `attribute` with the largest expected utility under limits on secrets.

    Args:
        belief: what the adversary knows.
        attribute: what is reported.
        limits: how much each secret may leak through this report alone, above 0; the attribute itself may be
            one.
        epsilon: a budget that the attribute's own values keep too.
        utility: (k, reports), what report y is worth for value u; accuracy, 1 where they agree, by default.
            As many reports as the utility has columns suffice: reports of the same use can be merged.
    """
    check_belief("belief", belief)
    gains = _gains(utility, belief.schema[attribute].size) * belief.prior(attribute)[:, None]
    asked = _asked(belief, attribute, limits, epsilon)
    rules = asked.rules()
    cells, bound = _solve(gains, rules)
    channel = _on_the_safe_side(cells, gains, rules)
    response = asked.response()
    likely = response.matrix()
    return OptimalChannel(
        **vars(asked),
        channel=channel,
        utility=float((gains * channel.cells).sum()),
        bound=bound,
        leakage=asked.leakage(channel),
        response_epsilon=response.epsilon,
        response_utility=float((gains * likely).sum()) if gains.shape == likely.shape else math.nan,
        response_best=float((likely.T @ gains).max(axis=1).sum()),
    )


def _asked(belief: Belief, attribute: str, limits: Mapping[str, float], epsilon: float | None) -> _Limits:
    """Check the limits and the budget."""
    if not limits and epsilon is None:
        raise InputError("an optimal channel needs a limit or an `epsilon`; without one it tells the truth.")
    for name in check_mapping("limits", limits):
        belief.schema.index(name)
    checked = {
        name: check_number(f"limit of {name}", value, above=0, below=_LARGEST_EXPONENT)
        for name, value in limits.items()
    }
    own = math.inf if epsilon is None else check_number("epsilon", epsilon, above=0)
    return _Limits(belief, attribute, checked, own)


def _gains(utility: ArrayLike | None, size: int) -> Array:
    wanted = f"a finite matrix of {size} rows and at least 2 columns"
    try:
        gains = np.eye(size) if utility is None else np.asarray(utility, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid("utility", wanted, utility, "Leave it out for accuracy.") from None
    if gains.ndim != 2 or len(gains) != size or gains.shape[1] < 2:
        raise invalid("utility", wanted, f"one of shape {gains.shape}")
    if not np.isfinite(gains).all():
        raise InputError(f"`utility` must be {wanted}; some cells are not finite.")
    return gains


def _ratios(rows: Array, limit: float) -> Array:
    """Return e^-limit row x - row x' for every ordered pair, scaled so that large limits stay small."""
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows)) if i != j]
    scaled = math.exp(-limit)
    return np.array([scaled * rows[i] - rows[j] for i, j in pairs]).reshape(len(pairs), rows.shape[1])


def _solve(gains: Array, rules: Array) -> tuple[Array, float]:
    """Return the best channel and the dual's bound on its expected utility."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, identity, kron

    size, reports = gains.shape
    if rules.size * reports > LARGEST_PROGRAMME:
        raise TooLargeError(
            f"the linear program has {len(rules) * reports} rules over {gains.size} cells; use coarser bins "
            "or fewer secrets."
        )
    inequalities = kron(csr_array(rules), identity(reports, format="csr"), format="csr")
    sums = kron(identity(size, format="csr"), np.ones((1, reports)), format="csr")
    tolerances = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solution = linprog(
        -gains.ravel(), A_ub=inequalities, b_ub=np.zeros(inequalities.shape[0]), A_eq=sums,
        b_eq=np.ones(size), bounds=(0, None), method="highs", options=tolerances,
    )  # fmt: skip
    if solution.status != 0:
        raise InputError(
            f"the limits are too small for the precision of the linear program (status {solution.status}); "
            "give larger ones, or withhold the attribute."
        )
    return np.maximum(solution.x.reshape(size, reports), 0.0), float(-solution.eqlin.marginals.sum())


def _on_the_safe_side(cells: Array, gains: Array, rules: Array) -> DenseChannel:
    """Mix in as little of a useless channel as makes every rule hold, which the solver keeps nearly.

    The law of the useless channel does not depend on the value and has a share in every report, so it keeps
    every rule with room to spare: the more, the larger the limits.
    """
    cells = cells / cells.sum(axis=1, keepdims=True)
    best = int(gains.sum(axis=0).argmax())  # of all constant reports the most useful
    useless = np.full_like(cells, 0.5 / cells.shape[1])
    useless[:, best] += 0.5
    mix = 0.0
    while mix < 1:
        mixed = (1 - mix) * cells + mix * useless
        if (rules @ mixed <= _ULPS * (np.abs(rules) @ mixed)).all():
            return DenseChannel(mixed / mixed.sum(axis=1, keepdims=True))
        mix = max(2 * mix, _FIRST_MIX)
    constant = np.zeros_like(cells)
    constant[:, best] = 1.0
    return DenseChannel(constant)
