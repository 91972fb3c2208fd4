"""The studio: a page on this machine that shows, while budgets move, what leaks. Needs the extra `service`.

Names are loaded when they are first used.
"""

from sidelight.foundation.modules import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
