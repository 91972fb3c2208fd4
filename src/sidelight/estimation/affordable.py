"""How many attributes a budget and so many people are enough for: which, and collected how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sidelight.estimation.expected_error import Frequencies
from sidelight.estimation.usefulness import Usefulness, usefulness
from sidelight.foundation.errors import check_choice
from sidelight.protocols.direct import Sample, Split, smp, spl
from sidelight.protocols.groups import BEST, make_group
from sidelight.schema import Schema

Way = Literal["sample", "split"]


@dataclass(frozen=True)
class Affordable:
    """The attributes that could be collected usefully, the easiest first, and the protocol that does it."""

    way: Way
    names: tuple[str, ...]
    protocol: Sample | Split
    usefulness: Usefulness


def affordable(
    schema: Schema, epsilon: float, people: int, frequencies: Frequencies | None = None, *,
    prior: Frequencies | None = None, way: Way = "sample",
) -> Affordable | None:  # fmt: skip
    """Return as many attributes as could be collected usefully, each of them; None where not even one could.

    A record's budget of epsilon keeps a limit of as many nats on every secret, whatever the population: no
    report is likelier by more than that for any two records. Each person sends one of the attributes, drawn
    at random ("sample"), or all of them with even parts of the budget ("split").

    Args:
        schema: the attributes to choose from; those that need the fewest people are taken first.
        epsilon: the budget of a record.
        people: how many report.
        frequencies: the true ones, see `usefulness`.
        prior: public ones that a guess could be made from.
        way: how the attributes share the budget.
    """
    check_choice("way", way, ("sample", "split"))
    alone = Split(schema, tuple(make_group(schema, [name], BEST, epsilon) for name in schema.names))
    each = usefulness(alone, people, frequencies, prior=prior)
    # An exact guess, of error 0, comes last: nothing beats it.
    order = sorted(schema.names, key=lambda name: each[name].error / max(each[name].guess_error, 1e-300))

    def collected(names: Sequence[str]) -> Affordable | None:
        kept = schema.select(names)
        protocol = smp(kept, epsilon, BEST) if way == "sample" else spl(kept, epsilon, BEST)
        found = usefulness(protocol, people, frequencies, prior=prior)
        is_useful = all(item.verdict == "useful" for item in found.attributes)
        return Affordable(way, tuple(names), protocol, found) if is_useful else None

    best, least, most = None, 1, len(order)
    while least <= most:  # more attributes leave less for each, so that bisection finds the most
        count = (least + most) // 2
        made = collected(order[:count])
        best, least, most = (made, count + 1, most) if made else (best, least, count - 1)
    return best
