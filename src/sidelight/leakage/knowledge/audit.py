"""KnowledgeAudit: a query's leakage to every adversary, layer by layer, beside the published figures."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.leakage.bounds import Bound
from sidelight.leakage.knowledge.adversary import Adversary
from sidelight.leakage.knowledge.cells import cells_of, check_one_belief
from sidelight.leakage.knowledge.edges import certified_values
from sidelight.leakage.knowledge.figures import prior_leakage
from sidelight.leakage.knowledge.graph import WeightedGraph
from sidelight.leakage.knowledge.group import group_values, reaches
from sidelight.leakage.knowledge.noise import NoiseChoice, least_noise
from sidelight.leakage.knowledge.query import Query
from sidelight.leakage.knowledge.search import Values, all_adversaries

Array = NDArray[np.float64]
Standing = Literal["weakest", "strongest", "both", "between"]
_ROUNDING = 1e-9


@dataclass(frozen=True)
class AdversaryAudit:
    """All figures of one adversary.

    Attributes:
        adversary: who.
        exact: the truth for the belief (or for a model).
        group: the group bound.
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


@dataclass(frozen=True)
class Layer:
    """All adversaries who know the same number of attributes.

    Attributes:
        known: how many attributes they know.
        adversaries: how many there are.
        worst: the one who learns most.
        exact: how much that is.
        least: how much the one who learns least does.
        group: the largest group bound.
        certified: the largest bound by sound edges.
        published: the largest published figure.
        understated: the share of adversaries whose published figure is below the truth.
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
    """What a noisy answer tells adversaries with every amount of prior knowledge.

    Attributes:
        belief: the joint distribution all of them believe in.
        query: what is asked, and the noise.
        targets: the attributes under attack.
        exact: the exact figure of every adversary.
        group: the group bound of every adversary.
        certified: the bound by sound edges; None where the graph is too large.
        graph: the published graph; None where it is too large or not defined.
        worst: the worst adversary, in full.
        named: adversaries that were asked for by name.
        noise: the least noise that keeps a limit; None if there is none.
    """

    belief: Belief
    query: Query
    targets: tuple[str, ...]
    exact: Values
    group: Values
    certified: Values | None
    graph: WeightedGraph | None
    worst: AdversaryAudit
    named: tuple[AdversaryAudit, ...] = ()
    noise: NoiseChoice | None = None

    @cached_property
    def published(self) -> Values | None:
        """The published figure of every adversary who attacks a target."""
        if self.graph is None:
            return None
        rows = [name in self.targets for name in self.graph.names]
        return Values(self.graph.names, np.where(np.array(rows)[:, None], self.graph.values.table, np.nan))

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, from the adversaries who know nothing to those who know all but the target."""
        return tuple(self._layer(known) for known in range(len(self.exact.names)))

    def _layer(self, known: int) -> Layer:
        worst, value = self.exact.worst(known)
        exact = self.exact.layer(known)
        published = None if self.published is None else self.published.layer(known)
        return Layer(
            known,
            len(exact),
            worst,
            value,
            float(exact.min()),
            float(self.group.layer(known).max()),
            None if self.certified is None else float(self.certified.layer(known).max()),
            None if published is None else float(published.max()),
            None if published is None else float(np.mean(published < exact - _ROUNDING)),
        )

    @property
    def standing(self) -> Standing:
        """Who learns most: the weakest adversary, the strongest, both alike, or one in between."""
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

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return {
            "belief": {
                "kind": self.belief.kind,
                "source": self.belief.source,
                "records": self.belief.sample_size,
                "smoothing": self.belief.smoothing,
                "is_model": self.belief.is_model,
            },
            "query": {"name": self.query.name, "scale": self.query.scale, "width": self.query.width},
            "attributes": list(self.query.schema.names),
            "targets": list(self.targets),
            "worst": audit_to_dict(self.worst),
            "worst_is": self.standing,
            "understated_share": self.understated,
            "named": [audit_to_dict(item) for item in self.named],
            "layers": [
                {**_finite(vars(layer)), "worst": _adversary_to_dict(layer.worst)} for layer in self.layers
            ],
            "noise": None if self.noise is None else _noise_to_dict(self.noise),
            "graph": None if self.graph is None or len(self.graph.names) > 6 else self.graph.to_dict(),
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
) -> KnowledgeAudit:
    """Compute the leakage of a query to every adversary.

    Args:
        belief: a joint distribution, small enough that all adversaries can be tried.
        query: what is asked, and the noise.
        targets: the attributes under attack; all of the query's by default.
        named: adversaries to show in full.
        limit: if given, also find the least noise that keeps everyone under it.
    """
    if isinstance(targets, str):
        raise InputError(f"`targets` must be a list of attributes, got the text {targets!r}.")
    chosen = tuple(query.schema.names if targets is None else targets)
    for adversary in named:
        adversary.check(query.schema.names)
        if adversary.target not in chosen:
            raise InputError(
                f"the named adversary attacks {adversary.target!r}, which is not among the targets "
                f"{', '.join(chosen)}; add it to them."
            )
    check_one_belief(belief)
    exact = all_adversaries(belief, query, chosen)
    certified, graph = _graphs(belief, query, chosen)
    return KnowledgeAudit(
        belief,
        query,
        chosen,
        exact,
        _group(belief, query, exact),
        certified,
        graph,
        adversary_audit(belief, query, exact.worst()[0], certified, graph),
        tuple(adversary_audit(belief, query, each, certified, graph) for each in named),
        None if limit is None else least_noise(belief, query, limit, chosen),
    )


