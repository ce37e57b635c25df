"""Certified numbers of many mechanisms in one call, without keeping their curves.

ask       ``measure``: quantities of a mechanism or a batch
several   quantities of a list of runs
pieces    who computes: this process, or the workers of a client
result    ``Measured``: brackets by name, with their status
by_name   ``jaxgdp.epsilon`` and its kin: one quantity, made from the registry
"""

from .ask import measure
from .result import QUANTITIES, Measured

__all__ = ["QUANTITIES", "Measured", "measure"]
