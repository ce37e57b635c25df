"""Lines between few numbers of steps: on the safe side of stairs at every step, in float32."""

from functools import partial

import jax
import numpy as np
import pytest
from by_day import every_value

from jaxgdp.bracket import Bracket
from jaxgdp.training.float32 import above, below
from jaxgdp.training.knots import thinned
from jaxgdp.training.table import looked_up

LAST = 3000
SHAPES = {
    "root": lambda t: np.sqrt(t) / 50,
    "line": lambda t: 1e-3 * t,
    "square": lambda t: 1e-9 * t**2,
    "saturates": lambda t: -np.expm1(-t / 100),
    "tiny": lambda t: 1e-37 * t**3,
    "grows from nearly nothing": lambda t: np.exp(np.minimum(0.2 * t - 85, 3.0)),
    "infinite at the end": lambda t: np.where(t > 2500, np.inf, t / 7),
    "level": lambda t: np.full(len(t), 0.25),
    "jumps": lambda t: np.floor(t / 400) + 0.1,
}


def _stairs(name, entries, width, of):
    """A bracket over entries, whose true value is a function of the steps."""
    value = SHAPES[of](entries.astype(float))
    with np.errstate(invalid="ignore"):
        low, high = value * (1 - width), value * (1 + width)
    if name == "mu":
        return Bracket(below(low), above(high))
    falls = [np.exp(-np.minimum(side, 200.0)) for side in (high, low)]
    return Bracket(below(falls[0]), above(falls[1]))


def _entries(rng, growth):
    steps = [0, 1]
    while steps[-1] < LAST:
        steps.append(max(steps[-1] + 1, int(steps[-1] * rng.uniform(1, 1 + 2 * growth))))
    return np.unique(np.minimum(steps, LAST))


@pytest.mark.parametrize(("name", "of"), every_value(("mu", "beta"), list(SHAPES)))
def test_lines_hold_at_every_step_where_stairs_do(name, of):
    rng = np.random.default_rng(len(of))
    fine = ((0.004, 4e-4),) if of in ("root", "jumps") else ()
    for growth, width in (*fine, (0.03, 0.0), (0.5, 1e-7)):
        entries = _entries(rng, growth)
        stop = int(entries[rng.integers(2, len(entries) - 1)])
        table = {name: _stairs(name, entries, width, of)}
        found = thinned(entries, table, (stop,))
        if found is None:
            continue
        knots, lines = found
        assert len(knots) < len(entries)
        steps = np.arange(LAST + 1)
        stairs = looked_up(entries, table, steps, LAST, np)[name]
        by_numpy = looked_up(knots, lines, steps, LAST, np, lines=True)[name]
        compiled = partial(looked_up, max_steps=LAST, xp=jax.numpy, lines=True)
        looks = [by_numpy]
        if growth == 0.03:
            looks.append(jax.jit(compiled)(knots, lines, steps)[name])
        for drawn in looks:
            lower, upper = (np.asarray(side) for side in drawn)
            assert lower.dtype == upper.dtype == np.float32
            assert np.all(lower <= stairs.lower) and np.all(upper >= stairs.upper)
            # what was within a limit at the stop is within it before
            if name == "mu":
                assert upper[stop] == stairs.upper[stop] and np.all(upper[:stop] <= upper[stop])
            else:
                assert lower[stop] == stairs.lower[stop] and np.all(lower[:stop] >= lower[stop])


def _close_entries(grows):
    """Entries between which no function grows by more than 0.35 per cent, as a plan has them."""
    entries, steps = [0], np.arange(LAST + 1)
    values = np.array([SHAPES[of](np.maximum(steps, 1e-3)) for of in grows])
    high = np.concatenate([np.log(values), values])
    while entries[-1] < LAST:
        within = np.all(high - high[:, [entries[-1] + 1]] <= 0.0035, axis=0)
        entries.append(max(entries[-1] + 1, int(np.flatnonzero(within)[-1])))
    return np.array(entries)


@pytest.mark.parametrize("of, most", [("root", 60), ("line", 60), ("saturates", 40)])
def test_lines_are_as_close_as_stairs_with_far_fewer_numbers(of, most):
    entries = _close_entries([of])
    value = SHAPES[of](entries.astype(float))
    table = {"mu": Bracket(below(value * (1 - 4e-4)), above(value * (1 + 4e-4)))}
    table["beta"] = Bracket(below(0.9 * (1 - value / 40)), above(1 - value / 40))
    knots, lines = thinned(entries, table)
    steps = np.arange(1, LAST + 1)
    drawn = looked_up(knots, lines, steps, LAST, np, lines=True)
    true = SHAPES[of](steps.astype(float))
    assert len(knots) < most < len(entries) / 3
    assert np.all(drawn["mu"].upper <= 1.005 * true) and np.all(drawn["mu"].lower >= 0.99 * true)
    assert np.all(drawn["beta"].lower >= 0.9 * (1 - true / 40) / 1.005)


def test_lines_that_would_not_be_fewer_are_not_drawn():
    entries = np.array([0, 1, 10, 100])
    assert thinned(entries, {"mu": _stairs("mu", entries, 0.0, "root")}) is None


def test_lines_of_several_quantities_share_their_knots():
    entries = _close_entries(["root"])
    table = {
        "mu": _stairs("mu", entries, 0.0, "jumps"),
        "beta": _stairs("beta", entries, 0.0, "root"),
    }
    knots, lines = thinned(entries, table)
    steps = np.arange(LAST + 1)
    stairs = looked_up(entries, table, steps, LAST, np)
    drawn = looked_up(knots, lines, steps, LAST, np, lines=True)
    assert np.all(drawn["mu"].upper >= stairs["mu"].upper)
    assert np.all(drawn["beta"].lower <= stairs["beta"].lower)
    # at a jump the line does too
    assert np.all(drawn["mu"].upper <= 1.005 * stairs["mu"].upper)
