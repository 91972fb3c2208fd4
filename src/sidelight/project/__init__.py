"""Projects: one file says what is collected, what must stay secret and why; one run reports on all of it.

Names are loaded when they are first used: a run of which nothing changed needs hardly any.
"""

from sidelight.foundation.modules import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
