"""Random allocation: every record is in a fixed number of steps, drawn anew each epoch."""

from .mechanism import RandomAllocation

__all__ = ["RandomAllocation"]
