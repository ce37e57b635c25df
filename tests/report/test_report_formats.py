"""Reports for other readers: HTML, PDF, Markdown and text say what was assumed, in words; files are
not replaced unasked.
"""

import dataclasses
import datetime
import html.parser
import json
import re
import shutil
import subprocess
import tomllib

import numpy as np
import pytest
from scipy.special import ndtri

import jaxgdp
from jaxgdp import gdp, spec
from jaxgdp.adjacency import Adjacency
from jaxgdp.report import Report, differences, figure, words

pytest.importorskip("matplotlib")
pytest.importorskip("click")

from jaxgdp.cli import main

CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
RUN = ["report", "--noise-multiplier", "2", "--num-steps", "4", "--rtol", "1e-2", "--quiet"]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("JAXGDP_NO_CACHE", "1")


@pytest.fixture(scope="module")
def subsampled():
    return jaxgdp.report(jaxgdp.dpsgd(9.4, 0.32768, 2000), rtol=1e-2)


@pytest.fixture(scope="module")
def page(subsampled):
    titled = dataclasses.replace(subsampled, title="Counts <of> households & persons", status="ok")
    return titled.to_html()


class Reader(html.parser.HTMLParser):
    """Elements of a page in order, whether they close, and what they refer to."""

    VOID = ("meta", "link", "br", "img")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "title"):
            self.text += data


def test_report_says_what_it_assumes_in_words(subsampled):
    for text in (str(subsampled), subsampled.to_markdown()):
        flat = " ".join(text.split())
        for said in (
            "Poisson sampling: each step takes every record with probability 0.32768",
            "one record added or removed",
            "wrongly takes one non-member in a thousand for a member finds at most",
            "not counted",
            "choosing hyperparameters",
            "two bell curves of width 1",
            "how much at most the curve of mu overstates the attacker",
            "a probability set aside, here 1e-10",
            subsampled.command,
            subsampled.date,
        ):
            assert said in flat, said
    assert str(subsampled).isascii()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"type": "SubsampledGaussian", "noise_multiplier": 1.0, "sampling_prob": 1.0},
            "none: every use includes every record",
        ),
        (
            {"type": "FixedSize", "noise_multiplier": 1.0, "batch_size": 2, "dataset_size": 9},
            "fixed size, drawn at random",
        ),
        (
            {"type": "Shuffled", "noise_multiplier": 1.0, "num_batches": 3, "num_epochs": 1},
            "shuffling",
        ),
        ({"type": "ApproximateDP", "epsilon": 1.0, "delta": 0.1}, "only the guarantee is known"),
        ({"type": "NobodyKnows"}, "as NobodyKnows has it"),
    ],
)
def test_sampling_in_words(entry, said):
    assert said in words.sampling({"mechanism": [entry]})


def test_every_mechanism_has_words_for_its_sampling():
    random = ("Subsampled", "Poisson", "FixedSize", "Shuffled", "Allocation", "Deterministic")
    for name, kind in spec.known_mechanisms().items():
        for make in kind.examples.values():
            told = make().describe_sampling()
            assert "has it" not in told, name
            if any(word in name for word in random):
                assert "every use looks" not in told, name


def test_sampling_of_a_deployment_and_of_a_mixture():
    assert "0.32768" in words.sampling({"deployment": "de_et_al_2022_table4_epsilon_8"})
    both = [
        {"type": "Laplace", "scale": 1.0},
        {"type": "SubsampledLaplace", "scale": 1.0, "sampling_prob": 0.25},
    ]
    assert words.sampling({"mechanism": both}).startswith(
        "none: every use includes every record; also Poisson"
    )


def test_pair_with_words_of_its_own_is_not_called_added_or_removed(subsampled):
    """The census replaces records: its "add_remove" says that both orders of that pair are
    covered.
    """
    assert "one record added or removed" in words.adjacency(subsampled)
    for adjacency in Adjacency:
        told = dataclasses.replace(
            subsampled, neighbours="one unit replaced by another", adjacency=adjacency
        )
        assert (
            "added" not in words.adjacency(told)
            and words.unit(told) == "one unit replaced by another"
        )


