"""Results for people: one HTML file that needs nothing else, and tables for a terminal.

Names are loaded when they are first used: a command that prints one table needs no other.
"""

from sidelight.foundation.modules import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
