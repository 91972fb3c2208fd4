"""The page of prior knowledge."""

from __future__ import annotations

from dataclasses import dataclass

from sidelight.knowledge import Adversary, KnowledgeAudit, NumberSum
from sidelight.report.knowledge_figures import adversaries_of, drawn_lines, graph_figure, knowledge_figure
from sidelight.report.knowledge_terminal import STANDINGS, compared, enough
from sidelight.report.page import Page

_SECTIONS = {
    "summary": "Verdict",
    "words": "In plain words",
    "curve": "Leakage against what is known",
    "targets": "Every target",
    "graph": "Graph of adversaries",
    "adversaries": "All adversaries of a target",
    "noise": "How much noise",
    "sources": "Data and query",
}
_CASES = {
    "group": "Corollary 1 of the paper says: as group privacy.",
    "weakest": "Every published edge is positive, so Corollary 1 of the paper says: the weakest.",
    "strongest": "Every published edge is negative, so Corollary 1 of the paper says: the strongest one.",
    "none": "The published edges have both signs, so Corollary 1 of the paper says nothing.",
}


@dataclass(frozen=True)
class Row:
    """The figures of one adversary in a table; None where a method has none."""

    adversary: Adversary
    exact: float
    published: float | None
    certified: float | None
    group: float
    is_hidden: bool

    @property
    def is_understated(self) -> bool:
        """Whether the published figure is below the truth."""
        return self.published is not None and self.published < self.exact - 1e-9


def knowledge_page(audit: KnowledgeAudit) -> Page:
    """Return the page of a query's leakage to adversaries with every amount of prior knowledge."""
    target = audit.worst.adversary.target
    figures = {"curve": knowledge_figure(audit)}
    graph = graph_figure(audit, target)
    if graph is not None:
        figures["graph"] = graph
    hidden = {"graph"} - set(figures) | ({"noise"} if audit.noise is None else set())
    context = {
        "audit": audit,
        "belief": audit.belief,
        "target": target,
        "standing": STANDINGS[audit.standing],
        "case": _CASES[audit.graph.case] if audit.graph else "",
        "targets": [_target_rows(audit, name) for name in audit.targets],
        "rows": [_row(audit, each) for each in adversaries_of(audit.exact.names, target)],
        "lines": drawn_lines(audit),
        "edges": list(audit.graph.all_edges(target)) if audit.graph and graph is not None else [],
        "is_gaussian": isinstance(audit.query, NumberSum),
        "enough": enough,
        "compared": compared,
        "sections": {key: text for key, text in _SECTIONS.items() if key not in hidden},
    }
    return Page(
        f"Sidelight: prior knowledge about {audit.belief.source}", "knowledge.html.j2", context, figures
    )


def _target_rows(audit: KnowledgeAudit, target: str) -> dict[str, Row]:
    """Return the weakest, the strongest and the worst adversary of a target."""
    everyone = adversaries_of(audit.exact.names, target)
    worst = max(everyone, key=audit.exact.of)
    return {
        name: _row(audit, each)
        for name, each in (("weakest", everyone[0]), ("strongest", everyone[-1]), ("worst", worst))
    }


def _row(audit: KnowledgeAudit, adversary: Adversary) -> Row:
    return Row(
        adversary,
        audit.exact.of(adversary),
        None if audit.published is None else audit.published.of(adversary),
        None if audit.certified is None else audit.certified.of(adversary),
        audit.group.of(adversary),
        audit.is_hidden(adversary),
    )
