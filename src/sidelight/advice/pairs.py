"""`advise_pairs`: how to collect where tables of two attributes are wanted, not only frequencies."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from sidelight.estimation.allotment import Allotment, Dependence, first_share
from sidelight.estimation.pairs import PairEstimates
from sidelight.estimation.set_tables import Names
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.html import html_table
from sidelight.protocols.direct import smp
from sidelight.protocols.groups import BEST
from sidelight.protocols.protocol import Design, check_budget
from sidelight.protocols.sets import all_pairs, pairs, sampled_sets
from sidelight.protocols.two_phase import adaptive_pairs
from sidelight.schema import Schema

LEAST_FIRST = 0.03
"""Below this share of people pairs are worth too little for a first phase."""
STRENGTHS = {"none": math.inf, "weak": 256.0, "middling": 32.0, "strong": 4.0}
"""Kinds of dependence by the alpha of Dirichlet(alpha x product of marginals) that a table then is like."""


@dataclass(frozen=True, eq=False)
class PairOption:
    """One collection, ready to be made, and the mean squared error of a table's cell to expect of it.

    Attributes:
        name: in words.
        design: a protocol, or two phases.
        epsilon: the realised budget of a record.
        error: on average over what is believed about dependence.
        errors: by kind of dependence, were all pairs of that kind, see `STRENGTHS`.
        pair_share: the share of people who report several attributes; of two phases, in the first.
    """

    name: str
    design: Design
    epsilon: float
    error: float
    errors: Mapping[str, float]
    pair_share: float


@dataclass(frozen=True, eq=False)
class PairAdvice:
    """The collections in order of the error to expect, and the one that is advised.

    So many people would report at that budget of a record; `origin` says what is believed about dependence.
    """

    options: tuple[PairOption, ...]
    advised: PairOption
    people: int
    epsilon: float
    origin: str
    notes: tuple[str, ...] = ()

    @property
    def choice(self) -> Design:
        """The design that is advised."""
        return self.advised.design

    @property
    def leakage(self) -> float:
        """What a report of the advised collection says at most about any secret, in nats: certified.

        Reports of two records differ by no more than e to the record's budget, hence so do those of any two
        values of a secret, whatever is correlated with what.
        """
        return self.advised.epsilon

    def to_json(self) -> str:
        """Return the table as JSON."""
        rows = [
            {
                "collection": item.name, "epsilon": item.epsilon, "error": item.error,
                "errors": dict(item.errors), "pair_share": item.pair_share,
                "phases": 1 if item.design.two_phase is None else 2,
            }
            for item in self.options
        ]  # fmt: skip
        head = {"people": self.people, "epsilon": self.epsilon, "assumed": self.origin}
        said = {"leakage": {"value": self.leakage, "kind": "certified"}}
        rest = {"advised": self.advised.name, **said, "options": rows, "notes": list(self.notes)}
        return json.dumps(head | rest, indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return f"PairAdvice({self.advised.name}; {self.people} people, epsilon {self.epsilon:g})"

    def _repr_html_(self) -> str:
        titles = ("collection", "error", *(f"dependence {kind}" for kind in STRENGTHS))
        rows = [(item.name, item.error, *item.errors.values()) for item in self.options]
        return html_table(repr(self), titles, rows)


def advise_pairs(
    schema: Schema, epsilon: float, people: int, known: PairEstimates | None = None
) -> PairAdvice:
    """Compare collections by the error to expect of the tables of all pairs.

    Args:
        schema: of a record.
        epsilon: the budget of a record.
        people: how many will report.
        known: tables from an earlier collection or from public data; what they say about dependence then
            decides how many people report what. By default tables are like those of real people mostly are.
    """
    budget, count = check_budget(epsilon), check_whole("people", people, at_least=1)
    believed = Allotment.prior(schema, budget) if known is None else _learnt(schema, budget, known)
    best = believed.best(count)
    even = 1 / len(all_pairs(schema))
    single: dict[Names, float] = {(name,): 1 / len(schema) for name in schema.names}
    rows: list[tuple[str, Design, Mapping[Names, float]]] = [
        ("attributes one by one, tables as products", smp(schema, budget, BEST), single),
        ("all pairs alike", pairs(schema, budget), dict.fromkeys(all_pairs(schema), even)),
        ("chosen sets, one phase", sampled_sets(schema, budget, best), best),
    ]
    options = [_option(name, design, shares, believed, count) for name, design, shares in rows]
    if known is None and (share := first_share(schema, budget, count)) >= LEAST_FIRST:
        options.append(_adaptive(schema, budget, share, believed, count))
    ordered = tuple(sorted(options, key=lambda option: option.error))
    # Only an average over beliefs favours one phase: the second is fitted to the dependence that there is.
    advised = options[-1] if len(options) > len(rows) else ordered[0]
    if known is None and len(options) == len(rows):
        advised = options[0]
    origin = "tables like those of most people" if known is None else f"tables of {known.people} reports"
    return PairAdvice(ordered, advised, count, budget, origin)


def _learnt(schema: Schema, epsilon: float, known: PairEstimates) -> Allotment:
    if known.schema != schema:
        raise InputError("`known` has tables of other attributes; estimate those of the same schema.")
    if missing := [names for names in all_pairs(schema) if names not in known.tables]:
        raise InputError(f"`known` has no table of {' and '.join(missing[0])}; estimate without `sets`.")
    believed = {names: Dependence.known(known.tables[names].distance) for names in all_pairs(schema)}
    squares = {name: float((share**2).sum()) for name, share in known.marginals.items()}
    return Allotment(schema, epsilon, believed, squares)


def _strength(believed: Allotment, alpha: float) -> Allotment:
    """Return what to expect were every pair's table so far from independence."""
    distances = {}
    for names in believed.dependence:
        square = math.prod(believed.squares[name] for name in names)
        distances[names] = Dependence.known((1 - square) / (alpha + 1))
    return Allotment(believed.schema, believed.epsilon, distances, believed.squares)


def _option(
    name: str, design: Design, shares: Mapping[Names, float], believed: Allotment, people: int
) -> PairOption:
    reports = {names: people * share for names, share in shares.items()}
    errors = {kind: _strength(believed, alpha).error(reports) for kind, alpha in STRENGTHS.items()}
    share = sum(part for names, part in shares.items() if len(names) > 1)
    return PairOption(name, design, design.first.epsilon, believed.error(reports), errors, share)


def _adaptive(schema: Schema, epsilon: float, share: float, believed: Allotment, people: int) -> PairOption:
    """Return the two phases; were the dependence known, the second would be the best there is for it."""
    design = adaptive_pairs(schema, epsilon, share)
    sets = all_pairs(schema)
    before = {names: share * people / len(sets) for names in sets}
    late = max(round(people * (1 - share)), 1)

    def error(assumed: Allotment) -> float:
        second = assumed.best(late, before)
        return assumed.error({
            names: before.get(names, 0.0) + late * second.get(names, 0.0) for names in assumed.groups
        })  # fmt: skip

    errors = {kind: error(_strength(believed, alpha)) for kind, alpha in STRENGTHS.items()}
    return PairOption(
        "pairs in two phases", design, design.first.epsilon, error(believed), errors, share
    )  # fmt: skip
