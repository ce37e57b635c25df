"""Specification files: what they describe, the way back, and one clear message for everything
wrong.
"""

import dataclasses
import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxgdp
from jaxgdp import spec

GOOD = """\
title = "Five releases"
adjacency = "add_remove"
fpr_floor = 1e-8
rtol = 0.01
delta = [1e-5, "1/1000000"]

# the first
[[mechanism]]
type = "Gaussian"
noise_multiplier = 8.28
count = 10

[[mechanism]]
type = "SubsampledGaussian"
noise_multiplier = 9.4
sampling_prob = "16384/50000"
count = 2000

[[mechanism]]
type = "Laplace"
scale = 2.0
"""


def same(a, b):
    assert len(a.mechanisms) == len(b.mechanisms)
    for one, two in zip(a.mechanisms, b.mechanisms, strict=True):
        assert type(one) is type(two)
        assert jax.tree.structure(one) == jax.tree.structure(two)
        for mine, other in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
            np.testing.assert_array_equal(mine, other)
    for one, two in zip(a.counts, b.counts, strict=True):
        np.testing.assert_array_equal(one, two)
    assert a.shape == b.shape


def test_toml_file(tmp_path):
    path = tmp_path / "five.toml"
    path.write_text(GOOD)
    found = spec.read_spec(path)
    assert found.title == "Five releases"
    assert found.settings == {
        "adjacency": "add_remove",
        "fpr_floor": 1e-8,
        "rtol": 0.01,
        "delta": [1e-5, 1e-6],
    }
    by_hand = [
        (jaxgdp.Gaussian(8.28), 10),
        (jaxgdp.SubsampledGaussian(9.4, 16384 / 50_000), 2000),
        (jaxgdp.Laplace(2.0), 1),
    ]
    same(found.mechanism, jaxgdp.compose(by_hand))


@pytest.mark.parametrize(
    "mechanism",
    [
        jaxgdp.FixedSize(5.0, 2, 20).replace_one(),
        pytest.param(jaxgdp.TruncatedPoisson(5.0, 0.08, 6, 25).zeroed(), marks=pytest.mark.nightly),
    ],
    ids=lambda m: type(m).__name__,
)
def test_report_of_another_relation_is_made_again_from_its_spec(tmp_path, mechanism):
    path = tmp_path / "spec.json"
    run = jaxgdp.compose([(mechanism, 3)])
    path.write_text(str(jaxgdp.report(run)).splitlines()[-1])
    same(spec.read_spec(path).mechanism, run)


def test_json_file_and_deployments(tmp_path):
    path = tmp_path / "both.JSON"
    entries = [
        {"deployment": "de_et_al_2022_table5_epsilon_2", "count": 2},
        {"type": "Gaussian", "noise_multiplier": [1, 2.5]},
    ]
    path.write_text(json.dumps({"mechanism": entries}))
    found = spec.read_spec(path)
    by_hand = [
        (jaxgdp.deployments.de_et_al_2022(table=5, epsilon=2.0), 2),
        jaxgdp.Gaussian([1.0, 2.5]),
    ]
    same(found.mechanism, jaxgdp.compose(by_hand))
    assert int(found.mechanism.counts[0]) == 1000 and found.settings == {} and found.title == ""

    whole = spec.from_deployment("de_et_al_2022_table4_epsilon_8")
    same(whole.mechanism, jaxgdp.deployments.de_et_al_2022(epsilon=8.0))
    assert whole.title and whole.content == {"deployment": "de_et_al_2022_table4_epsilon_8"}


