"""What makes sums smooth whose steps lie on points that are far apart."""

import types

import jax
import numpy as np
import pytest
from by_day import every_value

import jaxgdp
from jaxgdp.accounting.certify import frequency_tables
from jaxgdp.accounting.certify.blur import blur, blurred
from jaxgdp.accounting.certify.lattice import Sparse
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import engine
from jaxgdp.accounting.run.executors import EAGER
from jaxgdp.accounting.steer.lattices import LatticeChoice, Lattices
from jaxgdp.adjacency import Adjacency
from jaxgdp.quantities.registry import REGISTRY


@pytest.mark.parametrize("tilt", [0.0, 0.3, 1.0, 1.7])
def test_masses_of_what_blurs_are_those_of_a_pair(tilt):
    table = frequency_tables.tables(2**26, 64, 512, 20, 3, 18)
    assert blurred(Sparse(table, 512))
    offset, h = np.asarray(table.offset), 3e-4
    between = np.diff(offset)
    gap = np.maximum(np.append(between, 1.0), np.append(1.0, between))
    plan = types.SimpleNamespace(tilt=np.float64(tilt), cut_high=np.float64(4e3))
    found = blur(plan, offset, gap, np.float64(h))
    log_moment = lambda law: float(law.log_total)
    variance = lambda law: float(law.weight @ (h * offset) ** 2 - (law.weight @ (h * offset)) ** 2)
    # (both laws of the losses add up to 1, and labels have the same law under both)
    if tilt in (0.0, 1.0):
        assert abs(log_moment(found.dominating)) <= 1e-14
        assert abs(log_moment((found.attack_p, found.attack_q)[int(tilt)])) <= 1e-14
    s = tilt * (tilt - 1.0)
    half = 0.5 * variance(found.dominating) * s
    assert abs(log_moment(found.dominating) - half) <= 1e-3 * abs(half) + 1e-14
    assert float(found.uses).is_integer()
    total = float(found.uses) * variance(found.dominating)
    assert 0.5 <= total / (3e-6 * 4e3) <= 1.5


@pytest.mark.parametrize(
    ("setting", "side"),
    every_value(((1.0, 0.01, 200_000, 25.0), (0.4, 2e-3, 400_000, 200.0)), (0, 1)),
)
def test_blurred_lattices_agree_with_the_usual_ones(setting, side, monkeypatch):
    sigma, p, steps, threshold = setting
    order = (Adjacency.REMOVE, Adjacency.ADD)[side]
    run = jaxgdp.dpsgd(sigma, p, steps)
    asked = ((REGISTRY["delta"], threshold),)
    usual = jaxgdp.measure(run, "delta", epsilon=threshold, adjacency=order.value, rtol=1e-4)
    one = LatticeChoice("sparse", 4096, 64, 2**24, 160, 3, 18, 1)
    monkeypatch.setattr(engine.Engine, "lattices_of", lambda self, *task: Lattices(one, one))
    done = lambda task, *rest: engine.Decision(task, engine.DONE, "once")
    monkeypatch.setattr(engine, "refine", done)
    groups = jax.tree.map(lambda a: np.asarray(a)[None], run.stacked())
    question = Question(1e-4, 1e-10, order, asked)
    places = {"delta": np.array([threshold])}
    found = engine.Engine(groups, question, lambda done: None, 2**20, EAGER, places=places).answer()
    low, high = (float(side[0]) for side in found.results["delta"])
    assert low <= usual.delta.upper and usual.delta.lower <= high
    assert 0.0 < low and high - low <= 1e-3 * high
