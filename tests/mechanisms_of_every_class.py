"""Settings of every class of mechanisms, two of each, for whatever has to hold for all of them."""

import jax
import numpy as np

import jaxgdp
from jaxgdp import mechanisms
from jaxgdp.mechanisms.base import known_mechanisms

_X = np.linspace(-12.0, 13.0, 101)
_DENSITIES = mechanisms.FromDensities.normalized(_X, -np.abs(_X) / 1.5, -np.abs(_X - 1.0) / 1.5)

# class → (a batch of two, how many uses of each)
SETTINGS = {
    "SubsampledGaussian": (mechanisms.SubsampledGaussian([1.1, 2.0], [0.02, 0.1]), [400, 300]),
    "GaussianMixture": (
        mechanisms.GaussianMixture(
            [1.5, 3.0], [0.0, 1.0, 2.0], [[0.96, 0.03, 0.01], [0.0, 0.7, 0.3]]
        ),
        [40, 5],
    ),
    "LastIterate": (mechanisms.LastIterate([1.0, 2.0], [0.05, 0.1], [2, 3]), [2, 1]),
    "MatrixMechanism": (
        mechanisms.MatrixMechanism(
            [1.0, 0.5], [2.0, 4.0], "CyclicPoisson(sampling_prob=0.2, cycle=2)", 8
        ),
        [3, 2],
    ),
    "Gaussian": (mechanisms.Gaussian([2.0, 5.0]), [1, 7]),
    "Laplace": (mechanisms.Laplace([3.0, 8.0]), [5, 30]),
    "SubsampledLaplace": (mechanisms.SubsampledLaplace([1.0, 2.0], [0.1, 0.3]), [20, 20]),
    "DiscreteGaussian": (mechanisms.DiscreteGaussian([4.0, 8.0]), [3, 10]),
    "DiscreteLaplace": (mechanisms.DiscreteLaplace([3.0, 5.0]), [4, 6]),
    "RandomizedResponse": (mechanisms.RandomizedResponse([0.4, 1.0]), [9, 3]),
    "PureDP": (mechanisms.PureDP([0.3, 0.6]), [10, 4]),
    "ApproximateDP": (mechanisms.ApproximateDP([0.3, 0.5], [1e-9, 1e-8]), [8, 3]),
    "ExponentialMechanism": (mechanisms.ExponentialMechanism([0.2, 0.5]), [6, 3]),
    "RandomAllocation": (mechanisms.RandomAllocation([3.0, 2.0], [20.0, 30.0]), [2, 1]),
    "TruncatedPoisson": (
        mechanisms.TruncatedPoisson([1.1, 2.0], [0.02, 0.1], [60, 150], [1000, 1000]),
        [40, 30],
    ),
    "FixedSize": (mechanisms.FixedSize([3.0, 4.0], [20, 50], [1000, 1000]), [5, 3]),
    "FromPMFs": (
        mechanisms.FromPMFs([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0]], [[0.3, 0.3, 0.4], [0.4, 0.5, 0.1]]),
        [4, 3],
    ),
    "FromProfile": (
        mechanisms.FromProfile([0.0, 0.5, 1.0], [[0.2, 0.1, 0.01], [0.3, 0.1, 0.0]]),
        [3, 2],
    ),
    "FromDensities": (_DENSITIES, [6, 2]),
    "Deterministic": (mechanisms.Deterministic([2.0, 5.0], 4), [1, 7]),
    "Shuffled": (mechanisms.Shuffled([2.0, 0.8], [20, 100], [1, 2]), [1, 2]),
    "Selected": (
        mechanisms.Selected(mechanisms.RandomizedResponse([0.4, 1.0]), jaxgdp.runs.Geometric(3.0)),
        [2, 1],
    ),
    "NoisyMaximum": (mechanisms.NoisyMaximum([2.0, 4.0], [3, 10], "gaussian"), [2, 3]),
    "SparseVector": (mechanisms.SparseVector([4.0, 8.0], [8.0, 20.0], [9, 30]), [2, 3]),
}
# (a class of one new file: one of its examples, with two numbers of uses)
SETTINGS.update(
    {
        name: (next(iter(kind.examples.values()))(), [2, 3])
        for name, kind in known_mechanisms().items()
        if name not in SETTINGS
    }
)


def composition(name):
    """Both settings of a class in one batch."""
    mechanism, uses = SETTINGS[name]
    return jaxgdp.compose([(mechanism, np.array(uses))])


# tables of thousands of atoms, two steps in one, and a bracket that nobody can close
_ALONE = (
    "RandomAllocation",
    "FixedSize",
    "TruncatedPoisson",
    "Shuffled",
    "Selected",
    "PartitionSelection",
    "DrawnBatchSize",
    "NoisyMaximum",
    "SparseVector",
)


def element(name, index):
    """One setting of a class, unbatched."""
    mechanism, _ = SETTINGS[name]
    leaves, structure = jax.tree.flatten(mechanism)
    shapes = mechanism.parameter_shapes().values()
    taken = [
        np.asarray(a)[index] if outer else a for a, (outer, _) in zip(leaves, shapes, strict=True)
    ]
    return jax.tree.unflatten(structure, taken)


def one_of_each(both=True):
    """One use of every class but those of ``_ALONE``, composed: both settings in one batch, or the
    first one.
    """
    return jaxgdp.compose(
        [
            (mechanism if both else element(name, 0), 1)
            for name, (mechanism, _) in SETTINGS.items()
            if name not in _ALONE
        ]
    )
