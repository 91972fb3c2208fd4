"""Who says what: the protocols of whole records, from a person's values to a report.

Names are loaded when they are first used, so that the commands can name every protocol without loading any.
"""

from sidelight.foundation.modules import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
