"""Models of the label learnt from private reports: Naive Bayes, decision trees, synthetic records.

Names are loaded when they are first used: scikit-learn is slow to import, and few of them need it.
"""

from sidelight.foundation.modules import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
