"""Who computes does not matter: every mechanism and every quantity by NumPy and by compiled JAX.

What compiled programs cost is their number, so the settings of one question are one batch and tests
share programs: a smooth law and a composition of two classes of atoms, with a largest loss and mass
at infinity, are asked for all quantities; nightly each class of atoms is by itself, and one
composition of all kinds is asked for one quantity. What a class adds of its own, its cells and its
quadrature, is compared class by class."""

import functools

import jax
import numpy as np
import pytest
from by_day import first, some
from mechanisms_of_every_class import SETTINGS, composition, element, one_of_each

import jaxgdp
from jaxgdp import mechanisms
from jaxgdp.accounting.run import compiled, executors, plans
from jaxgdp.bracket import Status
from jaxgdp.numerics.precision import with_float64
from jaxgdp.quantities import registry

EPSILON = 2.0**-53
SAME, OF_WIDTH = 1e-9, 0.05  # how far apart two brackets may be: relative, or a part of their width


def asked(executor, monkeypatch, mechanism, quantities, **at):
    """What ``measure`` answers through one executor; proof that the other one was not used."""
    other = executors.BY_NAME["compiled" if executor == "eager" else "eager"]

    def refuse(*_):
        raise AssertionError(f"{other.name} was used where {executor} was asked for")

    with monkeypatch.context() as patch:
        patch.setenv("JAXGDP_EXECUTOR", executor)
        for stage in ("parts", "plan_whole", "plan_threshold", "half", "read"):
            patch.setattr(type(other), stage, refuse)
        return jaxgdp.measure(mechanism, quantities, nested=False, **at)


def compare(monkeypatch, mechanism, quantities, **at):
    one, two = (
        asked(name, monkeypatch, mechanism, quantities, **at) for name in ("eager", "compiled")
    )
    for name in quantities:
        a, b = one.brackets[name], two.brackets[name]
        assert np.all(a.lower <= b.upper) and np.all(b.lower <= a.upper), name
        finite = np.isfinite(a.upper)
        width = np.where(finite, a.upper, 0.0) - np.where(finite, a.lower, 0.0)
        for mine, other in zip(a, b, strict=True):
            assert np.array_equal(np.isfinite(mine), np.isfinite(other)), name
            apart = np.abs(np.where(finite, mine, 0.0) - np.where(finite, other, 0.0))
            assert np.all(apart <= SAME * np.abs(np.where(finite, mine, 0.0)) + OF_WIDTH * width), (
                name,
                a,
                b,
            )
        assert np.array_equal(one.status[name], two.status[name]), name
        assert np.all(one.status[name] != Status.CONTRADICTION), name


def test_every_class_has_a_setting():
    public = {name for name in mechanisms.__all__ if name[0].isupper()} - {
        "Composition",
        "Mechanism",
    }
    assert public == set(SETTINGS)


AT = dict(rtol=1e-2, fpr_floor=1e-6, delta=1e-4, approximation=1e-4)


def smooth():
    """Two settings on lattices of one shape, which one program of each side composes."""
    return jaxgdp.compose([(jaxgdp.SubsampledGaussian([1.1, 2.0], [0.02, 0.1]), [400, 500])])


@pytest.mark.slow
@pytest.mark.parametrize("start", first(1, range(3)))
def test_every_quantity_of_a_smooth_law(monkeypatch, start):
    compare(monkeypatch, smooth(), tuple(registry.REGISTRY)[start::3], **AT)


@pytest.mark.slow
def test_no_retrace_within_a_sweep_and_no_change_of_configuration():
    programs = (
        compiled._parts,
        compiled._plan_whole,
        compiled._plan_threshold,
        compiled._half,
        compiled._read,
    )

    def sweep(least, most, rarest, uses):
        noise, rate = np.linspace(least, most, 70), np.linspace(rarest, 0.1, 70)
        mechanism = jaxgdp.compose(
            [(mechanisms.SubsampledGaussian(noise, rate), np.full(70, uses))]
        )
        jaxgdp.measure(mechanism, tuple(registry.REGISTRY), nested=False, executor="compiled", **AT)

    before = jax.config.jax_enable_x64
    sweep(1.1, 2.0, 0.02, 400)
    sizes = [program.jitted._cache_size() for program in programs]
    assert min(sizes[:2] + sizes[3:]) > 0
    sweep(1.15, 2.05, 0.021, 380)
    assert [program.jitted._cache_size() for program in programs] == sizes
    assert jax.config.jax_enable_x64 == before


