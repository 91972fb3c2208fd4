"""What an adversary knows about the population before anything is released."""

from sidelight.belief.belief import Belief

__all__ = ["Belief"]
