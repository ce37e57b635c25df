"""Grids of settings as labelled data."""
