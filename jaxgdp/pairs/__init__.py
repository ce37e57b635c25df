"""What authors of mechanisms use: exact cells of a pair of laws, from atoms, stretches or
densities.
"""
