"""Mechanisms: immutable, batched pytrees that know the exact privacy loss of one use."""

from .composition import Composition, as_composition, compose, dpsgd
from .gaussian import Gaussian
from .subsampled_gaussian import SubsampledGaussian

__all__ = ["Composition", "Gaussian", "SubsampledGaussian", "as_composition", "compose", "dpsgd"]
