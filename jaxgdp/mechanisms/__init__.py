"""Mechanisms: immutable, batched pytrees with the exact privacy loss of one use."""

from .approximate_dp import ApproximateDP
from .base import Mechanism
from .composition import Composition, as_composition, compose, dpsgd
from .deterministic import Deterministic
from .discrete_gaussian import DiscreteGaussian
from .discrete_laplace import DiscreteLaplace
from .exponential_mechanism import ExponentialMechanism
from .fixed_size import FixedSize
from .from_densities import FromDensities
from .from_pmfs import FromPMFs
from .from_profile import FromProfile
from .gaussian import Gaussian
from .laplace import Laplace
from .pure_dp import PureDP
from .random_allocation import RandomAllocation
from .randomized_response import RandomizedResponse
from .shuffled import Shuffled
from .subsampled_gaussian import SubsampledGaussian
from .subsampled_laplace import SubsampledLaplace
from .truncated_poisson import TruncatedPoisson

__all__ = [
    "ApproximateDP",
    "Composition",
    "Deterministic",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "FixedSize",
    "FromDensities",
    "FromPMFs",
    "FromProfile",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "PureDP",
    "RandomAllocation",
    "RandomizedResponse",
    "Shuffled",
    "SubsampledGaussian",
    "SubsampledLaplace",
    "TruncatedPoisson",
    "as_composition",
    "compose",
    "dpsgd",
]
