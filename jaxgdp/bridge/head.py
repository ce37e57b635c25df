"""The certified head μ of a privacy profile: the smallest μ with δ(ε) ≤ δ_μ(ε) on [0, ε_h] (Liu et
al. 2022, Section 4.1).

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

Cells are cut where they decide, until both sides are as near as asked. On a Gaussian profile, where
they all do, that is to a width of μ·√(8·rtol), and nobody can do with fewer values: the profile
that is made of the chords has the same ones. Where the values of a function are not convex, and so
not those of a profile, the staircases alone count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from ..bracket import Bracket
from ..numerics.errors import COMPOSED_MU, QUANTILE, QUANTILE_AT_ZERO, SPACING
from ..numerics.gaussian_profile import NODES, WEIGHTS
from ..numerics.normal import LOG_SQRT_2PI, log_sub, ndtri_exp
from ..numerics.validation import checked, relative_width, whole
from .inversion import exceeds, mu_of
from .profile import Profile
from .source import Source, as_source

RTOL = 1e-4
MOST_EVALUATIONS = 20_000
_START = 16  # cells of the first grid
_MOST_CUTS = 24  # parts of a cell up to which their number is known well enough to cut at once
_FIRST_CUTS = 12  # parts in a round where it is not
_SHARE = 0.97  # of rtol that cells are cut for
_MARGIN = 1.03  # more parts than the estimate, which is one
_SMALL = 0.1  # μ below which a difference of quantiles has lost digits
_NOT_CONVEX = (
    4e-16,
    1e-9,
)  # absolute and relative, by which a value may lie above its neighbours' chord by rounding
_NARROW = 1e-13  # relative width of a cell that is not cut any more
_ROUNDS = 400
_OPEN = 5e-11  # relative, by which a point may exceed a μ before its own is solved for


@dataclass(frozen=True)
class Head:
    """What is known of a head μ; build it with :func:`head`.

    Attributes:
        mu: bracket of the largest value of the GDP transformation on [0, ``epsilon_max``]; report
            the upper side.
        epsilon_max: ε_h, nats.
        epsilon: where the lower side is reached.
        fpr_floor: smallest FPR at which the upper μ holds, whatever the profile beyond ε_h: Φ(−μ/2
            − ε_h/μ).
        evaluations: number of ε at which the profile was asked. searches: number of values of the
            transformation that had to be solved for.
        status: "ok", or what keeps the bracket wider than asked and how many evaluations would do.
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
    """The FPR Φ(−μ/2 − ε/μ) at which the Gaussian curve has slope −e^ε: a head μ up to ε holds from
    there on, rounded up.
    """
    if mu == 0.0:
        return 0.0
    if not np.isfinite(mu):
        return 1.0
    return float(np.exp(log_ndtr(-0.5 * mu - epsilon_max / mu)) * (1.0 + 1e-12))


class _Grid:
    """Evaluated ε with δ from both sides, as logs, increasing in ε."""

    def __init__(self, source: Source, epsilon):
        self.source = source
        self.epsilon = np.zeros(0)
        self.low = self.high = (np.zeros(0), np.zeros(0))
        self.add(epsilon)

    def add(self, epsilon):
        epsilon = np.setdiff1d(epsilon, self.epsilon)
        low, high = self.source.sides(epsilon)
        order = np.argsort(np.concatenate([self.epsilon, epsilon]), kind="stable")

        def merged(old, new):
            return tuple(np.concatenate([a, b])[order] for a, b in zip(old, new, strict=True))

        self.low, self.high = merged(self.low, low), merged(self.high, high)
        self.epsilon = np.concatenate([self.epsilon, epsilon])[order]

    def falling(self):
        """log δ and log(1 − δ) from above, without the increases that rounding may make; a
        function's true value is no less.
        """
        log_delta, log_rest = self.high
        return (
            np.maximum.accumulate(log_delta[::-1])[::-1],
            np.minimum.accumulate(log_rest[::-1])[::-1],
        )

    def concave(self):
        """Whether an inner point lies above the chord of its neighbours."""
        found = np.zeros(len(self.epsilon), bool)
        if self.source.function is None or len(found) < 3:
            return found
        e, h = self.epsilon, np.exp(self.high[0])
        with np.errstate(under="ignore"):
            span = np.expm1(e[:-2] - e[2:])
            to_left = np.expm1(e[1:-1] - e[2:]) / span
            to_right = np.exp(e[1:-1] - e[2:]) * np.expm1(e[:-2] - e[1:-1]) / span
            chord = h[:-2] * to_left + h[2:] * to_right
        found[1:-1] = h[1:-1] > chord * (1.0 + _NOT_CONVEX[1]) + _NOT_CONVEX[0]
        return found