def test_sentences_round_up(subsampled):
    tpr = dict(subsampled.tprs)[1e-3].upper
    found = re.search(
        r"a thousand for a member finds at most ([0-9.]+) in ([0-9,]+) of",
        " ".join(words.verdict(subsampled)),
    )
    said = float(found[1]) / float(found[2].replace(",", ""))
    assert tpr <= said <= 1.01 * tpr
    told = re.search(r"right at most ([0-9.]+) times in 100", " ".join(words.verdict(subsampled)))
    assert (
        50.0 * (1.0 + subsampled.advantage.upper)
        <= float(told[1])
        <= 50.3 * (1.0 + subsampled.advantage.upper)
    )
    assert (
        words._of(2.0**-34) == "at most 0.0583 in a billion"
        and words._of(2.0) == "at most 100 in 100"
    )


@pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0])
def test_figure_is_the_curve(sigma):
    """Straight lines between its points stray from the closed form by less than a line's width;
    mirrored points included.
    """
    mu = 1.0 / sigma
    drawn = figure.points(jaxgdp.report(jaxgdp.Gaussian(sigma)))
    for curve, sign in ((drawn.low, -1.0), (drawn.high, 1.0)):
        assert np.all(np.diff(curve[:, 0]) >= 0.0) and np.all(np.diff(curve[:, 1]) <= 0.0)
        off = sign * (curve[1:-1, 1] - gdp.beta(fpr=curve[1:-1, 0], mu=mu))
        assert np.all(off >= -1e-12) and np.max(off) < 2e-3
        alpha = np.linspace(1e-3, 1.0 - 1e-3, 999)
        distance = np.interp(alpha, *curve.T) - gdp.beta(fpr=alpha, mu=mu)
        slope = np.exp(-mu * ndtri(alpha) - 0.5 * mu**2)  # −f_μ′(α)
        assert np.max(np.abs(distance) / (1.0 + slope)) < 2e-3


def test_date_and_software_travel_and_do_not_count(subsampled):
    assert subsampled.date == datetime.datetime.now(datetime.UTC).date().isoformat()
    assert subsampled.software["jaxgdp"] == jaxgdp.__version__ and set(subsampled.software) >= {
        "jax",
        "numpy",
        "python",
    }
    back = Report.from_dict(json.loads(subsampled.to_json()))
    assert (back.date, back.software, back) == (subsampled.date, subsampled.software, subsampled)
    old = json.loads(subsampled.to_json())
    del old["date"], old["software"]
    assert differences(Report.from_dict(old), subsampled) == []
    assert Report.from_dict(old).date == ""
    with pytest.raises(ValueError, match="'date' of the report must be str"):
        Report.from_dict(old | {"date": 3})


def test_html_is_well_formed_accessible_and_alone(page, subsampled):
    found = Reader(page)
    assert found.open == [] and page.startswith("<!DOCTYPE html>")
    attributes = found.attributes
    assert dict(attributes)["html"]["lang"] == "en"
    assert (
        found.tags.count("h1") == 1
        and [t for t in found.tags if re.fullmatch("h[1-6]", t)][0] == "h1"
    )
    assert "script" not in found.tags and "link" not in found.tags and "img" not in found.tags
    # nothing is loaded from anywhere
    links = [
        value
        for _, attrs in attributes
        for key, value in attrs.items()
        if key in ("src", "href", "xlink:href")
    ]
    assert all(value.startswith(("#", "data:")) for value in links) and "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    # each figure has a name and a description, and its parts refer to its own parts
    named = [
        attrs["aria-labelledby"].split() for tag, attrs in attributes if attrs.get("role") == "img"
    ]
    ids = [attrs["id"] for _, attrs in attributes if "id" in attrs]
    assert (
        len(named) == 3
        and len(ids) == len(set(ids))
        and {i for pair in named for i in pair} <= set(ids)
    )
    assert {value[1:] for value in links if value.startswith("#")} <= set(ids)
    assert {"caption", "th", "main", "header"} <= set(found.tags)
    assert all(attrs.get("scope") in ("row", "col") for tag, attrs in attributes if tag == "th")
    assert "Counts <of> households & persons" in found.text and "<of>" not in page
    for said in (
        subsampled.command,
        "Poisson sampling",
        "What is not counted",
        "FPR floor",
        "1e-10",
    ):
        assert said in found.text
    assert "@media print" in page and 'name="viewport"' in page


