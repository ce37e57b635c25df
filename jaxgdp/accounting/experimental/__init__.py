"""Proven on no device yet: exact products of 32-bit numbers, and transforms without an FFT."""
