"""Accounts of a run: counts inside compiled code, certified queries, and checkpoints that are exact
or refused.
"""

import itertools
import json
import os

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxgdp
from jaxgdp.training import ExampleGradients, accountant, checkpoint, privatize

TWO = [(2.0, 1.0), (3.0, 1.0)]


def example():
    account = accountant.step(accountant.init([(1.1, 0.01), (0.1 + 0.2, 1e-7)]), 0, count=12)
    return accountant.step(account, 1)


def same(one, other):
    return (
        one.settings == other.settings
        and np.array_equal(one.counts, other.counts)
        and np.array_equal(one.mark, other.mark)
        and np.asarray(other.counts).dtype == np.int32
    )


def test_counts_a_schedule_inside_a_compiled_scan():
    schedule = jnp.array([0, 0, 1, 2, 1, 0, 0])

    @jax.jit
    def run(account):
        return jax.lax.scan(
            lambda a, i: (accountant.step(a, i, count=jnp.where(i == 2, 3, 1)), None),
            account,
            schedule,
        )[0]

    account = run(accountant.init([*TWO, (5.0, 0.5)]))
    assert account.checked_counts().tolist() == [4, 2, 3] and account.num_steps == 9
    again = run(account)
    assert again.checked_counts().tolist() == [8, 4, 6] and account.num_steps == 9


def test_queries_are_those_of_the_composition():
    account = accountant.step(
        accountant.step(accountant.init(TWO), 0, count=2), (3.0, 1.0), count=9
    )
    mu = np.sqrt(2 / 4 + 9 / 9)
    found = account.spent(("mu", "epsilon", "advantage"), delta=1e-6)
    assert found["mu"].contains(mu) and found["advantage"].contains(jaxgdp.gdp.advantage(mu=mu))
    assert found["epsilon"].contains(jaxgdp.gdp.epsilon(delta=1e-6, mu=mu))
    for name, bracket in found.items():
        assert bracket.width < 3e-3 * bracket.upper, name


def test_spent_is_zero_before_the_first_step():
    found = accountant.init(TWO).spent(
        ("mu", "epsilon", "tpr", "beta", "bayes_risk"), fpr=0.01, prior=0.3
    )
    assert {name: float(bracket.upper) for name, bracket in found.items()} == {
        "mu": 0.0,
        "epsilon": 0.0,
        "tpr": 0.01,
        "beta": 0.99,
        "bayes_risk": 0.3,
    }
    with pytest.raises(ValueError, match="delta must be in"):
        accountant.init(TWO).epsilon(delta=2.0)


def test_epsilon_at_delta_0_and_1_is_the_largest_loss_and_nothing():
    account = accountant.init([(1.0, 0.1)])
    assert (account.epsilon(delta=0.0), account.epsilon(delta=1.0)) == ((0.0, 0.0),) * 2
    account = accountant.step(account, 0)
    assert account.epsilon(delta=0.0) == (np.inf, np.inf)
    assert account.epsilon(delta=1.0) == (0.0, 0.0)
    with pytest.raises(ValueError, match="rtol"):
        account.epsilon(delta=1.0, rtol=-1.0)


def test_merge_unites_settings_and_adds_counts():
    one = accountant.step(accountant.init([(1.0, 0.1), (2.0, 0.1)]), 0, count=5)
    other = accountant.step(
        accountant.step(accountant.init([(3.0, 0.2), (1.0, 0.1)]), 0, count=2), 1, count=7
    )
    merged = accountant.merge(one, other)
    assert dict(zip(merged.settings, merged.checked_counts().tolist(), strict=True)) == {
        (1.0, 0.1): 12,
        (2.0, 0.1): 0,
        (3.0, 0.2): 2,
    }
    assert one.num_steps == 5 and other.num_steps == 9
    assert accountant.merge(accountant.init(), one).num_steps == 5
    assert sorted(accountant.merge(other, one).checked_counts()) == sorted(merged.checked_counts())


def test_step_that_names_no_setting_is_not_lost():
    for index in (2, -1, 2**20):
        account = jax.jit(accountant.step)(accountant.init(TWO), index)
        for query in (lambda: account.num_steps, account.mu, lambda: checkpoint.to_json(account)):  # noqa: B023
            with pytest.raises(
                ValueError, match=r"setting must be in \[0, 1\] in every step, got 1 steps"
            ):
                query()


@pytest.mark.parametrize("count", [-1, -(2**31), np.uint32(2**31), np.uint32(2**32 - 3)])
def test_traced_count_that_is_none_is_not_lost_and_takes_nothing_back(count):
    account = accountant.step(accountant.init(TWO), 0, count=7)
    account = jax.jit(accountant.step)(account, 0, count)
    assert np.asarray(account.counts).tolist() == [7, 0, 1]
    with pytest.raises(ValueError, match="steps with another one or a wrong count"):
        account.mu()


