"""What an adversary who already knows some attributes learns from one noisy answer (PDP)."""

from sidelight.knowledge.adversary import Adversary
from sidelight.knowledge.audit import AdversaryAudit, KnowledgeAudit, Layer, knowledge_audit
from sidelight.knowledge.edges import Edges
from sidelight.knowledge.figures import posterior, prior_leakage
from sidelight.knowledge.gaussian import NumberSum, gaussian_leakage, gaussian_weakest
from sidelight.knowledge.gaussian_audit import gaussian_audit
from sidelight.knowledge.graph import GraphEdge, WeightedGraph
from sidelight.knowledge.group import group_bound
from sidelight.knowledge.noise import NoiseChoice, least_noise
from sidelight.knowledge.query import Query
from sidelight.knowledge.search import Values, all_adversaries, worst_adversary

__all__ = [
    "Adversary",
    "AdversaryAudit",
    "Edges",
    "GraphEdge",
    "KnowledgeAudit",
    "Layer",
    "NoiseChoice",
    "NumberSum",
    "Query",
    "Values",
    "WeightedGraph",
    "all_adversaries",
    "gaussian_audit",
    "gaussian_leakage",
    "gaussian_weakest",
    "group_bound",
    "knowledge_audit",
    "least_noise",
    "posterior",
    "prior_leakage",
    "worst_adversary",
]
