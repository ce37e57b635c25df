"""Noise of jax_privacy, account of jaxgdp: banded matrix factorisation on scikit-learn's digits.

    python examples/train_bandmf.py

Eight fixed groups of records take turns; strategy and correlated noise are jax_privacy's (``pip
install jax-privacy scikit-learn``), and the certified μ of the steps so far is printed live."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy import noise_addition
from jax_privacy.matrix_factorization import toeplitz

import jaxgdp
from jaxgdp.participation import CyclicPoisson
from jaxgdp.training import plan_budget

STEPS, BANDS, RATE, NOISE, CLIP, EVERY = 200, 8, 0.25, 3.0, 1.0, 40


def loss(params, image, label):
    """Cross entropy of a linear model."""
    logits = image @ params["w"] + params["b"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, label)


@jax.jit
def clipped_sum(params, images, labels, present):
    """The sum of gradients, each of norm 1 at most; ``present`` is 0 for padding."""
    grads = jax.vmap(jax.grad(loss), (None, 0, 0))(params, images, labels)
    norms = jax.vmap(optax.tree.norm)(grads)
    scale = present * jnp.minimum(1.0, CLIP / jnp.maximum(norms, 1e-12))
    return jax.tree.map(lambda g: jnp.tensordot(scale, g, 1), grads)


def main(steps=STEPS, seed=0):
    """Train, and return the plan and the accuracy on 360 test images."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = np.float32(images[order] / 16.0), labels[order]
    test = slice(360)
    groups = np.array_split(np.arange(360, len(images)), BANDS)  # fixed, whatever the data are
    most = max(map(len, groups))
    coefficients = toeplitz.optimize_banded_toeplitz(steps, BANDS)
    noise = noise_addition.matrix_factorization_privatizer(
        toeplitz.inverse_as_streaming_matrix(coefficients),
        stddev=NOISE * CLIP,
        prng_key=jax.random.key(seed),
    )
    mechanism = jaxgdp.MatrixMechanism(
        np.asarray(coefficients, float), NOISE, CyclicPoisson(RATE, BANDS), num_steps=steps
    )
    plan = plan_budget(mechanism=mechanism, quantities="mu", every=EVERY)

    params = {"w": jnp.zeros((64, 10)), "b": jnp.zeros(10)}
    optimizer = optax.sgd(2.0, momentum=0.9)
    state, noise_state = optimizer.init(params), noise.init(params)
    rng = np.random.default_rng()  # of the batches; from the operating system, not from a seed
    for step in range(steps):
        own = groups[step % BANDS]
        drawn = own[rng.random(len(own)) < RATE]
        rows = np.resize(drawn if len(drawn) else own, most)  # one shape, compiled once
        present = np.float32(np.arange(most) < len(drawn))
        total = clipped_sum(params, images[rows], labels[rows], present)
        noisy, noise_state = noise.update(total, noise_state)
        mean = jax.tree.map(lambda g: g / (RATE * most), noisy)
        updates, state = optimizer.update(mean, state)
        params = optax.apply_updates(params, updates)
        if (step + 1) % EVERY == 0 or step + 1 == steps:
            guess = jnp.argmax(images[test] @ params["w"] + params["b"], axis=1)
            accuracy = float(jnp.mean(guess == labels[test]))
            print(f"step {step + 1}: mu <= {plan.at(step + 1)['mu'].upper:.4f}, {accuracy:.1%}")
    return plan, accuracy


if __name__ == "__main__":
    main()