class Recording(executors.Compiled):
    """Keeps what its stages were called with, and what came of it."""

    def __init__(self):
        self.halves, self.reads = [], []

    def half(self, *arguments):
        self.halves.append(arguments)
        return super().half(*arguments)

    def read(self, *arguments):
        found = super().read(*arguments)
        self.reads.append((arguments, found))
        return found


@pytest.mark.slow
def test_compiled_equals_eager(monkeypatch):
    """One pass over a setting, stage by stage: what ``jit`` makes of it and what NumPy does."""
    recorded = Recording()
    monkeypatch.setitem(executors.BY_NAME, "compiled", recorded)
    whole = jaxgdp.compose([(element("SubsampledGaussian", 0), 400)])
    jaxgdp.measure(whole, tuple(registry.REGISTRY), nested=False, executor="compiled", **AT)
    (parts, _, _, rates, kind, pieces), (by_jax, *_) = recorded.reads[0]
    row = functools.partial(jax.tree.map, lambda a: np.asarray(a)[:1])
    sides = [
        executors.EAGER.half(row(groups), row(plan), reverse, tables, shape)
        for groups, plan, reverse, tables, shape in recorded.halves[:2]
    ]
    assert pieces == 1 and [arguments[2] for arguments in recorded.halves[:2]] == [False, True]
    eager, *_ = executors.EAGER.read(row(parts), *sides, row(rates), kind, pieces)
    assert set(by_jax) == set(registry.REGISTRY)
    for name, bracket in by_jax.items():
        assert np.allclose(row(bracket), eager[name], rtol=1e-7, atol=1e-12), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("ApproximateDP", "RandomizedResponse"),
        pytest.param(("ApproximateDP",), marks=pytest.mark.nightly),
        pytest.param(("RandomizedResponse",), marks=pytest.mark.nightly),
    ],
    ids="+".join,
)
def test_every_quantity_of_atoms(names, monkeypatch):
    both = jaxgdp.compose(
        [(mechanism, np.array(uses)) for mechanism, uses in map(SETTINGS.get, names)]
    )
    compare(monkeypatch, both, tuple(registry.REGISTRY), **AT)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_symmetric_pairs_have_one_order(adjacency, monkeypatch):
    compare(monkeypatch, smooth(), ("epsilon",), rtol=1e-2, adjacency=adjacency)


@pytest.mark.slow
@pytest.mark.nightly
def test_classes_in_one_composition(monkeypatch):
    """A smooth law, atoms and mass at infinity: what a class adds of its own is compared below."""
    parts = (
        jaxgdp.SubsampledGaussian(1.1, 0.02),
        jaxgdp.DiscreteGaussian(4.0),
        jaxgdp.ApproximateDP(0.3, 1e-9),
    )
    mixed = jaxgdp.compose([(part, np.array([2.0, 3.0])) for part in parts])
    compare(monkeypatch, mixed, ("epsilon",), rtol=0.3, delta=0.1, adjacency="remove")


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_every_class_in_one_composition(both):
    """Asked for what is finite and for what is not; alike whichever part comes first."""
    forwards = one_of_each(both)
    parts = zip(forwards.mechanisms, forwards.counts, strict=True)
    backwards = jaxgdp.compose(list(parts)[::-1])
    one, two = (
        jaxgdp.measure(m, "epsilon", delta=0.5, rtol=0.1).brackets["epsilon"]
        for m in (forwards, backwards)
    )
    assert (
        np.all(one.lower > 0.0)
        and np.all(one.width <= 0.1 * one.upper)
        and np.all(two.width <= 0.1 * two.upper)
    )
    assert np.all(one.lower <= two.upper) and np.all(two.lower <= one.upper)
    assert np.all(
        np.isinf(jaxgdp.measure(forwards, "epsilon", delta=1e-3).brackets["epsilon"].lower)
    )


