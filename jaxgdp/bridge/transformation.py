"""The GDP transformation: at every ε the μ of the Gaussian with the same δ (Liu et al. 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bracket import Bracket
from ..numerics.errors import COMPOSED_MU
from ..numerics.shapes import ArrayLike
from ..numerics.validation import broadcast, checked
from .inversion import mu_of_sides
from .source import as_source

RTOL = 1e-4


def gdp_transformation(source: Any, epsilon: ArrayLike, *, rtol: float = RTOL) -> Bracket:
    """μ_A(ε), the solution of δ_μ(ε) = δ_A(ε) (Liu et al. 2022, Definition 4.1).

    A mechanism is μ-GDP if and only if μ_A(ε) ≤ μ for every ε ≥ 0 (Corollary 4.1). The
    transformation keeps order, and is constant for Gaussian mechanisms.

    Args:
        source: a mechanism, a composition, a trade-off curve, a profile of :func:`refine`, or a
            callable ε ↦ δ, an upper bound on the profile for both orders of neighbours. A curve of
            one order only ("add") answers for that order.
        epsilon: ε ≥ 0 in nats, any shape; broadcast against the mechanism's.
        rtol: requested relative width of the curve of a mechanism, in [1e-8, 1).

    Returns:
        Bracket; report the upper side. Both sides for a callable are those of the function itself:
        the mechanism behind it has at most the upper one, and only a statement other than the
        function's own could give less than the lower one. 0 where δ is 0, ∞ where it is 1.

    Raises:
        ValueError: the source is none of these, ε is out of range, or the callable raises, returns
            no number in [0, 1], or increases; with the ε at which it does.

    Example:
        >>> import jaxgdp
        >>> profile = lambda epsilon: jaxgdp.gdp.delta(epsilon=epsilon, mu=1.5)
        >>> bracket = gdp_transformation(profile, [0.0, 1.0, 6.0])
        >>> bool(bracket.contains(1.5).all()), bool((bracket.width < 1e-9).all())
        (True, True)
    """
    epsilon = checked("epsilon", epsilon, "a finite number >= 0", lambda a: a >= 0.0)
    source = as_source(source, rtol)
    shape = () if source.curve is None else source.curve.shape
    shape = broadcast(mechanism=np.empty(shape), epsilon=epsilon)
    low, high = source.sides(epsilon)
    epsilon = np.broadcast_to(epsilon, shape)
    lower, upper = mu_of_sides(
        epsilon, *((np.broadcast_to(a, shape) for a in side) for side in (low, high))
    )
    shown, most = source.limits()
    lower = np.maximum(lower, np.asarray(shown) * (1.0 - COMPOSED_MU))
    upper = np.minimum(upper, np.asarray(most) * (1.0 + COMPOSED_MU))
    bracket, _ = Bracket.from_sides(lower, upper, (0.0, np.inf), 1e-14)
    return bracket