def examples():
    """One of every mechanism a file may name that has only numeric fields, at odd values."""
    values = {
        "epsilon": 1 / 3,
        "delta": 1e-7,
        "num_categories": 5,
        "sensitivity": 2,
        "sampling_prob": 0.1,
        "p": [0.25, 0.75],
        "q": [0.6, 0.4],
    }
    values |= {
        "outputs": [-1.0, 0.5, 2.0],
        "log_p": [-2.0, -1.5, float("-inf")],
        "log_q": [-2.5, -1.7, -1.9],
    }
    values |= {"num_epochs": 3, "num_batches": 4, "reshuffle": False, "complete": False}
    values |= {"num_steps": 7, "num_selected": 2, "batch_size": 3, "dataset_size": 11}
    values |= {"epsilons": [0.0, 1.0], "deltas": [0.2, 0.05]}
    values |= {"shifts": [0.0, 1.0, 2.5], "weights": [0.5, 0.25, 0.25]}
    run = jaxgdp.compose([(jaxgdp.Gaussian(2.0), 3), jaxgdp.Laplace([1.0, 2.0])])
    values |= {"size_known": False, "max_cells": 3, "strict": True, "max_keys": 2}
    values |= {"mechanism": run, "runs": jaxgdp.runs.NegativeBinomial(10.0, 0.5)}
    values |= {"strategy": [1.0, 0.5], "num_users": 50, "randomizer": "binary"}
    values |= {"noise": "gaussian", "num_candidates": 6, "num_queries": 9, "cutoff": 2}
    values |= {"monotone": True, "resampled": False}
    values |= {"participation": "MinSeparation(separation=3, max_participations=2)"}
    for name, cls in spec.known_mechanisms().items():
        fields = {f.name: values.get(f.name, np.pi) for f in dataclasses.fields(cls)}
        if name == "RandomAllocation":  # (it has one of two)
            del fields["mechanism"]
        yield name, fields


