"""KnowledgeAudit: a query's leakage to every adversary, layer by layer, beside the published figures."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sidelight.belief import Belief, Gaussian
from sidelight.foundation.arrays import Mask
from sidelight.foundation.errors import TooLargeError, check_whole
from sidelight.foundation.files import json_plain
from sidelight.foundation.html import html_table
from sidelight.knowledge.adversary import Adversary, Values, check_targets
from sidelight.knowledge.cells import cells_of, check_one_belief
from sidelight.knowledge.graph import WeightedGraph, certified_bound, certified_values, group_values
from sidelight.knowledge.leakage import prior_leakage
from sidelight.knowledge.noise import SUPPRESSED, NoiseChoice, least_noise
from sidelight.knowledge.query import NumberSum, Query
from sidelight.knowledge.search import all_adversaries, supported_adversaries
from sidelight.leakage.bounds import Bound

Standing = Literal["weakest", "strongest", "both", "between", "hidden"]
_ROUNDING = 1e-9  # two methods compute the same figure in different orders
_LARGEST_DRAWN = 6
"""The graph of more attributes is left out of a file: it would be most of it."""


@dataclass(frozen=True)
class AdversaryAudit:
    """All figures of one adversary.

    Attributes:
        exact: the truth for the belief (or for a model); the group bound where it rests on too few records.
        certified: by sound edges; None where the graph is too large.
        published: by the published graph, no bound; None where it is too large or not defined.
    """

    adversary: Adversary
    exact: Bound
    group: Bound
    certified: Bound | None = None
    published: Bound | None = None

    @property
    def is_understated(self) -> bool:
        """Whether the published figure is below the truth."""
        return self.published is not None and self.published.value < self.exact.value - _ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        bounds = {kind: vars(self)[kind] for kind in ("exact", "certified", "published", "group")}
        figures = {kind: bound and bound.to_dict() for kind, bound in bounds.items()}
        return {**self.adversary.to_dict(), **figures, "understated": self.is_understated}


@dataclass(frozen=True)
class Layer:
    """All adversaries who know the same number of attributes.

    `exact` is what the worst of them learns, `least` what the one does who learns least; group, certified and
    published figures are the layer's largest. `understated` is the share of published ones below the truth.
    """

    known: int
    adversaries: int
    worst: Adversary
    exact: float
    least: float
    group: float
    certified: float | None
    published: float | None
    understated: float | None


@dataclass(frozen=True, eq=False)
class KnowledgeAudit:
    """What a noisy answer tells adversaries with every amount of prior knowledge, who all hold one belief.

    Attributes:
        certified: the bound by sound edges; None where the graph is too large.
        graph: the published graph; None where it is too large or not defined.
        worst: the worst adversary, in full; `named` are those that were asked for by name.
        noise: the least noise that keeps a limit; None if there is none.
        min_support: figures that rest on fewer records are replaced by the group bound.
        hidden: (n, 2^n) whose figures were replaced; None if none were looked for.
        corollary_gap: for a Gaussian how far PDP, Corollary 2 is from the closed form, relatively.
    """

    belief: Belief | Gaussian
    query: Query | NumberSum
    targets: tuple[str, ...]
    exact: Values
    group: Values
    certified: Values | None
    graph: WeightedGraph | None
    worst: AdversaryAudit
    named: tuple[AdversaryAudit, ...] = ()
    noise: NoiseChoice | None = None
    min_support: int = 0
    hidden: Mask | None = None
    corollary_gap: float | None = None

    @cached_property
    def published(self) -> Values | None:
        """The published figure of every adversary who attacks a target."""
        return None if self.graph is None else self.graph.values.of_targets(self.targets)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, from the adversaries who know nothing to those who know all but the target."""
        return tuple(self._layer(known) for known in range(len(self.exact.names)))

    def _layer(self, known: int) -> Layer:
        exact, group = self.exact.layer(known), float(self.group.layer(known).max())
        figures = (*self.exact.worst(known), float(exact.min()), group)
        certified = None if self.certified is None else float(self.certified.layer(known).max())
        if self.published is None:
            return Layer(known, len(exact), *figures, certified, None, None)
        published = self.published.layer(known)
        understated = float(np.mean(published < exact - _ROUNDING))
        return Layer(known, len(exact), *figures, certified, float(published.max()), understated)

    @property
    def standing(self) -> Standing:
        """Who learns most: the weakest adversary, the strongest, both alike, one in between, or hidden."""
        if self.worst.exact.is_suppressed:
            return "hidden"
        top = self.layers[0].exact, self.layers[-1].exact
        most = max(layer.exact for layer in self.layers) - _ROUNDING
        if min(top) >= most:
            return "both"
        if top[0] >= most:
            return "weakest"
        return "strongest" if top[1] >= most else "between"

    @property
    def understated(self) -> float | None:
        """The share of all adversaries whose published figure is below the truth."""
        if self.published is None:
            return None
        there = ~np.isnan(self.exact.table)
        return float(np.mean(self.published.table[there] < self.exact.table[there] - _ROUNDING))

    def is_hidden(self, adversary: Adversary) -> bool:
        """Whether an adversary's figure rests on too few records, so that the group bound stands there."""
        return self.hidden is not None and bool(self.hidden[adversary.place(self.exact.names)])

    def __repr__(self) -> str:
        worst = f"worst {self.worst.exact.value:.4g} for {self.worst.adversary}"
        return f"KnowledgeAudit({self.query.name}, {len(self.targets)} targets: {worst})"

    def _repr_html_(self) -> str:
        titles = ("attributes known", "adversaries", "learns most", "how much", "group bound")
        rows = [[item.known, item.adversaries, item.worst, item.exact, item.group] for item in self.layers]
        return html_table(repr(self), titles, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        held = self.belief
        belief = {"kind": held.kind, "source": held.source, "records": held.sample_size}
        return {
            "belief": {**belief, "smoothing": held.smoothing, "is_model": held.is_model},
            "query": self.query.to_dict(),
            "min_support": self.min_support,
            "hidden_adversaries": 0 if self.hidden is None else int(self.hidden.sum()),
            "corollary_gap": self.corollary_gap,
            "attributes": list(self.exact.names),
            "targets": list(self.targets),
            "worst": self.worst.to_dict(),
            "worst_is": self.standing,
            "understated_share": self.understated,
            "named": [item.to_dict() for item in self.named],
            "layers": [{**json_plain(vars(layer)), "worst": layer.worst.to_dict()} for layer in self.layers],
            "noise": self.noise and self.noise.to_dict(),
            "graph": self.graph.to_dict() if self.graph and len(self.graph.names) <= _LARGEST_DRAWN else None,
        }

    def to_json(self) -> str:
        """Return all figures as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def knowledge_audit(
    belief: Belief,
    query: Query,
    targets: Sequence[str] | None = None,
    *,
    named: Sequence[Adversary] = (),
    limit: float | None = None,
    min_support: int = 0,
) -> KnowledgeAudit:
    """Compute the leakage of a query to every adversary, and show the `named` ones in full.

    The belief must be a joint distribution, small enough that all adversaries can be tried. With a `limit`
    also find the least noise that keeps everyone under it. `min_support` replaces figures that rest on fewer
    records by the group bound, and leaves the graphs out, for whose figures no records are counted; a belief
    given by hand rests on none.
    """
    check_one_belief(belief)
    chosen = check_targets(query.schema.names, targets, named)
    check_whole("min_support", min_support, at_least=0)
    least = min_support if belief.sample_size is not None else 0
    hidden = None
    if least:
        exact, supports = supported_adversaries(belief, query, chosen)
        # Written so that an unknown support hides too.
        hidden = ~np.isnan(exact.table) & ~(supports.table >= least)
    else:
        exact = all_adversaries(belief, query, chosen)
    group = _group(belief, query, exact)
    if hidden is not None:
        exact = Values(exact.names, np.where(hidden, group.table, exact.table))
    certified, graph = (None, None) if least else _graphs(belief, query, chosen)
    noise = None if limit is None else least_noise(belief, query, limit, chosen).shown(chosen, least)
    worst, *others = (
        adversary_audit(belief, query, each, certified, graph, min_support=least)
        for each in (exact.worst()[0], *named)
    )
    return KnowledgeAudit(
        belief, query, chosen, exact, group, certified, graph, worst, tuple(others), noise, least, hidden
    )


def adversary_audit(
    belief: Belief,
    query: Query,
    adversary: Adversary,
    certified: Values | None = None,
    graph: WeightedGraph | None = None,
    *,
    min_support: int = 0,
) -> AdversaryAudit:
    """Return all figures of one adversary; those of the graphs only where these are at hand."""
    if query.is_additive:
        group = prior_leakage(belief, query, adversary, "group")
    else:
        group = Bound(math.inf, "certified", "no bound is known without additive parts")
    exact = prior_leakage(belief, query, adversary)
    if min_support and belief.sample_size is not None and not exact.rests_on(min_support):
        exact = replace(group, method=SUPPRESSED)
    sound = None if certified is None else certified_bound(certified, belief, adversary)
    published = None if graph is None else graph.bound(adversary)
    return AdversaryAudit(adversary, exact, group, sound, published)


def _graphs(
    belief: Belief, query: Query, targets: tuple[str, ...]
) -> tuple[Values | None, WeightedGraph | None]:
    """Return the certified values and the published graph where they can be computed."""
    if not query.is_additive:
        return None, None
    try:
        certified = certified_values(belief, query).of_targets(targets)
        graph = WeightedGraph.from_belief(belief, query) if query.width == 1 else None
    except TooLargeError:
        return None, None
    return certified, graph


def _group(belief: Belief, query: Query, exact: Values) -> Values:
    """Return the group bound of every adversary that has an exact figure."""
    if query.is_additive:
        bounds = group_values(query.reaches(cells_of(belief, query).possible))
    else:
        bounds = np.full(exact.table.shape[1], np.inf)
    return Values(exact.names, np.where(np.isnan(exact.table), np.nan, bounds))
