"""What an adversary knows about the population before anything is released."""

from sidelight.belief.belief import Belief, check_belief
from sidelight.belief.credal import Credal
from sidelight.belief.gaussian import Gaussian
from sidelight.belief.tree import Tree

__all__ = ["Belief", "Credal", "Gaussian", "Tree", "check_belief"]
