"""What an adversary knows about the population before anything is released."""

from sidelight.belief.belief import Belief
from sidelight.belief.tree import Tree

__all__ = ["Belief", "Tree"]
