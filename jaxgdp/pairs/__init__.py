"""The kit for authors of mechanisms: exact cells of a pair of laws, from atoms, stretches or
densities.
"""
