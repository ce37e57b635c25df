"""Mechanisms: immutable, batched pytrees with the exact privacy loss of one use.

Those that a run does not use are not loaded (PEP 562)."""

import importlib
from typing import TYPE_CHECKING, Any

from .base import Mechanism
from .composition import Composition, as_composition, compose, dpsgd

if TYPE_CHECKING:
    from .approximate_dp import ApproximateDP
    from .deterministic import Deterministic
    from .discrete_gaussian import DiscreteGaussian
    from .discrete_laplace import DiscreteLaplace
    from .drawn_batch_size import DrawnBatchSize
    from .exponential_mechanism import ExponentialMechanism
    from .fixed_size import FixedSize
    from .from_densities import FromDensities
    from .from_pmfs import FromPMFs
    from .from_profile import FromProfile
    from .gaussian import Gaussian
    from .gaussian_mixture import GaussianMixture
    from .histograms import histogram
    from .laplace import Laplace
    from .last_model import LastIterate, last_iterate
    from .matrix_mechanism import MatrixMechanism
    from .noisy_maximum import NoisyMaximum
    from .of_groups import group_privacy
    from .partition_selection import PartitionSelection
    from .pure_dp import PureDP
    from .random_allocation import RandomAllocation
    from .randomized_response import RandomizedResponse
    from .selected import Selected
    from .shuffled import Shuffled
    from .shuffled_reports import ShuffledReports
    from .sparse_vector import SparseVector
    from .subsampled_gaussian import SubsampledGaussian
    from .subsampled_laplace import SubsampledLaplace
    from .thresholded import ThresholdedGaussian, ThresholdedLaplace
    from .truncated_poisson import TruncatedPoisson

__all__ = [
    "ApproximateDP",
    "Composition",
    "Deterministic",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DrawnBatchSize",
    "ExponentialMechanism",
    "FixedSize",
    "FromDensities",
    "FromPMFs",
    "FromProfile",
    "Gaussian",
    "GaussianMixture",
    "Laplace",
    "LastIterate",
    "MatrixMechanism",
    "Mechanism",
    "NoisyMaximum",
    "PartitionSelection",
    "PureDP",
    "RandomAllocation",
    "RandomizedResponse",
    "Selected",
    "Shuffled",
    "ShuffledReports",
    "SparseVector",
    "SubsampledGaussian",
    "SubsampledLaplace",
    "ThresholdedGaussian",
    "ThresholdedLaplace",
    "TruncatedPoisson",
    "as_composition",
    "compose",
    "dpsgd",
    "group_privacy",
    "histogram",
    "last_iterate",
]

# class → the module that defines it, where that is loaded at its first use
_HOMES = {
    "ApproximateDP": "approximate_dp",
    "Deterministic": "deterministic",
    "DiscreteGaussian": "discrete_gaussian",
    "DiscreteLaplace": "discrete_laplace",
    "DrawnBatchSize": "drawn_batch_size",
    "ExponentialMechanism": "exponential_mechanism",
    "FixedSize": "fixed_size",
    "FromDensities": "from_densities",
    "FromPMFs": "from_pmfs",
    "FromProfile": "from_profile",
    "Gaussian": "gaussian",
    "GaussianMixture": "gaussian_mixture",
    "Laplace": "laplace",
    "LastIterate": "last_model",
    "MatrixMechanism": "matrix_mechanism",
    "NoisyMaximum": "noisy_maximum",
    "PartitionSelection": "partition_selection",
    "histogram": "histograms",
    "PureDP": "pure_dp",
    "RandomAllocation": "random_allocation",
    "RandomizedResponse": "randomized_response",
    "Selected": "selected",
    "Shuffled": "shuffled",
    "ShuffledReports": "shuffled_reports",
    "SparseVector": "sparse_vector",
    "SubsampledGaussian": "subsampled_gaussian",
    "SubsampledLaplace": "subsampled_laplace",
    "ThresholdedGaussian": "thresholded",
    "ThresholdedLaplace": "thresholded",
    "TruncatedPoisson": "truncated_poisson",
    "group_privacy": "of_groups",
    "last_iterate": "last_model",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
