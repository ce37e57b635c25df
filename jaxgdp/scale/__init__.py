"""Grids larger than one process: a store filled chunk by chunk, workers elsewhere (``scale``)."""
