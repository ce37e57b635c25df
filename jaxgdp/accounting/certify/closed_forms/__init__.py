"""Settings whose curve is known in closed form, so that no lattice is needed: compositions that are
all Gaussian, and one use of a mechanism that knows its curve.
"""

from .answer import answer, oriented, read
from .find import Found, find, of_each

__all__ = ["Found", "answer", "find", "of_each", "oriented", "read"]