def _chord_mu(e, width, log_delta, log_rest):
    """μ of the attack that each cell's chord stands for, rounded up, and where its Gaussian profile
    touches; ∞ where no digits are left.

    Args:
        e: (left, right) ε of cells. width: of each. log_delta, log_rest: (left, right) logs, from
            above and from below.
    """
    fall = log_sub(log_delta[0], log_delta[1])
    log_alpha = np.minimum(fall - e[1] - np.log(-np.expm1(-width)), 0.0)
    flat = log_alpha == -np.inf
    safe = np.where(flat, -1.0, log_alpha)
    # whatever the slope is rounded to, a line above both ends is above the chord
    room = 8.0 * SPACING * (1.0 + e[1] + np.abs(safe))
    log_tpr = (
        np.maximum(*(np.logaddexp(d, x + safe) for d, x in zip(log_delta, e, strict=True))) + room
    )
    lost = [x + safe for x in e]
    keeps = [r > x + 4.0 * room for r, x in zip(log_rest, lost, strict=True)]
    log_fnr = np.minimum(
        *(
            np.where(
                k,
                log_sub(r, np.where(k, x, r - 1.0))
                - 2.0 * room / -np.expm1(np.where(k, x - r, -1.0)),
                -np.inf,
            )
            for r, x, k in zip(log_rest, lost, keeps, strict=True)
        )
    )
    by_tpr = log_tpr < np.log(0.5)
    z_tpr = np.where(
        by_tpr, ndtri_exp(np.minimum(log_tpr, 0.0)), -ndtri_exp(np.minimum(log_fnr, 0.0))
    )
    z_alpha = ndtri_exp(safe)
    mu = z_tpr - z_alpha + QUANTILE * (np.abs(z_tpr) + np.abs(z_alpha)) + 2.0 * QUANTILE_AT_ZERO
    mu = np.where(mu < _SMALL, np.minimum(mu, _small_mu(e, log_delta, safe, z_alpha, room)), mu)
    mu = np.where(np.isnan(mu), np.inf, np.maximum(mu, 0.0))
    # (of a flat chord, δ = TPR: nothing is closer than its right end)
    at = np.where(np.isfinite(mu), -mu * (z_alpha + 0.5 * mu), e[1])
    return np.where(flat, np.inf, mu), np.where(flat, np.inf, at)


def _small_mu(e, log_delta, log_alpha, z, room):
    """μ with Φ(z + μ) − Φ(z) = TPR − α = h + (γ − 1)α, a sum of positive terms: ∫₀^μ e^{−zs − s²/2}
    ds = (TPR − α)/φ(z).
    """
    log_gain = np.maximum(
        *(
            np.logaddexp(d, np.log(np.expm1(np.minimum(x, 700.0))) + log_alpha)
            for d, x in zip(log_delta, e, strict=True)
        )
    )
    area = np.exp(log_gain + 0.5 * z * z + LOG_SQRT_2PI)
    x = np.full(np.shape(z), _SMALL)
    for _ in range(12):
        s = 0.5 * x[..., None] * (1.0 + NODES)
        found = 0.5 * x * np.sum(WEIGHTS * np.exp(-s * (z[..., None] + 0.5 * s)), axis=-1)
        x = np.clip(x - (found - area) * np.exp(x * (z + 0.5 * x)), 0.0, 2.0 * _SMALL)
    s = 0.5 * x[..., None] * (1.0 + NODES)
    found = 0.5 * x * np.sum(WEIGHTS * np.exp(-s * (z[..., None] + 0.5 * s)), axis=-1)
    solved = np.abs(found - area) <= 1e-9 * area
    error = 2e-9 + 4.0 * room + 2.0 * QUANTILE * z * z
    return np.where(solved & (error < 0.1), x * (1.0 + error), np.inf)


def _excess(fall):
    """max_t log(chord/curve) of e^{−qt} on [0, 1], log a + 1/a − 1 with a = (1 − e^{−q})/q; q²/8
    for small q.
    """
    q = np.maximum(fall, 1e-4)
    a = -np.expm1(-q) / q
    return np.where(fall < 1e-3, fall * fall / 8.0, np.log(a) + 1.0 / a - 1.0)


