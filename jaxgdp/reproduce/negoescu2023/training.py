"""Networks trained with and without DP-SGD, several seeds at once, and their losses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.special import logsumexp

from ...audit import epsilon_star
from ...calibration import calibrate
from ...targets import EpsilonDelta
from ...training import (
    PoissonSampler,
    clipped_sum,
    noisy_mean,
    per_example_gradients,
    poisson_sampler,
)
from .data import Data

MOMENTUM, CLIP = 0.9, 1.0
Weights: TypeAlias = list[tuple[jax.Array, jax.Array]]  # matrix and bias of each layer


class Plan(NamedTuple):
    """How the models of a figure are trained.

    Attributes:
        hidden: widths of the hidden layers.
        batch: expected batch size.
        rate: learning rate without DP.
        private_rate: with DP, of gradients over the clipping norm.
        epochs: of the models without DP.
        epsilons: of those with DP.
        private_epochs: theirs.
        seeds: runs of each.
    """

    hidden: tuple[int, ...]
    batch: int
    rate: float
    private_rate: float
    epochs: tuple[int, ...]
    epsilons: tuple[float, ...]
    private_epochs: int
    seeds: int


class Strategy(NamedTuple):
    """Models that were trained alike, over seeds.

    Attributes:
        name: such as "10 epochs" or "ε = 3".
        epsilon: of DP-SGD, or None.
        epochs: passes over the data.
        member, nonmember: losses, shapes (seeds, n₁) and (seeds, n₀).
        utility: shape (seeds,).
        star: parametric Epsilon*, shape (seeds,).
    """

    name: str
    epsilon: float | None
    epochs: int
    member: np.ndarray
    nonmember: np.ndarray
    utility: np.ndarray
    star: np.ndarray


def delta_of(records: int) -> float:
    """δ = 1/(n log n), as in the paper."""
    return 1.0 / (records * np.log(records))


def _over_seeds(run: Callable[..., Any]) -> Callable[..., Any]:
    """``run`` for an array of keys, its first argument; the other positional ones are shared."""

    @functools.wraps(run)
    def all_runs(keys: jax.Array, *shared: Any, **static: Any) -> Any:
        return jax.vmap(functools.partial(run, **static), (0, *(None for _ in shared)))(
            keys, *shared
        )

    return all_runs


def _initial(key: jax.Array, sizes: tuple[int, ...]) -> Weights:
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b)) for k, a, b in pairs]


def _logits(weights: Weights, x: jax.Array) -> jax.Array:
    for matrix, bias in weights[:-1]:
        x = jax.nn.relu(x @ matrix + bias)
    matrix, bias = weights[-1]
    return x @ matrix + bias


def _loss(weights: Weights, x: jax.Array, label: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(_logits(weights, x), label)


def margin_loss(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """−(log p − log(1 − p)) of the true class: the loss of the paper's attacker (footnote 1).

    Args:
        logits: shape (n, classes).
        labels: shape (n,).

    Returns:
        Losses, shape (n,).

    Example:
        >>> logits = np.log(np.array([[0.2, 0.7, 0.1]]))
        >>> margin_loss(logits, np.array([1])).round(6).tolist()  # −log(0.7/0.3)
        [-0.847298]
    """
    own = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    others = np.where(np.arange(logits.shape[1]) == labels[:, None], -np.inf, logits)
    return logsumexp(others, axis=1) - own


def _descended(
    key: jax.Array,
    sizes: tuple[int, ...],
    rate: float,
    steps: int,
    gradient: Callable[[Weights, jax.Array], Weights],
) -> Weights:
    """Weights after steps with momentum along ``gradient`` of (weights, key of the step)."""
    optimiser = optax.sgd(rate, momentum=MOMENTUM)
    start, draw = jax.random.split(key)
    weights = _initial(start, sizes)

    def step(number: jax.Array, carry: Any) -> Any:
        weights, state = carry
        found = gradient(weights, jax.random.fold_in(draw, number))
        updates, state = optimiser.update(found, state, weights)
        return optax.apply_updates(weights, updates), state

    return jax.lax.fori_loop(0, steps, step, (weights, optimiser.init(weights)))[0]


@functools.partial(jax.jit, static_argnames=("sizes", "batch"))
@_over_seeds
def _plain(
    key: jax.Array,
    inputs: jax.Array,
    labels: jax.Array,
    rate: float,
    steps: int,
    *,
    sizes: tuple[int, ...],
    batch: int,
) -> Weights:
    """One model by stochastic gradient descent with momentum, batches drawn with replacement."""
    mean = lambda w, x, y: jnp.mean(jax.vmap(_loss, (None, 0, 0))(w, x, y))

    def gradient(weights: Weights, draw: jax.Array) -> Weights:
        rows = jax.random.randint(draw, (batch,), 0, inputs.shape[0])
        return jax.grad(mean)(weights, inputs[rows], labels[rows])

    return _descended(key, sizes, rate, steps, gradient)


@functools.partial(jax.jit, static_argnames=("sizes", "sampler"))
@_over_seeds
def _private(
    key: jax.Array,
    inputs: jax.Array,
    labels: jax.Array,
    rate: float,
    steps: int,
    sigma: jax.Array,
    *,
    sizes: tuple[int, ...],
    sampler: PoissonSampler,
) -> Weights:
    """One model by DP-SGD: Poisson batches, gradients clipped one by one, noise."""
    gradients = per_example_gradients(_loss)

    def gradient(weights: Weights, draw: jax.Array) -> Weights:
        choose, perturb = jax.random.split(draw)
        batch = sampler.sample(choose, 0)
        _, found = gradients(weights, inputs[batch.indices], labels[batch.indices])
        total = clipped_sum(found, CLIP, batch.mask)
        return noisy_mean(total, perturb, CLIP, sigma, sampler.expected_batch_size)

    return _descended(key, sizes, rate, steps, gradient)


def _scored(weights: Weights, inputs: np.ndarray) -> np.ndarray:
    """Scores of the classes, on the host."""
    x = np.asarray(inputs, float)
    layers = [(np.asarray(matrix, float), np.asarray(bias, float)) for matrix, bias in weights]
    for matrix, bias in layers[:-1]:
        x = np.maximum(x @ matrix + bias, 0.0)
    matrix, bias = layers[-1]
    return x @ matrix + bias


def _utility(data: Data, logits: np.ndarray) -> float:
    """Accuracy on other records, or for two classes the area under the ROC curve."""
    if data.classes > 2:
        return float(np.mean(np.argmax(logits, axis=1) == data.other_labels))
    score = logits[:, 1] - logits[:, 0]
    ordered = np.sort(score)
    ranks = np.searchsorted(ordered, score, "left") + np.searchsorted(ordered, score, "right") + 1
    positive = data.other_labels == 1
    ones, zeros = positive.sum(), (~positive).sum()
    return float((np.sum(ranks[positive]) / 2.0 - ones * (ones + 1) / 2.0) / (ones * zeros))


def _strategy(
    data: Data, name: str, epsilon: float | None, epochs: int, models: Weights
) -> Strategy:
    """The losses of models, a tree of weights with an axis of models in front."""
    member, nonmember, utility = [], [], []
    for number in range(len(jax.tree.leaves(models)[0])):
        weights = jax.tree.map(lambda leaf: leaf[number], models)  # noqa: B023
        member.append(margin_loss(_scored(weights, data.inputs), data.labels))
        logits = _scored(weights, data.other_inputs)
        nonmember.append(margin_loss(logits, data.other_labels))
        utility.append(_utility(data, logits))
    delta = delta_of(len(data.labels))
    star = [
        float(epsilon_star(a, b, delta, "parametric"))
        for a, b in zip(member, nonmember, strict=True)
    ]
    losses = np.stack(member), np.stack(nonmember)
    return Strategy(name, epsilon, epochs, *losses, np.array(utility), np.array(star))


def train(data: Data, plan: Plan) -> list[Strategy]:
    """Every model of a figure.

    Args:
        data: to train on.
        plan: of the training.

    Returns:
        Strategies: those without DP by epochs, then those with DP by ε.
    """
    records = len(data.labels)
    sizes = (data.inputs.shape[1], *plan.hidden, data.classes)
    per_epoch = max(1, round(records / plan.batch))
    keys = jax.vmap(jax.random.key)(np.arange(plan.seeds))
    found = []
    for epochs in plan.epochs:
        run = functools.partial(_plain, sizes=sizes, batch=plan.batch)
        models = run(keys, data.inputs, data.labels, plan.rate, epochs * per_epoch)
        found.append(
            _strategy(data, f"{epochs} epoch{'s' if epochs > 1 else ''}", None, epochs, models)
        )
    steps = plan.private_epochs * per_epoch
    probability = plan.batch / records
    target = EpsilonDelta(np.array(plan.epsilons), delta_of(records))
    sigmas = np.atleast_1d(
        calibrate(target, sampling_prob=probability, num_steps=steps, rtol=1e-2).value
    )
    sampler = poisson_sampler(records, probability, steps)
    run = functools.partial(_private, sizes=sizes, sampler=sampler)
    for epsilon, sigma in zip(plan.epsilons, sigmas, strict=True):
        models = run(keys, data.inputs, data.labels, plan.private_rate, steps, np.float32(sigma))
        found.append(_strategy(data, f"ε = {epsilon:g}", epsilon, plan.private_epochs, models))
    return found
