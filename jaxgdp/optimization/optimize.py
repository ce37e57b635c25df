"""``jaxgdp.optimize``: the schedule of best utility that provably meets a privacy target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .. import differentiable, options
from ..accounting.steer.lattices import LatticeChoice
from ..calibration import Calibration, calibrate
from ..deprecation import renamed_arguments
from ..mechanisms import Composition, SubsampledGaussian, compose
from ..numerics.precision import with_float64
from ..numerics.shapes import Array, ArrayLike, Float
from ..numerics.showing import html_table, short
from ..numerics.validation import broadcast, checked, positive, probability, whole
from ..progress import show_progress
from ..quantities.registry import named
from ..targets import Target

VARIABLES = ("noise_multiplier", "sampling_prob", "batch_size", "clip")
_RATES = ("sampling_prob", "batch_size")  # what moves a sampling rate
_MANY = 400  # iterations from which on compiling the derivatives pays
_STRIDE = 0.3  # largest correction of the common scale in one iteration, in logarithms
_NEAR = 0.01  # relative distance from the target at which an iterate counts


class Schedule(NamedTuple):
    """Stages of DP-SGD, one number for each (all of shape (stages,)).

    Attributes:
        noise_multiplier: σ_k, standard deviation of the noise over the clipping norm.
        sampling_prob: p_k.
        num_steps: T_k.
        clip: C_k, the clipping norm; privacy does not depend on it.
    """

    noise_multiplier: Float[Array, " stages"]
    sampling_prob: Float[Array, " stages"]
    num_steps: Float[Array, " stages"]
    clip: Float[Array, " stages"]

    def __repr__(self) -> str:
        return (
            "Schedule("
            + ", ".join(f"{name}={short(column)}" for name, column in self._asdict().items())
            + ")"
        )

    def _repr_html_(self) -> str:
        rows = [[k, *(short(x) for x in row)] for k, row in enumerate(zip(*self, strict=True))]
        return html_table(f"{len(rows)} stages", ("stage", *self._fields), rows)

    def mechanism(self) -> Composition:
        """All stages composed."""
        rows = zip(self.noise_multiplier, self.sampling_prob, self.num_steps, strict=True)
        return compose([(SubsampledGaussian(sigma, p), steps) for sigma, p, steps in rows])

    def scaled(self, scale: ArrayLike) -> Composition:
        """All stages composed, with the noise of each multiplied by ``scale`` (of any shape)."""
        return self._replace(
            noise_multiplier=[scale * sigma for sigma in self.noise_multiplier]
        ).mechanism()


Proxy: TypeAlias = Callable[[Schedule], Any]  # the number to make small


@dataclass(frozen=True)
class Optimized:
    """An optimised schedule.

    Attributes:
        schedule: the schedule, whose certified bracket meets the target.
        calibration: that certificate; its ``value`` is 1 to within what the common scale had to be
            moved by.
        proxy: the proxy there.
        start, start_proxy: the schedule one began with, calibrated to the same target, and its
            proxy.
        history: the proxy at each iteration, on the way (there the target is met only
            approximately).
    """

    schedule: Schedule
    calibration: Calibration
    proxy: float
    start: Schedule
    start_proxy: float
    history: np.ndarray

    def __repr__(self) -> str:
        steps = (
            f"proxy {short(self.proxy)} (start {short(self.start_proxy)}), {len(self.history)}"
            " iterations"
        )
        return f"Optimized({self.schedule!r},\n  {steps},\n  {self.calibration!r})"

    def _repr_html_(self) -> str:
        return self.schedule._repr_html_() + self.calibration._repr_html_()


def _columns(
    noise_multiplier: ArrayLike, sampling_prob: ArrayLike, num_steps: ArrayLike, clip: ArrayLike
) -> Schedule:
    columns = {
        "noise_multiplier": positive("noise_multiplier", noise_multiplier),
        "sampling_prob": probability("sampling_prob", sampling_prob),
        "num_steps": whole("num_steps", num_steps),
        "clip": positive("clip", clip),
    }
    shape = broadcast(**columns)
    if len(shape) != 1:
        raise ValueError(f"schedules must have one axis, that of the stages, got shape {shape}")
    return Schedule(
        *(np.broadcast_to(column, shape).astype(np.float64) for column in columns.values())
    )


def _variables(schedule: Schedule, over: tuple[str, ...]) -> dict[str, Array]:
    """Unconstrained coordinates of what is free: logarithms, of a rate its logit."""
    free = {}
    for name in over:
        value = getattr(schedule, "sampling_prob" if name in _RATES else name)
        free[name] = np.log(value) if name not in _RATES else np.log(value) - np.log1p(-value)
    return free


def _schedule(fixed: Schedule, free: dict[str, Array], log_scale: Array) -> Schedule:
    moved = {name: jax.nn.sigmoid(v) if name in _RATES else jnp.exp(v) for name, v in free.items()}
    if "batch_size" in moved:  # as many examples as before
        rate = moved.pop("batch_size")
        moved |= {"sampling_prob": rate, "num_steps": _examples(fixed) / rate}
    schedule = fixed._replace(**moved)
    return schedule._replace(noise_multiplier=schedule.noise_multiplier * jnp.exp(log_scale))


def _examples(schedule: Schedule) -> Array:
    """Examples of every stage that are drawn in expectation, per record of the data: its epochs."""
    return schedule.sampling_prob * schedule.num_steps


def _whole_steps(schedule: Schedule, examples: Array) -> Schedule:
    """The schedule with whole numbers of steps, and rates that draw as many examples in them."""
    steps = np.maximum(np.rint(schedule.num_steps), np.ceil(examples))
    return schedule._replace(num_steps=steps, sampling_prob=examples / steps)


def _privacy(target: Target, schedule: Schedule, adjacency: str, lattice: LatticeChoice) -> Array:
    """log of (target's own quantity over its goal), traced; 0 where the target is just met."""
    argument = named(target.quantity).argument
    bracket = differentiable.quantity(
        target.quantity,
        schedule.mechanism(),
        None if argument is None else target.parameters()[argument],
        adjacency=adjacency,
        lattice=lattice,
    )
    own = target.read(bracket)
    return jnp.log(own.upper if target.safe == "upper" else own.lower) - jnp.log(target.goal)


@renamed_arguments(tolerance="rtol")
def optimize(
    proxy: Proxy,
    target: Target,
    *,
    noise_multiplier: ArrayLike = 1.0,
    sampling_prob: ArrayLike = 1.0,
    num_steps: ArrayLike = 1,
    clip: ArrayLike = 1.0,
    over: str | Iterable[str] = ("noise_multiplier",),
    iterations: int = 200,
    optimizer: optax.GradientTransformation | None = None,
    rtol: float = options.RTOL,
    adjacency: str = options.ADJACENCY,
    progress: bool | Callable[[int], Any] | None = None,
) -> Optimized:
    """A schedule of DP-SGD that minimises ``proxy`` subject to a privacy target.

    The common scale s of all noise is eliminated by the constraint: with g(s, x) the target's
    quantity, ds/dx = −∂_x g/∂_s g by the implicit function theorem, and a Newton step in s after
    every step of the optimiser keeps g at its goal. At the end the scale is calibrated anew, so
    that what is returned provably meets the target.

    Args:
        proxy: differentiable function from a :class:`Schedule` (JAX arrays) to a number, smaller is
            better.
        target: one of ``jaxgdp.targets`` with scalar fields, whose quantity has a derivative and
            grows or falls steadily with the noise (not ``Regret``).
        noise_multiplier: σ_k > 0, where to start (only ratios matter), shape (stages,).
        sampling_prob: p_k in (0, 1], broadcast against σ.
        num_steps: whole numbers ≥ 1, likewise.
        clip: C_k > 0, likewise.
        over: what may change, of "noise_multiplier", "sampling_prob" (below 1), "batch_size" and
            "clip". With "batch_size" the rate of a stage and its number of steps move together:
            p_k·T_k, the examples that it draws for every record of the data, stays what it is at
            the start, so n·p_k is the batch size. On the way numbers of steps are real; those of
            the result are whole, with rates that draw the same number of examples.
        iterations: of the optimiser.
        optimizer: an optax optimiser; default Adam with a falling learning rate from 0.05.
        rtol: relative step of the common scale, see :func:`jaxgdp.calibrate`.
        adjacency: as there.
        progress: called with the number of iterations finished, as they finish; True displays them
            on stderr even if it is not a terminal.

    Returns:
        :class:`Optimized`.

    Raises:
        ValueError: an argument is out of range (before tracing), or no noise meets the target.
        NotImplementedError: the target's quantity does not define how its derivative acts on the
            curve; names it.
        jaxgdp.differentiable.UnprovenDerivative: a derivative on the way is not right to a percent.

    Example:
        >>> import jaxgdp
        >>> found = jaxgdp.optimize(
        ...     lambda schedule: (schedule.noise_multiplier**2) @ jnp.array([4.0, 1.0]),
        ...     jaxgdp.targets.Mu(1.0), noise_multiplier=[20.0, 20.0], num_steps=100, iterations=15,
        ... )
        >>> bool(found.proxy < found.start_proxy), bool(found.calibration.achieved.upper <= 1.0)
        (True, True)
    """
    if not isinstance(target, Target) or not named(target.quantity).monotone:
        raise ValueError(f"target must be one of jaxgdp.targets other than Regret, got {target!r}")
    differentiable.refuse_unknown_tangency(target.quantity)
    if target.shape != ():
        raise ValueError(f"target must be a single one, got shape {target.shape}")
    over = (over,) if isinstance(over, str) else tuple(over)
    if not over or any(name not in VARIABLES for name in over):
        raise ValueError(f"over must hold some of {', '.join(map(repr, VARIABLES))}, got {over!r}")
    if set(_RATES) <= set(over):
        raise ValueError(
            "over must hold 'sampling_prob' or 'batch_size', got both: a batch size moves the rate"
        )
    iterations = int(whole("iterations", iterations))
    start = _columns(noise_multiplier, sampling_prob, num_steps, clip)
    if set(_RATES) & set(over):
        checked(
            "sampling_prob", start.sampling_prob, "in (0, 1) where it may change", lambda p: p < 1.0
        )
    function = progress if callable(progress) else None
    shown = None if function else progress
    with show_progress("optimising", iterations, shown, "iterations") as count:
        return _optimised(
            proxy, target, start, over, iterations, optimizer, rtol, adjacency, function, count
        )


def _optimised(
    proxy: Proxy,
    target: Target,
    start: Schedule,
    over: tuple[str, ...],
    iterations: int,
    optimizer: optax.GradientTransformation | None,
    rtol: float,
    adjacency: str,
    progress: Callable[[int], Any] | None,
    count: Callable[[int], None],
) -> Optimized:
    begun = calibrate(target, mechanism=start.scaled, rtol=rtol, adjacency=adjacency)
    start = start._replace(noise_multiplier=float(begun.value) * start.noise_multiplier)
    best, history = _descend(
        proxy, target, start, over, iterations, optimizer, adjacency, progress, count
    )
    if "batch_size" in over:
        best = _whole_steps(best, _examples(start))
    found = calibrate(target, mechanism=best.scaled, rtol=rtol, adjacency=adjacency)
    best = best._replace(noise_multiplier=float(found.value) * best.noise_multiplier)
    value, first = (float(_evaluated(proxy, schedule)) for schedule in (best, start))
    return Optimized(best, found, value, start, first, history)


@with_float64
def _evaluated(proxy: Proxy, schedule: Schedule) -> Array:
    return proxy(jax.tree.map(jnp.asarray, schedule))


@with_float64
def _descend(
    proxy: Proxy,
    target: Target,
    start: Schedule,
    over: tuple[str, ...],
    iterations: int,
    optimizer: optax.GradientTransformation | None,
    adjacency: str,
    progress: Callable[[int], Any] | None,
    count: Callable[[int], None],
) -> tuple[Schedule, np.ndarray]:
    """The best schedule on the way, and the proxy at every iteration."""
    if optimizer is None:
        optimizer = optax.adam(optax.cosine_decay_schedule(0.05, iterations, 0.02))
    floor = float(np.asarray(target.parameters().get("fpr_floor", 1e-10)))
    lattice = differentiable.lattice(start.mechanism(), fpr_floor=floor, adjacency=adjacency)
    fixed, free = (
        jax.tree.map(jnp.asarray, start),
        jax.tree.map(jnp.asarray, _variables(start, over)),
    )

    def privacy(free: dict[str, Array], log_scale: Array) -> Array:
        return _privacy(target, _schedule(fixed, free, log_scale), adjacency, lattice)

    @jax.jit
    def advance(
        free: dict[str, Array],
        state: optax.OptState,
        log_scale: Array,
        off: Array,
        by_free: dict[str, Array],
        by_scale: Array,
    ) -> tuple[Any, optax.OptState, Array, Any]:
        usefulness = lambda free, log_scale: proxy(_schedule(fixed, free, log_scale))
        value, (gain, gain_scale) = jax.value_and_grad(usefulness, argnums=(0, 1))(free, log_scale)
        slope = jax.tree.map(
            lambda direct, moved: direct - gain_scale * moved / by_scale, gain, by_free
        )
        updates, state = optimizer.update(slope, state, free)
        moved = optax.apply_updates(free, updates)
        # back to the goal: along the change of the other variables, and what was off before
        drift = sum(
            jnp.sum(a * b)
            for a, b in zip(jax.tree.leaves(by_free), jax.tree.leaves(updates), strict=True)
        )
        step = jnp.clip(-(off + drift) / by_scale, -_STRIDE, _STRIDE)
        return moved, state, log_scale + step, value

    # (of few iterations: what is known is worked out by NumPy, which needs no compiler)
    slopes = jax.value_and_grad(privacy, argnums=(0, 1))
    slopes = jax.jit(slopes) if iterations > _MANY else slopes
    state, log_scale = optimizer.init(free), jnp.zeros(())
    history, best, least = [], start, np.inf
    for done in range(iterations):
        before = _schedule(fixed, free, log_scale)
        off, (by_free, by_scale) = slopes(free, log_scale)
        if not np.all([np.all(np.isfinite(by)) for by in jax.tree.leaves((by_free, by_scale))]):
            raise differentiable.UnprovenDerivative(
                f"target must have derivatives on the way, got none of {target.quantity!r} at"
                f" iteration {done}: there are too few steps, or the risk is too near 1, for the"
                f" compiled program; {_MANY} iterations or fewer are run without it"
            )
        free, state, log_scale, value = advance(free, state, log_scale, off, by_free, by_scale)
        history.append(float(value))
        if not np.isfinite(history[-1]):
            raise ValueError(
                f"proxy must return finite numbers, got {history[-1]} at iteration {done}"
            )
        if history[-1] < least and abs(float(off)) < _NEAR:
            best, least = jax.tree.map(np.asarray, before), history[-1]
        count(1)
        if progress:
            progress(done + 1)
    return best, np.asarray(history)


__all__ = ["VARIABLES", "Optimized", "Schedule", "optimize"]
