"""Readings of a certified curve that quantities share: unbatched functions of either library.

Each side of a bracket is worked out on its own: nothing here compares the two, so that a
contradiction remains until ``Quantity.settle`` checks for it."""
