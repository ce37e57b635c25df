"""Settings whose curve is known in closed form, so that no lattice is needed: compositions that are
all Gaussian, and one use of a mechanism that knows its curve.
"""

from .answer import answer, oriented, read
from .find import Found, find

__all__ = ["Found", "answer", "find", "oriented", "read"]
