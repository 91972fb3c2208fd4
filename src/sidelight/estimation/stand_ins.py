"""Attributes that are simulated for others: errors of a thousand attributes from those of a few.

Attributes of about the same size, noise and unevenness err alike, so in each class of sizes some are
simulated, evenly over their order. The others take the errors of the nearest one, rank by rank of their
frequencies, in proportion to what linear shrinkage would leave: v s / (v + s) of noise v and unevenness s
(a ratio estimate: Cochran, Sampling Techniques, 1977, ch. 6).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sidelight.estimation.shrinkage import shared_domains
from sidelight.foundation.arrays import Array, Positions
from sidelight.schema import Schema

MOST_VALUES = 4_000
"""Attributes are simulated one and all up to this many values of all together."""
_CLASSES_PER_DOUBLING = 2
_LEAST_UNEVEN = 0.02


@dataclass(frozen=True, eq=False)
class StandIns:
    """Which attributes are simulated, and for whom: by attribute the one that stands in for it.

    `sharing` says how many attributes have the same values, by these.
    """

    schema: Schema
    sharing: Counter[tuple[str, ...]]
    chosen: Mapping[str, str]
    frequencies: Mapping[str, Array]
    remainders: Mapping[str, float]

    @classmethod
    def of(cls, schema: Schema, frequencies: Mapping[str, Array], variances: Mapping[str, Array]) -> StandIns:
        """Choose those to simulate; frequencies that are not known have shape (draws, values)."""
        sharing = Counter(attribute.values for attribute in schema)
        if sum(schema.sizes) <= MOST_VALUES:
            return cls(schema, sharing, {name: name for name in schema.names}, frequencies, {})
        remainders = {name: _remainder(frequencies[name], variances[name]) for name in schema.names}
        chosen: dict[str, str] = {}
        left, classes = MOST_VALUES, _classes(schema, sharing, frequencies, variances)
        for place, names in enumerate(classes):
            largest = max(schema[name].size for name in names)
            # What the small ones leave goes to the large.
            most = max(left // ((len(classes) - place) * largest), 1)
            length = -(-len(names) // most)
            runs = [names[start : start + length] for start in range(0, len(names), length)]
            left = max(left - sum(schema[run[len(run) // 2]].size for run in runs), 0)
            chosen |= {name: run[len(run) // 2] for run in runs for name in run}
        for mates in shared_domains(schema):
            if len(mates) > 1 and sum(chosen[name] == name for name in mates) == 1:
                # One alone would not show what those that share their values learn of each other.
                mate = next(name for name in mates if chosen[name] != name)
                chosen[mate] = mate
        return cls(schema, sharing, chosen, frequencies, remainders)

    @property
    def simulated(self) -> list[str]:
        """The attributes to simulate, in the order of the schema."""
        wanted = set(self.chosen.values())
        return [name for name in self.schema.names if name in wanted]

    def everyone(self, errors: Mapping[str, Array]) -> dict[str, Array]:
        """Return errors of all attributes, (draws, values), from those of the simulated ones."""
        return {name: self._errors(name, other, errors[other]) for name, other in self.chosen.items()}

    def _errors(self, name: str, other: str, errors: Array) -> Array:
        if name == other:
            return errors
        draws = len(errors)
        ranks, taken = (_order(self.frequencies[one], draws) for one in (name, other))
        size, count = ranks.shape[1], taken.shape[1]
        nearest = (2 * np.arange(size) + 1) * count // (2 * size)
        scale = math.sqrt(self.remainders[name] / self.remainders[other])
        result = np.empty((draws, size))
        np.put_along_axis(
            result, ranks, scale * np.take_along_axis(errors, taken[:, nearest], axis=1), axis=1
        )
        return result


def _classes(
    schema: Schema, shared: Counter[tuple[str, ...]], frequencies: Mapping[str, Array],
    variances: Mapping[str, Array],
) -> list[list[str]]:  # fmt: skip
    """Return the attributes by size, the smallest first, each class in the order of how its members err."""
    places = {values: place for place, values in enumerate(shared)}
    classes: defaultdict[int, list[tuple[float, ...]]] = defaultdict(list)
    for number, item in enumerate(schema):
        # Those that share their values are estimated together: they stay so, beside such as are as many.
        sharing = shared[item.values]
        domain = sharing, places[item.values] if sharing > 1 else -1
        noise, uneven = _noise(variances[item.name]), _unevenness(frequencies[item.name])
        kind = round(_CLASSES_PER_DOUBLING * math.log2(item.size))
        classes[kind].append((*domain, round(math.log2(noise)), uneven * item.size**2, item.size, number))
    return [[schema.names[int(row[-1])] for row in sorted(classes[kind])] for kind in sorted(classes)]


def _order(frequencies: Array, draws: int) -> Positions:
    """Return the values of each draw from the rarest to the commonest, (draws, values)."""
    some = frequencies[:draws] if frequencies.ndim > 1 else frequencies
    return np.broadcast_to(np.argsort(some, axis=-1, kind="stable"), (draws, some.shape[-1]))


def _remainder(frequencies: Array, variances: Array) -> float:
    """Return the mean squared error that is left by linear shrinkage to even frequencies."""
    noise, uneven = _noise(variances), _unevenness(frequencies)
    # An estimate of even frequencies is not exact either.
    uneven = max(uneven, _LEAST_UNEVEN * noise / (1 + noise * frequencies.shape[-1] ** 2))
    return float(noise * uneven / (noise + uneven))


def _noise(variances: Array) -> float:
    return max(float(variances.mean()), 1e-300)


def _unevenness(frequencies: Array) -> float:
    return float(((frequencies - 1 / frequencies.shape[-1]) ** 2).mean())
