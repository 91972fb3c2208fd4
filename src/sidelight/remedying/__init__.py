"""An audit in, the ways back under its limits out, each with its price and its plan."""

from sidelight.remedying.coarsening import Coarsening as Coarsening, coarsenings as coarsenings
from sidelight.remedying.compute import remedies as remedies
from sidelight.remedying.result import Exposed as Exposed, Remedies as Remedies, Remedy as Remedy
from sidelight.remedying.result import Tradeoff as Tradeoff