def adversary_audit(
    belief: Belief,
    query: Query,
    adversary: Adversary,
    certified: Values | None = None,
    graph: WeightedGraph | None = None,
) -> AdversaryAudit:
    """Return all figures of one adversary; those of the graphs only where these are at hand."""
    return AdversaryAudit(
        adversary,
        prior_leakage(belief, query, adversary),
        prior_leakage(belief, query, adversary, "group")
        if query.is_additive
        else Bound(math.inf, "certified", "no bound is known without additive parts"),
        None
        if certified is None
        else Bound(
            certified.of(adversary), "model" if belief.is_model else "certified", "sound edges, least path"
        ),
        None if graph is None else graph.bound(adversary),
    )


def _graphs(
    belief: Belief, query: Query, targets: tuple[str, ...]
) -> tuple[Values | None, WeightedGraph | None]:
    """Return the certified values and the published graph where they can be computed."""
    if not query.is_additive:
        return None, None
    try:
        table = certified_values(belief, query)
        rows = np.array([name in targets for name in query.schema.names])
        certified = Values(query.schema.names, np.where(rows[:, None], table, np.nan))
        graph = WeightedGraph.from_belief(belief, query) if query.width == 1 else None
    except TooLargeError:
        return None, None
    return certified, graph


def _group(belief: Belief, query: Query, exact: Values) -> Values:
    """Return the group bound of every adversary that has an exact figure."""
    if query.is_additive:
        bounds = group_values(reaches(query, cells_of(belief, query).possible))
    else:
        bounds = np.full(exact.table.shape[1], np.inf)
    return Values(exact.names, np.where(np.isnan(exact.table), np.nan, bounds))


def _finite(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: "infinity" if value == math.inf else value for name, value in fields.items()}


def _adversary_to_dict(adversary: Adversary) -> dict[str, Any]:
    return {"target": adversary.target, "known": list(adversary.known)}


def audit_to_dict(item: AdversaryAudit) -> dict[str, Any]:
    """Return one adversary's figures as plain data."""
    return {
        **_adversary_to_dict(item.adversary),
        **{
            kind: None if bound is None else _bound_to_dict(bound)
            for kind, bound in (
                ("exact", item.exact),
                ("certified", item.certified),
                ("published", item.published),
                ("group", item.group),
            )
        },
        "understated": item.is_understated,
    }


def _bound_to_dict(bound: Bound) -> dict[str, Any]:
    return {
        "value": bound.value if math.isfinite(bound.value) else "infinity",
        "kind": bound.kind,
        "method": bound.method,
        "witness": None if bound.witness is None else vars(bound.witness),
        "support": bound.support,
    }


def _noise_to_dict(noise: NoiseChoice) -> dict[str, Any]:
    return {
        "limit": noise.limit,
        "scale": noise.scale,
        "group_scale": noise.group_scale,
        "saving": noise.saving,
        **_adversary_to_dict(noise.adversary),
        "leakage": _bound_to_dict(noise.leakage),
    }
