"""Arithmetic below all else: the array namespace, normal probabilities, checks, 64 bits."""
