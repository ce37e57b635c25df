"""Every kind of file that is written says who computed it and when, what was asked, and from which
FPR on.
"""

import json
import re
import xml.etree.ElementTree as Xml

import numpy as np
import pytest

import jaxgdp
from jaxgdp import audit, landscape, plot
from jaxgdp.numerics.provenance import today
from jaxgdp.reproduce.document import json_text, write_csv
from jaxgdp.reproduce.result import Result, Table

QUESTION = "how private (really)?"


def told(version, question, floor, date):
    assert version == f"jaxgdp {jaxgdp.__version__}" and question == QUESTION
    assert date.startswith(today()), date
    return floor.removeprefix(f"{QUESTION}; FPR floor ")


def png(path):
    from PIL import Image

    with Image.open(path) as image:
        found = image.text
    return told(found["Software"], found["Title"], found["Description"], found["Creation Time"])


def svg(path):
    names = {"dc": "http://purl.org/dc/elements/1.1/"}
    (found,) = Xml.parse(path).getroot().iterfind(".//{http://creativecommons.org/ns#}Work")
    read = lambda name: "".join(found.find(f"dc:{name}", names).itertext()).strip()
    return told(read("creator"), read("title"), read("description"), read("date"))


def pdf(path):
    data = path.read_bytes().decode("latin-1")
    texts = {
        name: re.search(rf"/{name} \(((?:\\.|[^)\\])*)\)", data)[1]
        for name in ("Creator", "Title", "Subject")
    }
    title, subject = (re.sub(r"\\(.)", r"\1", texts[name]) for name in ("Title", "Subject"))
    year, month, day = re.search(r"/CreationDate \(D:(\d{4})(\d\d)(\d\d)", data).groups()
    return told(texts["Creator"], title, subject, f"{year}-{month}-{day}")


@pytest.mark.parametrize("read", [png, svg, pdf])
@pytest.mark.parametrize(("floor", "said"), [(1e-10, "1e-10"), (0.0, "0"), (None, "none")])
def test_figures(read, floor, said, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    path = tmp_path / f"a.{read.__name__}"
    plot.save(Figure(figsize=(1, 1)), path, question=QUESTION, fpr_floor=floor)
    assert read(path) == said


def test_figures_of_other_kinds_are_refused():
    with pytest.raises(ValueError, match="path must end in .png, .pdf, .svg, got 'a.gif'"):
        plot.save(None, "a.gif", question="?", fpr_floor=None)


def test_provenance_of_a_reproduction(tmp_path):
    table = Table(("x",), (("1",),))
    for floor, said in ((None, "none"), (1e-7, "1e-07")):
        write_csv(table, tmp_path / "a.csv", QUESTION, floor)
        lines = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
        assert lines == [
            f"# version: {jaxgdp.__version__}",
            f"# date: {today()}",
            f"# question: {QUESTION}",
            f"# fpr_floor: {said}",
            "x",
            "1",
        ]
    sections = [("figure-1", Result({}), []), ("figure-2", Result({}, fpr_floor=1e-7), [])]
    data = json.loads(json_text({"identifier": "arXiv:0"}, [], {}, sections, True))
    assert (data["version"], data["date"]) == (jaxgdp.__version__, today()) and "arXiv:0" in data[
        "question"
    ]
    assert data["fpr_floor"] == {"figure-1": "none", "figure-2": 1e-7}


@pytest.mark.parametrize(
    ("claim", "floor"), [(1.0, 0.0), ((1.0, 1e-5), "none"), (jaxgdp.Gaussian(1.0), 1e-9)]
)
def test_audits(claim, floor):
    found = json.loads(
        audit.verdict(claim, np.linspace(1.0, 4.0, 20), np.linspace(0.0, 3.0, 20)).to_json()
    )
    assert (found["version"], found["date"], found["fpr_floor"]) == (
        jaxgdp.__version__,
        today(),
        floor,
    )
    assert found["question"].startswith("whether scores refute ")
    assert (found["mu_claimed"] is None) == (floor == "none")


def test_landscapes(tmp_path):
    xarray = pytest.importorskip("xarray")
    grid = landscape.landscape([2.0], [1.0], [3], fpr_floor=1e-6)
    landscape.write_csv(grid, tmp_path / "a.csv")
    landscape.write_netcdf(grid, tmp_path / "a.nc")
    lines = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
    table = dict(line[2:].split(": ", 1) for line in lines if line.startswith("#"))
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as stored:
        for found in (table, stored.attrs):
            assert (found["version"], found["date"]) == (jaxgdp.__version__, today())
            assert "regret Delta" in found["question"] and float(found["fpr_floor"]) == 1e-6


def test_stores(tmp_path):
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("dask")
    jaxgdp.sweep([2.0], [1.0], [3], ("epsilon",), fpr_floor=1e-6, store=tmp_path / "a.zarr")
    found = dict(zarr.open_group(tmp_path / "a.zarr", mode="r")["jaxgdp"].attrs)
    assert (found["versions"]["jaxgdp"], found["date"]) == (jaxgdp.__version__, today())
    assert found["question"]["quantities"] == ["epsilon"] and found["question"]["fpr_floor"] == 1e-6
