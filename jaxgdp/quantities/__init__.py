"""Numbers read off a certified trade-off curve; unbatched functions of a ``Curve``, each returning a Bracket."""