def _cuts(ratio, fall):
    """Parts of a cell whose excess is ``ratio`` times what it may be, where log δ falls evenly by
    ``fall`` in it; for steering only.
    """
    ratio = np.maximum(ratio, 1.0)
    fall = np.where(np.isfinite(fall), fall, 0.0)
    wanted = _excess(fall) / ratio
    parts = np.sqrt(ratio)
    for _ in range(8):
        share = fall / parts
        # excess is close to a square: by how much it is not decides the next number
        parts = np.where(
            wanted > 0.0,
            parts * np.sqrt(_excess(share) / np.where(wanted > 0.0, wanted, 1.0)),
            parts,
        )
    return _MARGIN * parts


class _Measure:
    """The search: both sides on a growing grid."""

    def __init__(self, grid: _Grid, limits):
        self.grid, self.limits = grid, limits
        self.low, self.high, self.above = (
            limits[0] * (1.0 - COMPOSED_MU),
            0.0,
            0.0,
        )  # largest at the points, from below and from above
        self.epsilon, self.searches = 0.0, 0
        self.random = np.random.default_rng(0)

    def points(self):
        """Raise both largest values at the points; one binary search for each new one."""
        grid = self.grid
        for side, name in ((grid.low, "low"), (grid.high, "high")):
            done = np.zeros(len(grid.epsilon), bool)
            while True:
                # (room for what the search itself leaves open)
                above = np.flatnonzero(
                    exceeds(grid.epsilon, *side, getattr(self, name) * (1.0 + _OPEN)) & ~done
                )
                if not len(above):
                    break
                i = int(self.random.choice(above))
                done[i] = True
                self.searches += 1
                found = mu_of(grid.epsilon[i], side[0][i], side[1][i])
                if name == "low" and found[0] > self.low:
                    self.low, self.epsilon = float(found[0]), float(grid.epsilon[i])
                elif name == "high":
                    self.high = max(
                        self.high, min(float(found[1]), self.limits[1] * (1.0 + COMPOSED_MU))
                    )
        # a point that was passed over exceeds it by no more than that
        self.above = self.high * (1.0 + 2.0 * _OPEN)

    def cells(self):
        """What the transformation is at most in each cell, and whether its chord says so."""
        grid = self.grid
        e = grid.epsilon[:-1], grid.epsilon[1:]
        log_delta, log_rest = grid.falling()
        ends = (log_delta[:-1], log_delta[1:]), (log_rest[:-1], log_rest[1:])
        with np.errstate(all="ignore"):
            by_chord, at = _chord_mu(e, e[1] - e[0], *ends)
        width = e[1] - e[0]
        inside = (at >= e[0] - 0.01 * width) & (at <= e[1] + 0.01 * width)
        chord = np.where(inside | ~np.isfinite(by_chord), by_chord, self.above)
        concave = grid.concave()
        chord = np.where(concave[:-1] | concave[1:], np.inf, chord)
        stairs = np.full(len(width), self.above)
        # only where the staircase is above what is known is its height needed
        needed = exceeds(e[1], ends[0][0], ends[1][0], self.above) & (chord > self.above)
        if np.any(needed):
            self.searches += 1
            stairs[needed] = mu_of(e[1][needed], ends[0][0][needed], ends[1][0][needed])[1]
        curved = chord <= stairs
        most = np.maximum(np.minimum(chord, stairs), self.above)
        return np.minimum(most, self.limits[1] * (1.0 + COMPOSED_MU)), curved