def _luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_has_contrast_enough(page):
    """WCAG 2.2, 1.4.3: at least 4.5 to 1, on white and on the grey of code."""
    style = page[page.index("<style>") : page.index("</style>")]
    colours = [
        c if len(c) == 7 else "#" + "".join(2 * x for x in c[1:])
        for c in re.findall(r"[ {]color: (#[0-9a-f]+)", style)
    ]
    assert len(colours) >= 3
    for ground in ("#ffffff", "#f2f2f2"):
        for colour in colours:
            assert (_luminance(ground) + 0.05) / (_luminance(colour) + 0.05) >= 4.5, (
                colour,
                ground,
            )


def test_stored_report_draws_the_same_curve(subsampled):
    stored = Report.from_dict(json.loads(subsampled.to_json()))
    assert stored.to_html() == subsampled.to_html()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("width", [1280, 320])
def test_chromium_lays_it_out_without_scrolling_sideways(page, tmp_path, width):
    """320 pixels is what 1280 become at a zoom of 400 % (WCAG 2.2, 1.4.10)."""
    probe = (
        "<script>addEventListener('load', () => { const wide = [...document.querySelectorAll('body"
        " *')].filter(e => !e.closest('svg') && e.getBoundingClientRect().right > innerWidth +"
        " 1).map(e => e.tagName);const small = [...document.querySelectorAll('p, li, td, th, dd,"
        " dt, pre, figcaption, caption')].filter(e => parseFloat(getComputedStyle(e).fontSize) <"
        " 14).length;document.title = JSON.stringify({inner: innerWidth, scroll:"
        " document.documentElement.scrollWidth, wide, small}); });</script>"
    )
    # (a window is never narrower than 500 pixels: the page is laid out in a frame)
    (tmp_path / "page.html").write_text(
        page.replace("</head>", probe + "</head>"), encoding="utf-8"
    )
    frame = (
        f"<iframe src='page.html' width={width} height=900 style='border:0'></iframe><pre"
        " id=said></pre><script>onload = () => { said.textContent ="
        " document.querySelector('iframe').contentDocument.title; };</script>"
    )
    (tmp_path / "frame.html").write_text(
        f"<!DOCTYPE html><body style='margin:0'>{frame}", encoding="utf-8"
    )
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        "--enable-logging=stderr",
    ]
    command += [
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=5000",
        "--dump-dom",
        f"file://{tmp_path}/frame.html",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    said = json.loads(html.unescape(re.search(r'<pre id="said">(.*?)</pre>', done.stdout)[1]))
    assert (
        said["inner"] == width
        and said["scroll"] <= width
        and said["wide"] == []
        and said["small"] == 0
    ), said


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_chromium_prints_it_on_one_page(page, tmp_path):
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    command += [
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--print-to-pdf={tmp_path / 'page.pdf'}",
        f"file://{tmp_path}/page.html",
    ]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert len(re.findall(rb"/Type /Page\b", (tmp_path / "page.pdf").read_bytes())) == 1


def test_pdf_is_one_page_with_its_description(subsampled, tmp_path):
    pytest.importorskip("fpdf")
    subsampled.to_pdf(tmp_path / "report.pdf")
    data = (tmp_path / "report.pdf").read_bytes()
    assert data.startswith(b"%PDF-") and len(re.findall(rb"/Type /Page\b", data)) == 1
    assert b"spec.json" in data and b"/Lang (en)" in data and data.count(b"/Figure") >= 2


def test_every_format_says_version_question_floor_and_date(subsampled, tmp_path):
    pytest.importorskip("fpdf")
    subsampled.to_pdf(tmp_path / "report.pdf")
    record = json.dumps(subsampled.to_registry(), ensure_ascii=False)
    told = json.loads(subsampled.to_json())
    assert [told[key] for key in ("version", "question", "fpr_floor", "date")] == [
        jaxgdp.__version__,
        subsampled.question,
        1e-10,
        subsampled.date,
    ]
    assert (
        "SubsampledGaussian(noise_multiplier=9.4, sampling_prob=0.32768) x 2000" in told["question"]
    )
    for text in (
        str(subsampled),
        subsampled.to_markdown(),
        record,
        html.unescape(subsampled.to_html()),
    ):
        for said in (jaxgdp.__version__, subsampled.question, "1e-10", subsampled.date):
            assert said in text, said
    data = (tmp_path / "report.pdf").read_bytes().decode("latin-1").replace("\\", "")
    day = subsampled.date.replace("-", "")
    for said in (
        f"/Creator (jaxgdp {jaxgdp.__version__})",
        f"/Subject ({subsampled.question}; FPR floor 1e-10)",
        f"/CreationDate (D:{day}",
    ):
        assert said in data, said


@pytest.mark.parametrize("name", ["json", "markdown", "text", "html", "registry"])
def test_formats_on_the_command_line(name, capsys, tmp_path):
    if name == "registry":
        pytest.importorskip("yaml")
    assert main([*RUN, "--format", name]) == 0
    printed = capsys.readouterr().out
    beginning = {
        "json": "{",
        "markdown": "### Privacy report",
        "text": "jaxgdp ",
        "html": "<!DOCTYPE html>",
        "registry": "url_slug: ",
    }
    assert printed.startswith(beginning[name])
    suffix = {"json": "json", "markdown": "md", "text": "txt", "html": "html", "registry": "yaml"}[
        name
    ]
    path = tmp_path / f"report.{suffix}"
    assert main([*RUN, "--output", str(path)]) == 0
    out = capsys.readouterr().out
    assert out == "" and path.read_text(encoding="utf-8") == printed


def test_pdf_on_the_command_line(capsys, tmp_path):
    pytest.importorskip("fpdf")
    assert main([*RUN, "--format", "pdf"]) == 2
    assert "--format pdf needs a file" in capsys.readouterr().err
    assert main([*RUN, "--output", str(tmp_path / "a.pdf")]) == 0
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")


def test_file_is_not_replaced_unasked(capsys, tmp_path, monkeypatch):
    path = tmp_path / "report.json"
    path.write_text("mine")
    with monkeypatch.context() as patched:
        patched.setattr(
            "jaxgdp.mechanisms.dpsgd", lambda **_: pytest.fail("began before it looked")
        )
        assert main([*RUN, "--output", str(path)]) == 2
    assert path.read_text() == "mine"
    assert "report.json exists already: give --force to replace it" in capsys.readouterr().err
    assert main([*RUN, "--output", str(path), "--force"]) == 0
    assert json.loads(path.read_text())["tier"] in ("I", "II")


@pytest.mark.parametrize(
    ("argv", "mention"),
    [
        (
            ["--format", "word"],
            "--format must be one of text, json, markdown, html, pdf, registry, got 'word'",
        ),
        (["--format", "html", "--json"], "give --format or --json, not both"),
        (["--metadata", "a.toml"], "--metadata belongs to --format registry"),
        (["--output", "no/such/folder.md"], "--output must lie in an existing folder"),
        (["--for", "card", "--output", "a.pdf"], "let --output end in .md, got 'a.pdf'"),
        (["--for", "card", "--output", "a.html"], "let --output end in .md, got 'a.html'"),
        (["--for", "paper", "--output", "a.md"], "let --output end in .tex, got 'a.md'"),
        (["--for", "legal", "--output", "a.pdf"], "let --output end in .md or .html, got 'a.pdf'"),
    ],
)
def test_bad_formats(argv, mention, capsys):
    assert main([*RUN, *argv]) == 2
    assert mention in capsys.readouterr().err


def test_metadata_of_a_registry_record(capsys, tmp_path):
    yaml = pytest.importorskip("yaml")
    about = (
        'name = "Digits"\n'
        'data_curators = ["Us"]\n'
        'model_name = "Central"\n'
        "[basic]\n"
        'data_product_sector = "Education"\n'
    )
    (tmp_path / "about.toml").write_text(about)
    assert main([*RUN, "--format", "registry", "--metadata", str(tmp_path / "about.toml")]) == 0
    found = yaml.safe_load(capsys.readouterr().out)["deployment"]
    assert (
        found["basic"]["name"] == tomllib.loads(about)["name"]
        and found["basic"]["data_product_sector"] == "Education"
    )
    assert found["deployment_model"] == {"model_name": "Central"}
    (tmp_path / "about.toml").write_text('nam = "Digits"\n')
    assert main([*RUN, "--format", "registry", "--metadata", str(tmp_path / "about.toml")]) == 2
    assert "unknown key 'nam'; did you mean 'name'?" in capsys.readouterr().err
