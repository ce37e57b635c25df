"""The certified head μ: the smallest μ with δ(ε) ≤ δ_μ(ε) on [0, ε_h] (Liu et al. 2022, Sec. 4.1).

On a grid 0 = e_0 < … < e_n = ε_h the GDP transformation is at least the largest of its values
there, and at most the largest of the solutions of δ_μ(e_{i+1}) = δ(e_i), because a profile does not
increase (Theorem 4.3). Those staircases come together with the width of the cells. A profile is
convex in e^ε besides, so in a cell it lies below its chord h + γα = TPR: that is the profile of one
attack with rates (α, TPR), and the Gaussian curve through that point, μ = Φ⁻¹(TPR) − Φ⁻¹(α),
touches the chord at ε = −μ(Φ⁻¹(α) + μ/2) and lies above it elsewhere. So in a cell that holds this
ε the transformation is at most that μ, and in any other cell no more than at the cell's ends. The
chords come together with the square of the width. A grid of n points takes one binary search for
each new largest value only, O(log n) of them in random order (Algorithm 1); all else are
comparisons.

Cells are cut where they decide, until both sides are as close as requested. On a Gaussian profile,
where they all do, that is to a width of μ·√(8·rtol), and no method needs fewer values: the profile
made of the chords has the same values. If the values of a function are not convex, and so not those
of a profile, only the staircases count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from ..bracket import Bracket
from ..numerics.shapes import Array
from ..numerics.validation import checked, relative_width, whole
from .chords import cuts
from .profile import Profile
from .search import Grid, Search
from .source import as_source

RTOL = 1e-4
MOST_EVALUATIONS = 20_000
_START = 16  # cells of the first grid
_MOST_CUTS = 24  # parts of a cell up to which their number is known well enough to cut at once
_FIRST_CUTS = 12  # parts in a round where it is not
_SHARE = 0.97  # of rtol that cells are cut for
_NARROW = 1e-13  # relative width of a cell that is not cut any more
_ROUNDS = 400
_NO_DIGITS = "wider than rtol: the values of the profile are not known to more digits"


@dataclass(frozen=True)
class Head:
    """A head μ with its bracket; build it with :func:`head`.

    Attributes:
        mu: bracket of the largest value of the GDP transformation on [0, ``epsilon_max``]; report
            the upper side.
        epsilon_max: ε_h, nats.
        epsilon: where the lower side is reached.
        fpr_floor: smallest FPR at which the upper μ holds, whatever the profile beyond ε_h: Φ(−μ/2
            − ε_h/μ).
        evaluations: number of ε at which the profile was evaluated.
        searches: number of values of the transformation that had to be solved for.
        status: "ok", or what keeps the bracket wider than requested and how many evaluations would
            do.
        profile: ε and δ of every evaluation, increasing in ε.
        convex: whether the values are those of a profile.
    """

    mu: Bracket
    epsilon_max: float
    epsilon: float
    fpr_floor: float
    evaluations: int
    searches: int
    status: str
    profile: tuple[np.ndarray, np.ndarray]
    convex: bool


def fpr_where_it_holds(mu: float, epsilon_max: float) -> float:
    """The FPR Φ(−μ/2 − ε/μ), rounded up, from which on a head μ up to ε holds."""
    if mu == 0.0:
        return 0.0
    if not np.isfinite(mu):
        return 1.0
    return float(np.exp(log_ndtr(-0.5 * mu - epsilon_max / mu)) * (1.0 + 1e-12))


def head(
    source: Any, epsilon_max: float, rtol: float = RTOL, *, max_evaluations: int = MOST_EVALUATIONS
) -> Head:
    """The largest value of the GDP transformation on [0, ε_h], certified (Liu et al. 2022, Sec. 4).

    Args:
        source: a mechanism, a composition, a trade-off curve, a profile of :func:`refine`, or a
            callable ε ↦ δ; scalar.
        epsilon_max: ε_h ≥ 0, nats.
        rtol: requested relative width of the bracket, in [1e-8, 1).
        max_evaluations: number of ε at which the profile may be evaluated. A few dozens are enough
            for most profiles; a Gaussian one that is known by its values only needs
            (ε_h/μ)/√(8·rtol) of them, whoever measures it.

    Returns:
        A :class:`Head`. For a callable the upper side of ``mu`` holds for every mechanism whose
        profile it bounds, for both orders of the neighbours; the lower side is what the function
        itself reaches where it was evaluated: no smaller μ follows from it (the mechanism behind
        a mere upper bound may have less).

    Raises:
        ValueError: an argument is out of range or batched, or the callable raises, returns no
            number in [0, 1], or increases; with the ε at which it does.

    Example:
        >>> import jaxgdp
        >>> profile = lambda epsilon: jaxgdp.gdp.delta(epsilon=epsilon, mu=1.5)
        >>> found = head(profile, epsilon_max=5.0, rtol=1e-3)
        >>> bool(found.mu.contains(1.5)), found.status, found.evaluations < 200
        (True, 'ok', True)
    """
    most = checked("epsilon_max", epsilon_max, "a finite number >= 0", lambda a: a >= 0.0)
    if most.ndim:
        raise ValueError(f"epsilon_max must be a number, got shape {most.shape}")
    most, rtol = float(most), float(relative_width("rtol", rtol))
    budget = int(whole("max_evaluations", max_evaluations))
    source = as_source(source, max(0.5 * rtol, 1e-8))
    if source.curve is not None and source.curve.shape != ():
        raise ValueError(
            f"source must be scalar (shape ()) to be measured, got shape {source.curve.shape}"
        )
    start = np.linspace(0.0, most, _START + 1)
    if isinstance(source.profile, Profile):
        corners = source.profile.epsilon
        start = np.concatenate([start, corners[corners <= most]])
    start = np.unique(start)
    if len(start) > budget:
        kept = np.linspace(0, len(start) - 1 if budget > 1 else 0, budget).round().astype(int)
        start = start[np.unique(kept)]
    least, greatest = (float(x) for x in source.limits())
    first = Grid(source, start[:1])
    grid = first if first.low.log_one_minus_delta[0] == -np.inf else Grid(source, start)
    return _measured(grid, (least, greatest), most, rtol, budget)


def _measured(
    grid: Grid, limits: tuple[float, float], most: float, rtol: float, budget: int
) -> Head:
    """The head μ on a grid that is refined until its sides are as close as requested."""
    search = Search(grid, limits)
    wanted, status, upper = 0, "ok", np.inf
    for _ in range(_ROUNDS):
        search.points()
        if len(grid.epsilon) < 2:
            upper = search.above if most == 0.0 or search.above == np.inf else np.inf
            upper = min(upper, limits[1])
            break
        above, curved = search.cells()
        upper = max(float(np.max(above)), search.above)
        if not search.low < np.inf or upper - search.low <= rtol * upper:
            break
        parts = _parts(search, above, curved, rtol)
        if parts is None:
            status = _NO_DIGITS
            break
        wanted = len(grid.epsilon) + int(np.sum(np.minimum(parts, 1e12)))
        more = _inner_points(grid.epsilon, parts, curved)
        if len(grid.epsilon) + len(more) > budget:
            allowed = f"evaluations would do, {budget} were allowed"
            status = f"wider than rtol: about {max(wanted, budget + 1)} {allowed}"
            break
        before = len(grid.epsilon)
        grid.add(more)
        if len(grid.epsilon) == before:
            status = _NO_DIGITS
            break
    else:
        status = f"wider than rtol: about {wanted} evaluations would do"
    if len(grid.epsilon) < 2 and upper > search.low * (1.0 + rtol):
        status = f"wider than rtol: more than {budget} evaluations are needed"
    return _finished(search, upper, most, status)


def _parts(search: Search, above: Array, curved: Array, rtol: float) -> Array | None:
    """Number of parts to cut each cell into, 0 where it stays whole; None where none can be cut."""
    grid = search.grid
    goal = max(search.above, search.low / (1.0 - _SHARE * rtol))
    room = max(goal - search.above, 0.1 * rtol * goal)
    left, right = grid.epsilon[:-1], grid.epsilon[1:]
    open_cells = (above > goal) & (right - left > _NARROW * right)
    if not np.any(open_cells):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = (above - search.above) / room
        fall = -np.diff(grid.falling().log_delta)
    parts = np.where(np.isfinite(ratio), np.ceil(np.where(curved, cuts(ratio, fall), ratio)), 4.0)
    return np.where(open_cells, parts, 0.0)


def _inner_points(epsilon: Array, parts: Array, curved: Array) -> Array:
    """The ε at which cells are cut in this round.

    A large number of parts is a guess: the cell is cut into a share of them, and examined again.
    """
    few = np.where(parts > _MOST_CUTS, np.ceil(np.minimum(parts / _MOST_CUTS, _FIRST_CUTS)), parts)
    most = np.where(curved, _MOST_CUTS, 3)
    number = np.where(parts > 0.0, np.clip(few, 2, most), 1).astype(int)
    return np.concatenate(
        [
            l + (r - l) * np.arange(1, k) / k
            for l, r, k in zip(epsilon[:-1], epsilon[1:], number, strict=True)
            if k > 1
        ]
    )


def _finished(search: Search, upper: float, most: float, status: str) -> Head:
    grid = search.grid
    bracket, _ = Bracket.from_sides(search.low, upper, (0.0, np.inf), 1e-14)
    top = float(bracket.upper)
    delta = np.minimum(np.exp(grid.high.log_delta) * (1.0 + 1e-15), 1.0)
    return Head(
        mu=Bracket(float(bracket.lower), top),
        epsilon_max=most,
        epsilon=search.epsilon,
        fpr_floor=fpr_where_it_holds(top, most),
        evaluations=len(grid.epsilon),
        searches=search.searches,
        status=status,
        profile=(grid.epsilon, delta),
        convex=not bool(np.any(grid.concave())),
    )


def head_mu(source: Any, epsilon_max: float, rtol: float = RTOL) -> Bracket:
    """The head μ on [0, ε_h] as a bracket; :func:`head` also says how it was found.

    Args:
        source: a mechanism, a composition, a trade-off curve, a profile of :func:`refine`, or a
            callable ε ↦ δ; scalar.
        epsilon_max: ε_h ≥ 0, nats.
        rtol: requested relative width, in [1e-8, 1).

    Returns:
        Bracket of floats; report the upper side, with ε_h or the FPR down to which it holds.

    Raises:
        ValueError: as :func:`head`.

    Example:
        >>> import jaxgdp
        >>> bracket = head_mu(jaxgdp.Laplace(scale=1.0), epsilon_max=1.0)
        >>> round(bracket.upper, 4)
        1.0301
    """
    return head(source, epsilon_max, rtol).mu
