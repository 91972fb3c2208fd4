"""What an adversary knows about the population before anything is released."""

from sidelight.belief.belief import Belief as Belief
from sidelight.belief.belief import check_belief as check_belief
from sidelight.belief.credal import Credal as Credal
from sidelight.belief.gaussian import Gaussian as Gaussian
from sidelight.belief.population import Population as Population
from sidelight.belief.tree import Tree as Tree
from sidelight.belief.views import SecretView as SecretView
