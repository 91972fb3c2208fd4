"""A collection service: tasks, rounds, stores, HTTP and clients. Needs the extra `service`.

Names are loaded when they are first used: what a device needs is there without the extra.
"""

from sidelight.foundation.modules import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
