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
``NotImplementedError`` with the mechanism's name. If nothing is traced by ``jit`` or ``vmap``, two
small programs are compiled, one for all mechanisms and one for each class.

If losses are atoms, numbers are smooth in a parameter only between the places where an atom
moves past a threshold. Derivatives are exact where atoms lie far apart (between two of them, and
where the curve touches in a corner), and means over half a percent of ε where they lie close. In
the number of uses they are half the difference between one more use and one less, at fixed ε: meant
for many. If a use has few atoms (``RandomizedResponse``, ``PureDP``), those of an odd and of an
even number of uses lie in different places: there only δ at a fixed ε has a meaningful one; of the
numbers that touch the curve in one of its corners (μ, TPR at an FPR), as of ε at a δ, none should
be used.

Parameters of the pairs of replacing a record are refused where those are made from known numbers
(``DiscreteLaplace``)."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..bracket import Bracket
from ..quantities.registry import REGISTRY
from .calibrated import noise_multiplier
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