def first(name):
    """The first setting of a class as compositions stack it."""
    (mechanism, _), *_ = composition(name).stacked()
    return jax.tree.map(lambda a: np.asarray(a)[0, 0], mechanism)


@pytest.mark.parametrize("name", some(3, sorted(SETTINGS)))
def test_cells_and_nodes_of_a_class(name):
    """Within the rounding that both state for themselves."""
    mechanism, ell = first(name), 0.037 * np.arange(-40.0, 41.0)
    stages = lambda m, ell: (m.cells(ell, np.inf), m.loss_nodes(30.0))
    by_jax = with_float64(jax.jit(stages))(mechanism, ell)
    with np.errstate(all="ignore"):
        cells, nodes = stages(mechanism, ell)
    other, others = by_jax
    for mine, theirs in zip((cells.log_x, cells.log_y), (other.log_x, other.log_y), strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        some = mine > -700.0
        room = 2.0 * EPSILON * (cells.roundoff + cells.jitter)[some] + 1e-15
        assert np.all(np.abs(theirs[some] - mine[some]) <= room)
        assert np.all(theirs[~some] <= -699.0)
    for mine, theirs in zip(nodes, others, strict=True):
        assert np.allclose(np.maximum(mine, -1e3), np.maximum(theirs, -1e3), rtol=1e-9, atol=1e-9)


def test_measure_names_the_executor_of_each_setting(monkeypatch):
    """Of a single setting one name; "none" where a law from tables needs no lattice."""
    monkeypatch.delenv("JAXGDP_EXECUTOR", raising=False)
    few = jaxgdp.measure(jaxgdp.dpsgd(2.0, 0.1, [300, 500]), "mu", rtol=1e-2, fpr_floor=1e-6)
    assert few.executor.tolist() == ["eager", "eager"]
    one = jaxgdp.measure(jaxgdp.dpsgd(2.0, 0.1, 300), "mu", rtol=1e-2, fpr_floor=1e-6)
    assert one.executor == "eager" and isinstance(one.executor, str)
    # one use of a pair known from tables, beside two of it, with and without levels of accuracy
    pair = mechanisms.RandomAllocation(2.0, 10)
    uses = jaxgdp.compose([(pair, np.array([1.0, 2.0]))])
    for nested in (False, True):
        found = jaxgdp.measure(uses, "advantage", rtol=1e-2, nested=nested, executor="eager")
        assert found.executor.tolist() == ["none", "eager"], nested
        assert found.lattice_size[0] == 0 < found.lattice_size[1]
    # in a list of runs each has its own
    runs = [jaxgdp.dpsgd(2.0, 0.1, 300), pair]
    listed = jaxgdp.measure(runs, "advantage", rtol=1e-2, executor="eager")
    assert listed.executor.tolist() == ["eager", "none"]


class _Planned(Exception):
    """Several tilts were about to be planned."""


def test_several_tilts_of_few_settings_are_planned_in_small_chunks(monkeypatch):
    planned = []

    def count(groups, *others):
        planned.append((len(groups[0][1]), others[-1]))
        if others[-1] > 1:
            raise _Planned
        return executors.EAGER.plan_whole(groups, *others)

    monkeypatch.setattr(executors.COMPILED, "plan_whole", count)
    with pytest.raises(_Planned):  # (it is a setting that takes several)
        jaxgdp.measure(jaxgdp.dpsgd(0.5, 0.9, 2000), "mu", executor="compiled", nested=False)
    rows, pieces = np.array(planned).T
    assert np.all(rows * pieces <= plans.TOGETHER * executors.COMPILED.chunks)
