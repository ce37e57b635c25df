"""The kit for authors of mechanisms: exact cells of a pair, of atoms, stretches, densities."""
