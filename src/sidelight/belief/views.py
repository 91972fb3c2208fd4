"""A belief seen from one secret: people who have a value of it, and how likely a release is for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sidelight.belief.components import Component, log_mixture
from sidelight.belief.likelihoods import HALF_UNIT, Centred, centre
from sidelight.foundation.arrays import Array, Codes
from sidelight.foundation.errors import invalid
from sidelight.foundation.threads import one_thread
from sidelight.schema import Schema


@dataclass(frozen=True, eq=False)
class SecretView:
    """What a belief says about one secret and a whole release; `Belief.view` makes one.

    A release is given by its likelihoods: for each attribute that was reported, (n, values) numbers
    Pr(report | value), up to a factor for each report.

    Attributes:
        schema: the attributes of a record.
        secret: the attribute that is secret, with m values.
        components: models whose mixture the belief is; one, if it is no mixture.
        shares: (components,) of the mixture.
    """

    schema: Schema
    secret: str
    components: tuple[Component, ...]
    shares: Array

    @cached_property
    def _masses(self) -> Array:
        """The share of each component and value, shape (components, m)."""
        marginals = [component.marginal(self._place) for component in self.components]
        return np.asarray(self.shares[:, None] * np.stack(marginals))

    @cached_property
    def prior(self) -> Array:
        """The probability of each value of the secret, shape (m,); values that cannot occur have 0."""
        return np.asarray(self._masses.sum(axis=0))

    def draw(self, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records of people who have this value of the secret, shape (count, attributes)."""
        if not self.prior[value] > 0:
            label = self.schema[self.secret].values[value]
            raise invalid("value", f"a value of {self.secret} that occurs", label)
        parts = rng.multinomial(count, self._masses[:, value] / self.prior[value])
        drawn = [
            component.draw(self._place, value, int(part), rng)
            for component, part in zip(self.components, parts, strict=True)
            if part
        ]
        if not drawn:
            return np.empty((0, len(self.schema)), dtype=np.uint16)
        return drawn[0] if len(drawn) == 1 else rng.permutation(np.concatenate(drawn))

    def log_probabilities(self, likelihoods: Mapping[str, Array]) -> Array:
        """Return ln Pr(release | value) of each release and value, up to a number a release, shape (n, m).

        The secret's own report counts if it is among the likelihoods. Values that cannot occur get NaN.
        """
        return self._logs(*self._divided(likelihoods))

    def rounding(self, likelihoods: Mapping[str, Array]) -> float:
        """Return how far each of these logarithms may be from the truth, at most."""
        return self._error(*self._divided(likelihoods))

    def with_rounding(self, likelihoods: Mapping[str, Array]) -> tuple[Array, float]:
        """Return `log_probabilities` and `rounding`, for which likelihoods are prepared once."""
        divided = self._divided(likelihoods)
        return self._logs(*divided), self._error(*divided)

    def _logs(self, others: Centred, own: Array | None) -> Array:
        with one_thread():
            logs = [component.log_joint(others, self._place) for component in self.components]
        with np.errstate(divide="ignore", invalid="ignore"):
            joint = log_mixture(logs, self.shares) - np.log(self.prior)
            return np.asarray(joint if own is None else joint + np.log(own))

    def _error(self, others: Centred, own: Array | None) -> float:
        """Bound the error of the logarithms.

        A mixture of positive numbers has no larger relative error than the worst of them; the steps of mixing
        are within the components' own bounds. The shares, the prior and the own report come on top.
        """
        worst = max(component.rounding(others, self._place) for component in self.components)
        parts = [self.shares, self.prior] if own is None else [self.shares, self.prior, own]
        magnitude = sum(float(np.abs(np.log(part[part > 0])).max(initial=0.0)) for part in parts)
        return worst + 8 * HALF_UNIT * (1 + magnitude)

    @property
    def _place(self) -> int:
        return self.schema.index(self.secret)

    def _divided(self, likelihoods: Mapping[str, Array]) -> tuple[Centred, Array | None]:
        """Return the likelihoods of the other attributes by position, and those of the secret itself."""
        tables = {name: np.asarray(table, dtype=np.float64) for name, table in likelihoods.items()}
        releases = len(next(iter(tables.values()))) if tables else 1
        for name, table in tables.items():
            if table.shape != (expected := (releases, self.schema[name].size)):
                raise invalid(f"likelihoods of {name}", f"of the shape {expected}", table.shape)
        own = tables.pop(self.secret, None)
        return centre({self.schema.index(name): table for name, table in tables.items()}), own