def test_traced_counts_that_add_up_to_too_many_do_not_wrap_around():
    step = jax.jit(accountant.step)
    account = accountant.init(TWO)
    for _ in range(3):  # three of them are 2³¹ − 3 modulo 2³²
        account = step(account, 1, jnp.int32(2**31 - 1))
    assert np.asarray(account.counts).tolist() == [0, 2**31 - 1, 2]
    assert step(
        step(accountant.init(TWO), 1, True), 1, jnp.uint8(255)
    ).checked_counts().tolist() == [0, 256]
    with pytest.raises(ValueError, match="count must be a whole number .* float32"):
        step(accountant.init(TWO), 0, 0.5)


def test_counts_are_tied_to_their_settings():
    first, second = (
        accountant.step(accountant.init(TWO), 0),
        accountant.init([(9.0, 1.0), (8.0, 1.0)]),
    )
    # what a checkpoint of arrays does: leaves of one run in the structure of another
    mixed = jax.tree.unflatten(jax.tree.structure(second), jax.tree.leaves(first))
    with pytest.raises(ValueError, match="counts must belong to the account's own 2 settings"):
        mixed.mu()


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: accountant.init([1.0]), "setting must be a pair"),
        (lambda: accountant.init([(0.0, 0.1)]), "noise_multiplier"),
        (lambda: accountant.init([(1.0, 1.1)]), "sampling_prob"),
        (lambda: accountant.init([([1.0], 0.1)]), "noise_multiplier must be a single number"),
        (
            lambda: accountant.step(accountant.init(TWO), 2),
            "setting must be the index of one of 2 settings",
        ),
        (lambda: accountant.step(accountant.init(TWO), -1), "setting must be the index"),
        (lambda: accountant.step(accountant.init(TWO), 0.0), "setting must be the index"),
        (
            lambda: accountant.step(accountant.init(TWO), 0, count=-1),
            "count must be a whole number",
        ),
        (
            lambda: accountant.step(accountant.init(TWO), 0, count=1.5),
            "count must be a whole number",
        ),
        (
            lambda: accountant.step(accountant.step(accountant.init(TWO), 0, count=2**31 - 1), 0),
            "at most 2147483647",
        ),
        (
            lambda: jax.jit(lambda a: accountant.step(a, (7.0, 0.1)))(accountant.init(TWO)),
            "index inside jit",
        ),
        (lambda: jax.jit(lambda a: a.mu().upper)(accountant.init(TWO)), "on the host only"),
        (lambda: example().spent("mu", order=3), "argument must be one of"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_json_and_bytes_restore_exactly():
    account = example()
    for restored in (
        checkpoint.from_json(checkpoint.to_json(account)),
        checkpoint.from_json(checkpoint.to_json(account).encode()),
        checkpoint.from_array(checkpoint.to_array(account)),
        checkpoint.from_array(jnp.asarray(checkpoint.to_array(account))),
        checkpoint.from_json(checkpoint.to_json(accountant.step(accountant.init(), (1.1, 0.01))))
        and checkpoint.from_json(checkpoint.to_json(account)),
    ):
        assert same(account, restored)
    assert checkpoint.from_json(checkpoint.to_json(accountant.init())).num_steps == 0


def test_no_damage_goes_unnoticed():
    text = checkpoint.to_json(example())
    for position in range(len(text)):
        for new in (chr(ord(text[position]) ^ 1), ""):
            spoiled = text[:position] + new + text[position + 1 :]
            try:
                restored = checkpoint.from_json(spoiled)
            except ValueError:
                continue
            assert same(example(), restored), (position, new)  # only layout was touched
    for cut in range(0, len(text) - 1, 7):
        with pytest.raises(ValueError, match="not JSON or is cut off|checkpoint"):
            checkpoint.from_json(text[:cut])


def rewritten(**changes):
    content = json.loads(checkpoint.to_json(example())) | changes
    content["checksum"] = checkpoint._checksum(content["settings"], content["counts"])
    return json.dumps(content)


@pytest.mark.parametrize(
    "text, named",
    [
        (json.dumps({"history": [[1.0, 0.01, 10]], "mechanism": "rdp"}), "a state dict of Opacus"),
        (json.dumps({"format": "other.package", "version": 1}), "format 'other.package'"),
        (json.dumps([1, 2]), "a JSON list"),
        (json.dumps({"params": [1.0]}), "an object with the keys 'params'"),
        ("\x80\x04pickle", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (rewritten(version=2), "version 1, got 2"),
        (rewritten(extra=1), "exactly the keys"),
        (rewritten(counts=[1]), "one count for each setting"),
        (rewritten(counts=[1, -2]), r"counts of .* whole numbers in \[0, 2147483647\], got -2"),
        (rewritten(counts=[1, 2.0]), "got 2.0"),
        (rewritten(counts=[1, True]), "got True"),
        (rewritten(counts=[1, 2**31]), "got 2147483648"),
        (rewritten(settings=[[1.0, 0.1], [1.0, 0.1]]), "different settings"),
        (rewritten(settings=[[1.0, 0.1], [-1.0, 0.1]]), "noise_multiplier"),
        (rewritten(settings=[[1.0, 0.1], [1.0]]), "setting must be a pair"),
        (checkpoint.to_json(example()).replace("12", "11"), "damaged: its checksum"),
        (None, "must be JSON text, got NoneType"),
    ],
)
def test_foreign_and_corrupted_checkpoints_are_refused_by_name(text, named, tmp_path):
    with pytest.raises(ValueError, match=named):
        checkpoint.from_json(text)
    if isinstance(text, str):
        (tmp_path / "foreign.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="foreign.json"):
            checkpoint.load(tmp_path / "foreign.json")


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2), np.uint8), [1, 2], None])
def test_foreign_arrays_are_refused(array):
    with pytest.raises(ValueError, match="one-dimensional uint8 array, got"):
        checkpoint.from_array(array)