def head(source, epsilon_max, rtol=RTOL, *, max_evaluations=MOST_EVALUATIONS) -> Head:
    """The largest value of the GDP transformation on [0, ε_h], with both sides certified (Liu et
    al. 2022, Theorem 4.3, Algorithm 1).

    Args:
        source: a mechanism, a composition, a trade-off curve, a profile of :func:`refine`, or a
            callable ε ↦ δ; scalar.
        epsilon_max: ε_h ≥ 0, nats.
        rtol: relative width asked of the bracket, in [1e-8, 1).
        max_evaluations: number of ε at which the profile may be asked. Few dozens are enough for
            most profiles; a Gaussian one, that is known by its values only, needs (ε_h/μ)/√(8·rtol)
            of them whoever measures it.

    Returns:
        A :class:`Head`. Of a callable the upper side of ``mu`` holds for every mechanism whose
        profile it bounds, for both orders of the neighbours; the lower side is what the function
        itself reaches where it was asked: no smaller μ follows from it (the mechanism behind a mere
        upper bound may have less).

    Raises:
        ValueError: an argument is out of range or batched, or the callable raises, returns no
            number in [0, 1], or increases; with the ε at which it does.

    Example:
        >>> import jaxgdp
        >>> found = head(lambda epsilon: jaxgdp.gdp.delta(epsilon=epsilon, mu=1.5), epsilon_max=5.0, rtol=1e-3)
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
        start = (
            start[np.unique(np.linspace(0, len(start) - 1, budget).round().astype(int))]
            if budget > 1
            else start[:1]
        )
    limits = tuple(float(x) for x in source.limits())
    first = _Grid(source, start[:1])
    grid = first if first.low[1][0] == -np.inf else _Grid(source, start)
    return _measured(grid, limits, most, rtol, budget)


def _measured(grid: _Grid, limits, most: float, rtol: float, budget: int) -> Head:
    measure = _Measure(grid, limits)
    wanted, status = 0, "ok"
    for _ in range(_ROUNDS):
        measure.points()
        if len(grid.epsilon) < 2:
            upper = measure.above if most == 0.0 or measure.above == np.inf else np.inf
            upper = min(upper, limits[1])
            break
        above, curved = measure.cells()
        upper = max(float(np.max(above)), measure.above)
        if not measure.low < np.inf or upper - measure.low <= rtol * upper:
            break
        goal = max(measure.above, measure.low / (1.0 - _SHARE * rtol))
        room = max(goal - measure.above, 0.1 * rtol * goal)
        left, right = grid.epsilon[:-1], grid.epsilon[1:]
        open_cells = (above > goal) & (right - left > _NARROW * right)
        if not np.any(open_cells):
            status = "wider than rtol: the values of the profile are not known to more digits"
            break
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = (above - measure.above) / room
            fall = -np.diff(grid.falling()[0])
        parts = np.where(
            np.isfinite(ratio), np.ceil(np.where(curved, _cuts(ratio, fall), ratio)), 4.0
        )
        wanted = len(grid.epsilon) + int(np.sum(np.minimum(parts, 1e12)[open_cells]))
        # (of many parts the number is a guess: a share of them, and then another look)
        parts = np.where(
            parts > _MOST_CUTS, np.ceil(np.minimum(parts / _MOST_CUTS, _FIRST_CUTS)), parts
        )
        parts = np.where(open_cells, np.clip(parts, 2, np.where(curved, _MOST_CUTS, 3)), 1).astype(
            int
        )
        more = np.concatenate(
            [
                l + (r - l) * np.arange(1, k) / k
                for l, r, k in zip(left, right, parts, strict=True)
                if k > 1
            ]
        )
        if len(grid.epsilon) + len(more) > budget:
            status = (
                f"wider than rtol: about {max(wanted, budget + 1)} evaluations would do, {budget}"
                " were allowed"
            )
            break
        before = len(grid.epsilon)
        grid.add(more)
        if len(grid.epsilon) == before:
            status = "wider than rtol: the values of the profile are not known to more digits"
            break
    else:
        status = f"wider than rtol: about {wanted} evaluations would do"
    if len(grid.epsilon) < 2 and upper > measure.low * (1.0 + rtol):
        status = f"wider than rtol: more than {budget} evaluations are needed"
    bracket, _ = Bracket.from_sides(measure.low, upper, (0.0, np.inf), 1e-14)
    top = float(bracket.upper)
    return Head(
        mu=Bracket(float(bracket.lower), top),
        epsilon_max=most,
        epsilon=measure.epsilon,
        fpr_floor=fpr_where_it_holds(top, most),
        evaluations=len(grid.epsilon),
        searches=measure.searches,
        status=status,
        profile=(grid.epsilon, np.minimum(np.exp(grid.high[0]) * (1.0 + 1e-15), 1.0)),
        convex=not bool(np.any(grid.concave())),
    )


def head_mu(source, epsilon_max, rtol=RTOL) -> Bracket:
    """The head μ on [0, ε_h] as a bracket: :func:`head` tells what it took, and why a bracket is
    wider than asked.

    Args:
        source: a mechanism, a composition, a trade-off curve, a profile of :func:`refine`, or a
            callable ε ↦ δ; scalar.
        epsilon_max: ε_h ≥ 0, nats.
        rtol: relative width asked, in [1e-8, 1).

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


__all__ = ["Head", "fpr_where_it_holds", "head", "head_mu"]
