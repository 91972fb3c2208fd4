"""What an adversary who already knows some attributes learns from one noisy answer (PDP)."""

from sidelight.knowledge.adversary import Adversary as Adversary, Values as Values
from sidelight.knowledge.audit import AdversaryAudit as AdversaryAudit, KnowledgeAudit as KnowledgeAudit
from sidelight.knowledge.audit import Layer as Layer, knowledge_audit as knowledge_audit
from sidelight.knowledge.gaussian import gaussian_audit as gaussian_audit
from sidelight.knowledge.gaussian import gaussian_leakage as gaussian_leakage
from sidelight.knowledge.gaussian import gaussian_weakest as gaussian_weakest
from sidelight.knowledge.graph import GraphEdge as GraphEdge, WeightedGraph as WeightedGraph
from sidelight.knowledge.leakage import group_bound as group_bound, posterior as posterior
from sidelight.knowledge.leakage import prior_leakage as prior_leakage
from sidelight.knowledge.noise import NoiseChoice as NoiseChoice, least_noise as least_noise
from sidelight.knowledge.query import NumberSum as NumberSum, Query as Query
from sidelight.knowledge.search import all_adversaries as all_adversaries, worst_adversary as worst_adversary
