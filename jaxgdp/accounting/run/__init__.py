"""What runs: passes over batches of settings, on NumPy or compiled by JAX."""
