"""What several quantities read off a certified curve in the same way; unbatched functions of arrays
of either library.

Each side of a bracket is worked out on its own: nothing here compares the two, so that a
contradiction stays visible until ``Quantity.settle`` looks for it."""
