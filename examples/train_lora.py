"""Private fine-tuning of a small transformer by low-rank adapters, one clipped gradient a sequence.

    python examples/train_lora.py

The transformer is trained here on public sequences, then W + A·B replaces W for private ones."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxgdp
from jaxgdp.training import clipped_gradients, plan_budget, poisson_sampler

WORDS, LENGTH, WIDTH, RANK = 12, 16, 32, 4
ADAPTED = ("query", "value", "up", "down", "head")


def sequences(seed, number):  # of a Markov chain of its own
    rng = np.random.default_rng(seed)
    chain = np.cumsum(rng.dirichlet(np.full(WORDS, 0.3), WORDS), axis=1)
    words = rng.integers(WORDS, size=(number, LENGTH + 1))
    for i in range(LENGTH):
        words[:, i + 1] = (chain[words[:, i]] < rng.random((number, 1))).sum(1).clip(max=WORDS - 1)
    return words


def initial(key):
    sizes = {"embed": (WORDS, WIDTH), "place": (LENGTH, WIDTH), "head": (WIDTH, WORDS)}
    sizes |= dict.fromkeys(("query", "key", "value"), (WIDTH, WIDTH))
    sizes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    keys = jax.random.split(key, len(sizes))
    normal = lambda key, size: jax.random.normal(key, size) / np.sqrt(size[0])
    return {name: normal(key, size) for key, (name, size) in zip(keys, sizes.items(), strict=True)}


def loss(params, words):  # mean cross-entropy of the next word in one sequence
    x = params["embed"][words[:-1]] + params["place"]
    score = (x @ params["query"]) @ (x @ params["key"]).T / np.sqrt(WIDTH)
    seen = jnp.where(jnp.tril(jnp.ones_like(score)) > 0, score, -1e9)
    x = x + jax.nn.softmax(seen) @ (x @ params["value"])
    x = x + jax.nn.gelu(x @ params["up"]) @ params["down"]
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(x @ params["head"], words[1:]))


def main(epsilon=6.0, public_steps=150):
    mean = jax.jit(lambda params, words: jax.vmap(loss, (None, 0))(params, words).mean())
    public, private, test = sequences(0, 256), sequences(1, 1000), sequences(1, 1300)[1000:]
    base, adam = initial(jax.random.key(0)), optax.adam(1e-2)
    state, slope = adam.init(base), jax.jit(jax.grad(mean))
    for _ in range(public_steps):
        update, state = adam.update(slope(base, public), state)
        base = optax.apply_updates(base, update)

    sampler = poisson_sampler(len(private), 0.1, max_steps=120, multiple_of=32)
    plan = plan_budget(1.2, sampler=sampler, delta=1e-5)
    steps = plan.max_steps_within(epsilon=epsilon)
    optimiser = plan.privatize(0.5, jax.random.key(1), max_steps=steps, inner=optax.adam(2e-2))
    adapted = lambda low: base | {n: base[n] + low[n]["a"] @ low[n]["b"] for n in ADAPTED}
    normal = lambda rows: jax.random.normal(jax.random.key(2), (rows, RANK)) * 0.1
    both = lambda rows, columns: {"a": normal(rows), "b": jnp.zeros((RANK, columns))}
    low = {name: both(*base[name].shape) for name in ADAPTED}
    gradients = clipped_gradients(lambda low, words: loss(adapted(low), words), 0.5, 32)

    @jax.jit
    def step(low, state, words, mask):
        update, state = optimiser.update(gradients(low, words, mask=mask)[1], state, low)
        return optax.apply_updates(low, update), state

    state, before = optimiser.init(low), float(mean(base, test))
    while not state.spent:
        batch = sampler.sample(jax.random.key(3), state.step)
        low, state = step(low, state, sampler.take(batch, private), batch.mask)
    after, spent = float(mean(adapted(low), test)), plan.at(int(state.step))["epsilon"].upper
    print(f"loss {before:.3f} before, {after:.3f} after {int(state.step)} steps, ε = {spent:.3f}")
    return before, after, spent, jaxgdp.report(plan.composition(int(state.step)), delta=1e-5)


if __name__ == "__main__":
    main()
