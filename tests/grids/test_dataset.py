"""Labelled data: a variable without a suffix is the side to report, for every registered quantity,
in memory, in stores and in CSV files.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest

xarray = pytest.importorskip("xarray")

import jaxgdp  # noqa: E402
from jaxgdp.bracket import Bracket  # noqa: E402
from jaxgdp.grids import compare_samplers, dataset, landscape  # noqa: E402
from jaxgdp.quantities import registry  # noqa: E402
from jaxgdp.quantities.base import Quantity  # noqa: E402
from jaxgdp.report import rows_of  # noqa: E402

# an oracle of its own: the weaker of two mechanisms is the more private one, and what is reported
# must not make a release look more private than it is
STRONGER, WEAKER = jaxgdp.Gaussian(1.0), jaxgdp.Gaussian(2.0)


@pytest.fixture(scope="module")
def every_quantity():
    return jaxgdp.sweep([1.0, 2.0], 1.0, 1, quantities=tuple(registry.REGISTRY), rtol=1e-2)


def _less_private_side(name: str) -> str:
    """The side of a bracket that claims less privacy, by how the quantity moves with the noise."""
    strong, weak = (jaxgdp.measure(m, name).brackets[name] for m in (STRONGER, WEAKER))
    return "upper" if float(strong.lower) > float(weak.upper) else "lower"


@pytest.mark.parametrize("name", tuple(registry.REGISTRY))
def test_variable_without_a_suffix_claims_the_less_privacy(every_quantity, name):
    found = every_quantity
    assert np.all(found[f"{name}_lower"] <= found[f"{name}_upper"])
    side = _less_private_side(name)
    if name == "regret":  # of reporting μ: it need not fall with the noise
        side = "upper"
    assert np.array_equal(found[name], found[f"{name}_{side}"])
    assert found[name].attrs["side"] == f"{side}: safe to report"
    other = {"upper": "lower", "lower": "upper"}[side]
    assert found[f"{name}_{other}"].attrs["side"] == f"{other}: achieved by an attack"
    assert found[f"status_{name}"].dtype == np.int64


def test_sides_are_those_of_measure(every_quantity):
    found = jaxgdp.measure(jaxgdp.dpsgd([1.0, 2.0], 1.0, 1), tuple(registry.REGISTRY), rtol=1e-2)
    for name, bracket in found.brackets.items():
        for side in ("lower", "upper"):
            values = every_quantity[f"{name}_{side}"].values.ravel()
            assert np.array_equal(values, getattr(bracket, side)), (name, side)
        assert np.array_equal(every_quantity[f"status_{name}"].values.ravel(), found.status[name])


def test_quantity_of_others_that_is_safe_from_below_is_named_so_too(monkeypatch):
    monkeypatch.setattr(registry, "REGISTRY", dict(registry.REGISTRY))
    read = lambda curve, query, symmetric, **_: Bracket(0.25, 0.75)
    registry.register(
        Quantity("secrecy", "s", read, safe_side="lower", extent=(0.0, 1.0), absolute=1.0)
    )
    described = dataset.variables([registry.named("secrecy")], {})
    assert described["secrecy"].attributes["side"] == "lower: safe to report"
    assert described["secrecy_upper"].attributes["side"] == "upper: achieved by an attack"


def test_samplers_name_sides_like_sweeps(tmp_path):
    found = jaxgdp.compare_samplers(
        2.0, 100, 50, samplers=("deterministic", "poisson"), quantities=("beta", "mu"), rtol=1e-2
    )
    assert np.array_equal(found.beta, found.beta_lower) and np.array_equal(found.mu, found.mu_upper)
    assert float(found.beta_upper.max()) > float(found.beta.max())
    compare_samplers.write_csv(found, tmp_path / "samplers.csv")
    rows = list(csv.DictReader(rows_of(tmp_path / "samplers.csv")))
    assert [row["sampler"] for row in rows] == ["deterministic", "poisson"]
    for row, values in zip(rows, found.beta.values.ravel(), strict=True):
        assert row["beta"] == row["beta_lower"] == repr(float(values))
        assert row["mu"] == row["mu_upper"] and row["status_beta"] == "0"
        assert (row["batch_size"], row["num_epochs"], row["noise_multiplier"]) == ("50", "1", "2.0")


def test_csv_of_a_grid_has_the_side_to_report_and_both_sides(every_quantity, tmp_path):
    landscape.write_csv(every_quantity, tmp_path / "grid.csv")
    rows = list(csv.DictReader(rows_of(tmp_path / "grid.csv")))
    assert len(rows) == 2 and "lattice_size" not in rows[0]
    for name, quantity in registry.REGISTRY.items():
        for row in rows:
            assert row[name] == row[f"{name}_{quantity.safe_side}"]
            assert float(row[f"{name}_lower"]) <= float(row[f"{name}_upper"])


def test_data_of_the_old_layout_are_refused_and_never_misread(every_quantity, tmp_path):
    old = every_quantity.drop_vars(["beta_upper", "mu_upper"])
    with pytest.raises(ValueError, match="dataset must hold mu_upper, beta_upper: in data of jaxg"):
        dataset.quantities_of(old)
    with pytest.raises(ValueError, match="Compute it again"):
        landscape.write_csv(old, tmp_path / "old.csv")
    assert not (tmp_path / "old.csv").exists()


def test_store_of_the_old_layout_is_refused_with_what_to_do(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    pytest.importorskip("dask")
    grid = {"noise_multiplier": 1.0, "sampling_prob": 1.0, "num_steps": [1, 2], "rtol": 1e-2}
    path = tmp_path / "old.zarr"
    variables, values = dataset.variables, dataset.values

    def without(made):
        return lambda *given: {n: v for n, v in made(*given).items() if not n.endswith("_upper")}

    with monkeypatch.context() as patched:
        patched.setattr(dataset, "LAYOUT", 1)
        patched.setattr(dataset, "variables", without(variables))
        patched.setattr(dataset, "values", without(values))
        jaxgdp.sweep(**grid, store=path).close()
    with pytest.raises(ValueError, match="names of variables.*layout 1.*another store"):
        jaxgdp.sweep(**grid, store=path)
    with pytest.raises(ValueError, match="mu_upper.*Compute it again, into another store"):
        landscape.read_store(path)
