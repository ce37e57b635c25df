"""Arithmetic that everything stands on: the array namespace, normal probabilities, checks of input,
64 bits.
"""
