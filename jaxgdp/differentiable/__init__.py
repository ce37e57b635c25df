"""Certified numbers that can be traced by ``jit``, ``vmap`` and ``grad``, in parameters and T.

There are derivatives of every quantity that defines how its derivative acts on the curve
(``Quantity.tangency``): by the functions of this module, or by name with :func:`quantity`. They are
derivatives in what a mechanism declares (``Mechanism.differentiable``):

=====================================  ==================================
``SubsampledGaussian``                 ``noise_multiplier``, ``sampling_prob``
``Gaussian``, ``Deterministic``        ``noise_multiplier``
``Laplace``, ``DiscreteLaplace``       ``scale``
``SubsampledLaplace``                  ``scale``, ``sampling_prob``
``DiscreteGaussian``                   ``sigma``
``RandomizedResponse``, ``PureDP``     ``epsilon``
``ApproximateDP``                      ``epsilon``, ``delta``
=====================================  ==================================

and in the number of uses of all but ``ExponentialMechanism``. Everything else raises
``NotImplementedError`` with the mechanism's name.

A derivative is right to one percent, or it is refused. Those of Gaussian noise without subsampling
are closed forms. Those of subsampled Gaussian noise are of the law on its lattice; where that does
not serve (fewer than 10 uses, δ above 0.97, a wide bracket), they are found by differences of
brackets if all parameters are known, and NaN within ``jit`` and ``vmap``. If losses have atoms,
derivatives are found by differences of brackets on the host, within ``jit`` by a callback, and
:class:`UnprovenDerivative` is raised if brackets do not prove them or if the number has a corner
(an atom meets a threshold). Derivatives in the number of uses of such mechanisms are half the
difference between one use more and one less.

Parameters of the pairs of replacing a record are refused where those are made from known numbers
(``DiscreteLaplace``)."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..bracket import Bracket
from ..quantities.registry import REGISTRY
from .calibrated import noise_multiplier
from .differences import UnprovenDerivative
from .program import refuse_unknown_tangency
from .quantities import (
    advantage,
    approximate_mu,
    bayes_risk,
    beta,
    delta,
    epsilon,
    lattice,
    log_beta,
    log_tpr,
    mu,
    quantity,
    regret,
    tpr,
)

__all__ = [
    "UnprovenDerivative",
    "advantage",
    "approximate_mu",
    "bayes_risk",
    "beta",
    "delta",
    "epsilon",
    "lattice",
    "log_beta",
    "log_tpr",
    "mu",
    "noise_multiplier",
    "quantity",
    "refuse_unknown_tangency",
    "regret",
    "tpr",
]


def __getattr__(name: str) -> Callable[..., Bracket]:
    """A quantity that is registered and has no function of its own here."""
    if name not in REGISTRY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return functools.partial(quantity, name)
