"""Random allocation: every record takes part in a fixed number of steps, drawn anew in each
epoch.
"""

from .mechanism import RandomAllocation

__all__ = ["RandomAllocation"]
