"""Quantities of a certified trade-off curve, one file each, and the registry that finds them.

A file holds how its quantity is read off a curve (an unbatched function of a ``Curve`` and a query,
each side worked out on its own) and ends in ``QUANTITY = Quantity(…)``. ``measure``, curves,
sweeps, targets, reports, the command line and the reference pages take what there is from
``registry.REGISTRY``; ``reading/`` holds what several of them share."""
