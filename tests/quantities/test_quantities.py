"""The registry of quantities: what a new file brings with it, and what each record promises."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import jaxgdp
from jaxgdp import options
from jaxgdp.cli.app import main
from jaxgdp.quantities import __path__ as folders
from jaxgdp.quantities import registry, table
from jaxgdp.quantities.base import Quantity

TOY = '''
"""Ten thousand times δ(ε)."""

from jaxgdp.bracket import Bracket
from jaxgdp.numerics.validation import nonnegative
from jaxgdp.quantities.base import Quantity
from jaxgdp.quantities.delta import read as delta


def read(curve, query, *, symmetric):
    found = delta(curve, query, symmetric=symmetric)
    return Bracket(1e4 * found.lower, 1e4 * found.upper)


QUANTITY = Quantity(
    name="basis_points",
    symbol="bp",
    read=read,
    long_name="delta in basis points",
    description="The privacy profile in basis points.",
    argument="slope",
    default=0.5,
    check=nonnegative,
    unit="bp",
    extent=(0.0, 1e4),
)
'''
MECHANISM = '''
"""A bit that is flipped with a given probability."""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxgdp.mechanisms.base import Mechanism
from jaxgdp.numerics import namespace as xp
from jaxgdp.numerics.normal import ndtri_exp
from jaxgdp.numerics.pytree import pytree
from jaxgdp.numerics.validation import checked
from jaxgdp.pairs.atoms import atom_cells


@pytree
@dataclass(frozen=True)
class FlippedBit(Mechanism):
    flip: Any

    examples: ClassVar[dict] = {"FlippedBit(0.3)": lambda: FlippedBit(0.3)}

    def __post_init__(self):
        flip = checked("flip", self.flip, "in (0, 0.5)", lambda q: (q > 0.0) & (q < 0.5))
        object.__setattr__(self, "flip", flip)

    def loss_nodes(self, depth):
        rates = xp.stack([xp.log1p(-self.flip), xp.log(self.flip)])
        return rates[::-1] - rates, rates

    def tail_precision(self):
        return 4.0 * ndtri_exp(xp.log(self.flip)) ** 2

    def cells(self, ell, end):
        loss, log_p = self.loss_nodes(None)
        return atom_cells(loss, log_p, log_p[::-1], ell, end)
'''
ROOT = Path(jaxgdp.__file__).parents[1]


@pytest.fixture
def toy(tmp_path):
    """One new file, found where files of quantities are looked for."""
    (tmp_path / "basis_points.py").write_text(TOY, encoding="utf-8")
    folders.append(str(tmp_path))
    registry.discover()
    yield registry.named("basis_points")
    folders.remove(str(tmp_path))
    registry.unregister("basis_points")
    del sys.modules["jaxgdp.quantities.basis_points"]


def exact(slope, mu=0.5):
    return 1e4 * jaxgdp.gdp.delta(epsilon=slope, mu=mu)


def test_new_file_is_a_quantity_of_everything_that_asks(toy, capsys):
    mechanism = jaxgdp.Gaussian(2.0)
    found = jaxgdp.measure(mechanism, ("mu", "basis_points"), slope=[0.25, 1.0])
    assert found.at["basis_points"].tolist() == [0.25, 1.0] and found.status[
        "basis_points"
    ].tolist() == [0, 0]
    assert np.all(found.brackets["basis_points"].contains(exact(np.array([0.25, 1.0]))))

    curve = jaxgdp.tradeoff(mechanism)
    for bracket in (
        curve.quantity("basis_points", 0.25),
        curve.basis_points(0.25),
        curve.answer("basis_points", 0.25)[0],
    ):
        assert bracket.contains(exact(0.25)) and bracket.upper < 1.01 * exact(0.25)
    assert curve.basis_points().contains(exact(0.5))

    report = jaxgdp.report(mechanism)
    ((name, slope, bracket),) = report.others
    assert (name, slope) == ("basis_points", 0.5) and bracket.contains(exact(0.5))
    assert jaxgdp.Report.from_dict(report.to_dict()) == report
    assert (
        "basis_points at slope = 0.5" in str(report)
        and "basis_points at slope = 0.5" in report.to_markdown()
    )
    assert main(["report", "--noise-multiplier", "2", "--num-steps", "1"]) == 0
    assert "basis_points at slope = 0.5" in capsys.readouterr().out
    assert main(["quantities"]) == 0
    assert "basis_points" in capsys.readouterr().out

    target = jaxgdp.targets.OfQuantity("basis_points", exact(0.25), at=0.25)
    assert target.parameters()["slope"] == 0.25 and target.safe == "upper"
    # (no closed form of its own: Gaussian mechanisms are measured)
    assert target.equivalent_mu(target.goal) == pytest.approx(0.5, rel=0.2)
    assert target.meets(jaxgdp.Bracket(0.0, exact(0.25))) and not target.meets(
        jaxgdp.Bracket(0.0, exact(0.25, 0.51))
    )

    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = (ROOT / "docs" / "reference" / "quantities.md").read_text(encoding="utf-8")
    assert "| `basis_points` | bp | slope = 0.5 | bp | upper |" in hooks.on_page_markdown(page)


def test_new_quantity_is_in_sweeps(toy):
    pytest.importorskip("xarray")
    grid = jaxgdp.sweep(2.0, 1.0, [1, 4], quantities=("basis_points",), slope=0.25)
    assert (
        grid.basis_points.attrs["at"] == 0.25
        and grid.basis_points.attrs["long_name"] == "delta in basis points"
    )
    for t, mu in ((0, 0.5), (1, 1.0)):
        assert grid.basis_points_lower[0, 0, t] <= exact(0.25, mu) <= grid.basis_points[0, 0, t]
    assert grid.status_basis_points.values.tolist() == grid.status.values.tolist() == [[[0, 0]]]


def test_quantity_that_was_added_is_gone_again():
    assert "basis_points" not in registry.REGISTRY and "basis_points" not in table.markdown()
    with pytest.raises(ValueError, match="basis_points"):
        jaxgdp.measure(jaxgdp.Gaussian(2.0), "basis_points")
    with pytest.raises(TypeError, match="slope"):
        jaxgdp.measure(jaxgdp.Gaussian(2.0), "mu", slope=0.25)
    with pytest.raises(AttributeError, match="basis_points"):
        jaxgdp.tradeoff(jaxgdp.Gaussian(2.0)).basis_points  # noqa: B018


def test_names_are_registered_once():
    with pytest.raises(ValueError, match="already"):
        registry.register(Quantity("mu", "m", read=lambda curve, query, *, symmetric: None))
    with pytest.raises(ValueError, match="Quantity"):
        registry.register("mu")


def test_every_file_of_the_folder_is_in_the_registry():
    files = {path.stem for path in (ROOT / "jaxgdp" / "quantities").glob("*.py")}
    holding = {
        name
        for name in files
        if "\nQUANTITY = " in (ROOT / "jaxgdp" / "quantities" / f"{name}.py").read_text("utf-8")
    }
    assert holding == set(registry.REGISTRY) and len(holding) == 9


@pytest.mark.parametrize("record", registry.REGISTRY.values(), ids=lambda record: record.name)
def test_every_record_is_complete(record):
    assert record.long_name and record.description.endswith(".") and record.symbol
    assert record.safe_side in ("upper", "lower") and record.grows == (record.safe_side == "upper")
    assert record.extent[0] == 0.0 and record.name in table.markdown()
    if record.argument is not None:
        assert np.all(record.checked(record.default) == record.default)
        with pytest.raises(ValueError, match=record.argument):
            record.checked(-1.0)
        assert np.isfinite(record.query(record.default))


@pytest.mark.parametrize("record", registry.REGISTRY.values(), ids=lambda record: record.name)
def test_closed_forms_of_the_record_are_those_of_the_gaussian_mechanism(record):
    """What a record says of Gaussian curves, and of nothing released, against what is read off
    curves.
    """
    if record.of_gaussian is None:
        pytest.skip("no closed form")
    found = jaxgdp.measure(jaxgdp.Gaussian([2.0, 0.8]), record.name).brackets[record.name]
    value = record.of_gaussian(np.array([0.5, 1.25]), record.default)
    assert np.all(found.lower <= value * (1 + 1e-12)) and np.all(value * (1 - 1e-12) <= found.upper)
    nothing = record.of_gaussian(np.array([1e-9]), record.default)
    assert nothing == pytest.approx(record.idle(record.default), abs=1e-8)


def test_defaults_are_those_of_the_records():
    import inspect

    for function in (jaxgdp.measure, jaxgdp.sweep):
        defaults = {name: p.default for name, p in inspect.signature(function).parameters.items()}
        for record in registry.REGISTRY.values():
            # (None: that of the registry)
            assert defaults.get(record.argument) in (None, options.FPR_FLOOR), record.name
    for record in registry.REGISTRY.values():
        parameters = inspect.signature(getattr(jaxgdp, record.name)).parameters
        if record.argument is not None:
            assert parameters[record.argument].default == record.default, record.name
    for function in (jaxgdp.measure, jaxgdp.sweep, jaxgdp.epsilon):
        defaults = {name: p.default for name, p in inspect.signature(function).parameters.items()}
        assert (defaults["rtol"], defaults["adjacency"]) == (options.RTOL, options.ADJACENCY)


def test_adding_a_mechanism_touches_one_file_and_one_export(tmp_path, monkeypatch, request):
    """A class in a file of its own, exported by the package, is a mechanism of everything that
    takes or names mechanisms.
    """
    (tmp_path / "flipped_bit.py").write_text(MECHANISM, encoding="utf-8")
    name = "jaxgdp.mechanisms.flipped_bit"
    spec = importlib.util.spec_from_file_location(name, tmp_path / "flipped_bit.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    # (without examples a class is none of those that users build: other tests shall not meet it)
    request.addfinalizer(lambda: delattr(module.FlippedBit, "examples"))
    monkeypatch.setattr(jaxgdp.mechanisms, "FlippedBit", module.FlippedBit, raising=False)
    monkeypatch.setattr(jaxgdp.mechanisms, "__all__", [*jaxgdp.mechanisms.__all__, "FlippedBit"])

    described = jaxgdp.spec.from_dict(
        {"mechanism": [{"type": "FlippedBit", "flip": 0.3, "count": 2}]}
    )
    # two bits: the likeliest guess is right where at most one of them lies
    found = jaxgdp.measure(
        described.mechanism, ("advantage", "delta", "bayes_risk"), epsilon=1.0
    ).brackets
    lie, true = 0.3, 0.7
    assert found["advantage"].contains(true**2 - lie**2)
    assert found["delta"].contains(true**2 - np.e * lie**2) and found["delta"].width < 1e-3
    assert found["bayes_risk"].contains((1 - true**2 + lie**2) / 2)
    assert jaxgdp.tradeoff(module.FlippedBit(0.3)).beta(0.0).contains(1.0)
    report = jaxgdp.report(described)
    assert (
        "FlippedBit(flip=0.3) x 2" in str(report)
        and jaxgdp.Report.from_dict(report.to_dict()) == report
    )


@pytest.mark.parametrize(
    "name, value, at, other",
    [
        ("advantage", 0.1, None, jaxgdp.targets.Advantage(0.1)),
        ("beta", 0.7, 0.1, jaxgdp.targets.FNR(0.7, 0.1)),
        ("bayes_risk", 0.25, 0.3, jaxgdp.targets.BayesRisk(0.25, 0.3)),
        ("mu", 0.5, 1e-8, jaxgdp.targets.Mu(0.5, 1e-8)),
        ("epsilon", 2.0, 1e-6, jaxgdp.targets.EpsilonDelta(2.0, 1e-6)),
    ],
)
def test_target_by_name_is_the_target_of_that_name(name, value, at, other):
    """The Gaussian mechanism is calibrated in closed form: to the same noise, whichever way the
    target is said.
    """
    target = jaxgdp.targets.OfQuantity(name, value, at)
    assert target.safe == other.safe and target.goal == other.goal
    mine, theirs = (jaxgdp.calibrate(each, num_steps=5) for each in (target, other))
    assert mine.value == pytest.approx(theirs.value, rel=1e-8) and target.meets(mine.achieved)


def test_profiles_are_targets():
    """δ(ε), for which there is no class: the noise at which the closed form has it."""
    found = jaxgdp.calibrate(jaxgdp.targets.OfQuantity("delta", 1e-4, at=[0.5, 1.0]))
    assert np.all(jaxgdp.gdp.delta(epsilon=np.array([0.5, 1.0]), mu=1.0 / found.value) <= 1e-4)
    assert np.all(jaxgdp.gdp.delta(epsilon=np.array([0.5, 1.0]), mu=1.001 / found.value) > 1e-4)


@pytest.mark.parametrize(
    "bad, named",
    [
        (("privacy", 1.0), "quantity"),
        (("regret", 0.1), "targets.Regret"),
        (("delta", 1e-4, -1.0), "epsilon"),
        (("delta", -1e-4, 1.0), "value"),
        (("advantage", 0.1, 0.5), "takes no argument"),
        (("tpr", 0.01, 0.1), "above 0.1"),
        (("beta", 0.95, 0.1), "below 0.9"),
        (("bayes_risk", 0.5, 0.5), "below 0.5"),
    ],
)
def test_targets_by_name_that_make_no_sense(bad, named):
    with pytest.raises(ValueError, match=named):
        jaxgdp.targets.OfQuantity(*bad)