@pytest.mark.parametrize("when", ["fsync", "replace"])
def test_interrupted_save_leaves_the_last_one(tmp_path, monkeypatch, when):
    path = tmp_path / "account.json"
    checkpoint.save(example(), path)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, when, interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(accountant.step(example(), 0), path)
    assert same(example(), checkpoint.load(path)) and [p.name for p in tmp_path.iterdir()] == [
        "account.json"
    ]


class Crash(Exception):
    pass


def run(steps, store, crash_at=None, every=7):
    """A run that checkpoints every so many steps: parameters, optimiser and account together."""
    sampling, data = jax.random.key(5), jnp.linspace(-1.0, 1.0, 40).reshape(20, 2)
    optimiser = privatize(1.0, 2.0, 5.0, jax.random.key(6), inner=optax.adam(0.1))

    @jax.jit
    def step(params, state, account):
        mask = jax.random.bernoulli(jax.random.fold_in(sampling, state.step), 0.25, (20,))
        update, after = optimiser.update(ExampleGradients(params - data, mask), state, params)
        return optax.apply_updates(params, update), after, accountant.step(account, state.step % 2)

    params = jnp.zeros(2)
    state, account = optimiser.init(params), accountant.init(TWO)
    if store:
        leaves, text = store[-1]
        params, state = jax.tree.unflatten(jax.tree.structure((params, state)), leaves)
        account = checkpoint.from_json(text)
    while int(state.step) < steps:
        if crash_at == int(state.step):
            raise Crash
        params, state, account = step(params, state, account)
        if int(state.step) % every == 0:
            store.append((jax.tree.leaves((params, state)), checkpoint.to_json(account)))
    return params, account


def test_run_that_crashes_again_and_again_ends_like_one_that_does_not():
    whole_params, whole = run(30, [])
    assert whole.checked_counts().tolist() == [15, 15]
    store = []
    for crash_at in (3, 8, 17, 20, 29):
        with pytest.raises(Crash):
            run(30, store, crash_at)
        assert not store or checkpoint.from_json(store[-1][1]).num_steps == 7 * (crash_at // 7)
    params, account = run(30, store)
    assert np.array_equal(params, whole_params) and same(account, whole)


def test_orbax_restores_exactly(tmp_path):
    orbax = pytest.importorskip("orbax.checkpoint")
    account, params = example(), jnp.arange(3.0)
    with orbax.StandardCheckpointer() as checkpointer:
        checkpointer.save(
            tmp_path / "run", {"params": params, "account": checkpoint.to_array(account)}
        )
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(tmp_path / "run")
    assert same(account, checkpoint.from_array(restored["account"])) and np.array_equal(
        restored["params"], params
    )
    # or as a pytree like any other, into an account of the same settings
    with orbax.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "tree", {"account": account})
        checkpointer.wait_until_finished()
        blank = accountant.init(account.settings)
        restored = checkpointer.restore(tmp_path / "tree", {"account": blank})["account"]
        assert same(account, restored)
        other = accountant.init([(9.0, 0.5), (8.0, 0.5)])
        with pytest.raises(ValueError, match="counts must belong"):
            checkpointer.restore(tmp_path / "tree", {"account": other})["account"].checked_counts()


def test_order_of_steps_does_not_matter():
    for order in itertools.permutations([0, 1, 1]):
        account = accountant.init(TWO)
        for setting in order:
            account = accountant.step(account, setting)
        assert account.checked_counts().tolist() == [1, 2]
