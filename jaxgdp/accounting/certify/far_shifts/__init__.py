"""Both sides of mixtures of shifts of which some are told from the others by a single output.

Which steps had a shift that is far, and which of them, is told nearly for certain; what the near
ones show is the curve of the near ones alone."""

from .curve import both_sides
from .others import Others, others
from .split import GAP, FarShifts, split

__all__ = ["GAP", "FarShifts", "Others", "both_sides", "others", "split"]