@pytest.mark.parametrize(
    ("name", "fields"), list(examples()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_every_mechanism_goes_there_and_back(name, fields, tmp_path):
    mechanism = spec.known_mechanisms()[name](**fields)
    composition = jaxgdp.compose([(mechanism, 7), jaxgdp.Gaussian(1 / 7)])
    data = spec.to_dict(composition, title='quo"ted', rtol=1e-4, delta=(1e-5,))
    for path, text in (
        (tmp_path / "a.toml", spec.to_toml(data)),
        (tmp_path / "a.json", json.dumps(data, allow_nan=False)),
    ):
        path.write_text(text)
        found = spec.read_spec(path)
        same(found.mechanism, composition)
        assert found.title == 'quo"ted' and found.settings == {"rtol": 1e-4, "delta": [1e-5]}
        assert spec.to_dict(found.mechanism, title=found.title, **found.settings) == data


def test_batches_and_infinities_go_there_and_back():
    batch = jaxgdp.compose([(jaxgdp.Gaussian([[1.0], [2.0]]), [3, 4, 5])])
    data = spec.to_dict(batch)
    assert data["mechanism"][0]["count"] == [3, 4, 5]
    same(spec.from_dict(json.loads(json.dumps(data))).mechanism, batch)
    assert spec._number(spec._plain([float("inf"), -float("inf"), 0.1])) == [
        float("inf"),
        -float("inf"),
        0.1,
    ]


def test_whole_deployments_go_there_and_back():
    for name in ("census_2020_pl94_persons", "census_2020_dhc_housing"):
        mechanism = jaxgdp.deployments.mechanism(name)
        same(spec.from_dict(spec.to_dict(mechanism)).mechanism, mechanism)


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


BAD_TOML = [
    (changed('title = "Five releases"', 'title = "Five'), "bad.toml: .*at line 1, column"),
    (
        changed('[[mechanism]]\ntype = "Laplace"', '[[mechanism]\ntype = "Laplace"'),
        "bad.toml: .*at line 19",
    ),
    (changed("scale = 2.0", "scale = 2.0\nscale = 3.0"), "bad.toml: .*line 22"),
    ("", "bad.toml: must have mechanisms"),
    ('mechanism = "Gaussian"', "bad.toml, line 1: mechanism must be a list of at least one table"),
    ("mechanism = []", "mechanism must be a list of at least one table"),
    ("mechanism = [3]", "bad.toml: mechanism 1 must be a table with a type and its fields, got 3"),
    (
        changed("rtol = 0.01", "rtoll = 0.01"),
        "bad.toml, line 4: unknown key 'rtoll'; did you mean 'rtol'",
    ),
    (changed("rtol = 0.01", "rtol = 2"), r"bad.toml, line 4: rtol must be in \[1e-8, 1\), got 2"),
    (changed("rtol = 0.01", "rtol = [0.1, 0.2]"), "line 4: rtol must be one number"),
    (changed("rtol = 0.01", "rtol = true"), "line 4: rtol must be"),
    (
        changed("fpr_floor = 1e-8", "fpr_floor = nan"),
        "bad.toml, line 3: fpr_floor must be .*, got nan",
    ),
    (changed("fpr_floor = 1e-8", 'fpr_floor = "1/0"'), "bad.toml, line 3: fpr_floor must be"),
    (changed("[1e-5,", "[0.0,"), r"bad.toml, line 5: delta must be in \(0, 1\), got 0"),
    (changed('"add_remove"', "3"), "bad.toml, line 2: adjacency must be text, got 3"),
    (changed("rtol = 0.01", "neighbours = 1"), "bad.toml, line 4: neighbours must be text, got 1"),
    (changed('"Five releases"', "5"), "bad.toml, line 1: title must be text, got 5"),
    (
        changed('"Laplace"', '"Laplce"'),
        "bad.toml, line 20: mechanism 3: unknown mechanism 'Laplce'; did you mean 'Laplace'",
    ),
    (changed('"Laplace"', '"Cauchy"'), "known are .*Gaussian, .*Laplace, .*SubsampledGaussian"),
    (changed('"Laplace"', "7"), "line 20: mechanism 3: unknown mechanism 7; known are"),
    (changed('"Laplace"', '"Composition"'), "unknown mechanism 'Composition'"),
    (
        changed('type = "Laplace"\n', ""),
        "line 19: mechanism 3 must have either a type or a deployment",
    ),
    (
        changed("scale = 2.0", "width = 2.0"),
        r"bad.toml, line 21: mechanism 3 \(Laplace\): unknown field 'width'; its fields are scale",
    ),
    (
        changed("scale = 2.0", ""),
        r"bad.toml, line 19: mechanism 3 \(Laplace\) needs the field 'scale'",
    ),
    (
        changed("scale = 2.0", "scale = nan"),
        r"line 21: mechanism 3 \(Laplace\): scale must be a finite number > 0, got nan",
    ),
    (changed("scale = 2.0", "scale = -1"), "line 21: .*scale must be a finite number > 0, got -1"),
    (changed("scale = 2.0", 'scale = "two"'), "line 21: .*scale must be .*, got 'two'"),
    (changed("scale = 2.0", "scale = true"), "line 21: .*scale must be"),
    (changed("scale = 2.0", "scale = [[1.0], [1.0, 2.0]]"), "line 21: .*scale must be"),
    (changed("scale = 2.0", "scale = 1979-05-27"), "line 21: .*scale must be"),
    (changed("scale = 2.0", "scale = []"), "line 21: .*scale must hold at least one value"),
    (
        changed("count = 10\n", "count = -10\n"),
        "bad.toml, line 11: mechanism 1: count must be a whole number >= 1, got -10",
    ),
    (
        changed("count = 10\n", "count = nan\n"),
        "bad.toml, line 11: mechanism 1: count must be a whole number >= 1, got nan",
    ),
    (
        changed("count = 10\n", "count = 1.5\n"),
        "line 11: mechanism 1: count must be a whole number >= 1, got 1.5",
    ),
    (changed("count = 10\n", "count = 0\n"), "count must be a whole number >= 1, got 0"),
    (changed("count = 10\n", "count = inf\n"), "count must be a whole number >= 1, got inf"),
    (
        changed("count = 10\n", "count = 99999999999999999999999\n"),
        "count must be a whole number >= 1",
    ),
    (
        changed('sampling_prob = "16384/50000"', "sampling_prob = 1.5"),
        r"line 16: .*sampling_prob must be in \(0, 1\], got 1.5",
    ),
    (
        changed('type = "Laplace"\nscale = 2.0', 'deployment = "census"'),
        "line 20: mechanism 3: no deployment is called 'census'; ",
    ),
    (
        changed('type = "Laplace"', 'deployment = "census_2020_pl94_units"'),
        "line 21: mechanism 3: a deployment has no field 'scale'",
    ),
    (
        GOOD + 'deployment = "census_2020_pl94_units"\n',
        "line 19: mechanism 3 must have either a type or a deployment",
    ),
    ('deployment = "nothing"', "bad.toml, line 1: no deployment is called 'nothing'"),
    (
        'deployment = "census_2020_pl94_units"\n' + GOOD,
        "must have mechanisms .*, a deployment or a run",
    ),
    (
        changed("= 8.28", "= [1.0, 2.0]") + "count = [1, 2, 3]\n",
        "bad.toml: shapes do not broadcast",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD_TOML)
def test_bad_toml(tmp_path, text, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        spec.read_spec("bad.toml")
    assert str(caught.value).startswith("bad.toml") and "\n" not in str(caught.value)


BAD_JSON = [
    ('{"mechanism": [}', "bad.json, line 1, column 16: Expecting value"),
    ('{"mechanism":\n [{"type": "Gaussian"},\n]}', r"bad.json, line (3, column 1|2, column 23)\b"),
    ("[]", "bad.json: must hold a table of keys, got list"),
    ('{"mechanism": {}}', "mechanism must be a list"),
    (
        '{"mechanism": [{"type": "Gaussian", "noise_multiplier": NaN}]}',
        r"mechanism 1 \(Gaussian\): noise_multiplier must be .*nan",
    ),
    (
        '{"mechanism": [{"type": "Gaussian", "noise_multiplier": 1, "noise_multiplier": 2}]}',
        "'noise_multiplier' appears twice",
    ),
    ('{"mechanism": [{"type": "Gaussian", "noise_multiplier": null}]}', "noise_multiplier must be"),
    (
        '{"mechanism": [{"type": "Gaussian", "noise_multiplier": {"a": 1}}]}',
        "noise_multiplier must be",
    ),
    ("[" * 100_000, "bad.json"),
    ('{"mechanism": [{"type": "Gaussian", "noise_multiplier": ' + "1" * 5000 + "}]}", "bad.json"),
]


@pytest.mark.parametrize(("text", "message"), BAD_JSON, ids=range(len(BAD_JSON)))
def test_bad_json(tmp_path, text, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        spec.read_spec("bad.json")
    assert str(caught.value).startswith("bad.json") and "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("binary.toml").write_bytes(b"\xff\xfe\x00")
    Path("folder.toml").mkdir()
    Path("large.toml").write_text(GOOD)
    for name, message in (
        ("missing.toml", "missing.toml: cannot be read: No such file"),
        ("folder.toml", "folder.toml: cannot be read"),
        ("binary.toml", "binary.toml: is not UTF-8 text"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            spec.read_spec(name)
    monkeypatch.setattr(spec, "_LARGEST_FILE", 10)
    with pytest.raises(ValueError, match="large.toml: file is larger than 10 bytes"):
        spec.read_spec("large.toml")


def test_line_numbers_are_left_out_where_they_would_mislead(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # text that looks like a header, and mechanisms without headers
    Path("a.toml").write_text(
        'title = """\n[[mechanism]]\n"""\n[[mechanism]]\ntype = "Laplace"\nscale = 0\n'
    )
    with pytest.raises(ValueError, match=r"^a.toml: mechanism 1 \(Laplace\): scale"):
        spec.read_spec("a.toml")
    Path("b.toml").write_text('mechanism = [{type = "Laplace", scale = 0}]')
    with pytest.raises(ValueError, match=r"^b.toml: mechanism 1 \(Laplace\): scale"):
        spec.read_spec("b.toml")


def test_mechanisms_that_a_file_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="setting must be one of"):
        spec.to_dict(jaxgdp.Gaussian(1.0), colour="red")
    with pytest.raises(ValueError, match="mechanism 0 must be"):
        spec.to_dict(3.0)
