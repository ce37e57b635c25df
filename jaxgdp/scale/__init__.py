"""Grids larger than one process: a store on disk that is filled chunk by chunk, and workers
elsewhere (extra ``scale``).
"""
