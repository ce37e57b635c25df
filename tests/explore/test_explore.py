"""The explorer: numbers on the safe side of what they stand for, and a page that a browser runs."""

import html
import json
import re
import shutil
import subprocess
import threading
import urllib.request

import numpy as np
import pytest

import jaxgdp
from jaxgdp.explore import grid
from jaxgdp.explore.page import stops

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NAMES = ("mu", "advantage", "epsilon")


@pytest.fixture(scope="module")
def stored():
    return grid.stored()


def _positions():
    """Data sets, batches and epochs of all positions of the sliders, flat."""
    own = stops(live=False)
    axes = np.meshgrid(own["size"], own["batch"], own["epochs"], indexing="ij")
    size, batch, epochs = (a.reshape(-1) for a in axes)
    return size, np.minimum(batch, size), epochs


def _place(size, batch, epochs):
    """Row and column of the grid, and which positions it covers: the rule of the page."""
    rates, steps = grid.STOPS.sampling_prob, grid.STOPS.num_steps
    row = np.array([np.flatnonzero(rates >= r * (1 - 1e-12))[-1] for r in batch / size])
    column = np.searchsorted(grid.STOPS.num_epochs, epochs)
    return row, column, steps[row, column] >= np.ceil(epochs * size / batch)


def test_grid_is_that_of_the_sliders(stored):
    own = stops(live=False)
    assert stored["noise_multiplier"] == own["sigma"] and stored["num_epochs"] == own["epochs"]
    assert stored["deltas"] == own["delta"]
    assert stored["half_octaves"] == grid.STOPS.half_octaves.tolist()
    shape = [len(stored[name]) for name in ("noise_multiplier", "half_octaves", "num_epochs")]
    for column in (stored["mu"], stored["advantage"], *stored["epsilon"]):
        assert len(column) == np.prod(shape) and None not in column
        assert np.all(np.diff(np.reshape(column, shape), axis=0) <= 0.01 * np.min(column) + 1e-2)


def test_grid_serves_every_position_of_the_sliders_from_the_less_private_side():
    size, batch, epochs = _positions()
    row, column, covered = _place(size, batch, epochs)
    rate, steps = grid.STOPS.sampling_prob[row], grid.STOPS.num_steps[row, column]
    own = np.ceil(epochs * size / batch)
    # (the page claims nothing beyond: there the steps of the grid's last rate do not suffice)
    assert np.all(covered == (batch / size >= grid.STOPS.sampling_prob[-1] * 0.99))
    assert np.all(rate[covered] >= (batch / size)[covered] * (1 - 1e-12))
    assert np.max((rate * size / batch)[covered]) <= 1.01
    assert np.max((steps - 2)[covered] / own[covered]) <= 1.021


def _numbers(stored, noise, at):
    rows = np.ravel_multi_index((noise, *at), (18, 33, 14))
    return {
        "mu": np.array(stored["mu"])[rows],
        "advantage": np.array(stored["advantage"])[rows],
        "epsilon": np.array(stored["epsilon"][0])[rows],
    }


def _checked(stored, number, seed):
    """Stored numbers against brackets of the runs of random positions of the sliders."""
    generator = np.random.default_rng(seed)
    size, batch, epochs = _positions()
    row, column, covered = _place(size, batch, epochs)
    covered &= batch < size  # (else the page gives what holds of a fixed order)
    chosen = generator.choice(np.flatnonzero(covered), number, replace=False)
    noise = generator.integers(0, 18, number)
    sigma = grid.STOPS.noise_multiplier[noise]
    runs = jaxgdp.run(sigma, size[chosen], batch[chosen], num_epochs=epochs[chosen])
    exact = jaxgdp.measure(runs, NAMES, delta=grid.DELTAS[0], rtol=1e-2)
    found = _numbers(stored, noise, (row[chosen], column[chosen]))
    return {name: found[name] / np.maximum(exact[name].lower, 1e-300) for name in NAMES}


def test_numbers_of_the_grid_are_no_smaller_than_what_holds(stored):
    for name, ratio in _checked(stored, 12, seed=5).items():
        assert np.all(ratio >= 1.0), name


@pytest.mark.nightly
def test_numbers_of_the_grid_are_close_to_what_holds(stored):
    for name, ratio in _checked(stored, 400, seed=6).items():
        assert np.all(ratio >= 1.0) and np.median(ratio) <= 1.03, name


def test_shuffled_data_are_no_less_private_than_the_page_says(stored):
    place = stored["noise_multiplier"].index(1.0) * 14 + stored["num_epochs"].index(3)
    upper = jaxgdp.epsilon(jaxgdp.run(1.0, 1000, 100, 3, sampler="shuffled"), delta=1e-5).upper
    exact = jaxgdp.gdp.epsilon(delta=1e-5, mu=np.sqrt(3.0))
    assert upper <= stored["ordered"][0][place] * 1.01
    assert exact <= stored["ordered"][0][place] <= exact * 1.011


def test_numbers_of_the_page_are_rounded_up():
    assert grid.rounded_up([1.00001, 2.0, np.inf]) == [1.001, 2.0, None]


def _driven(place, folder):
    """What the page says of itself once it has drawn."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--disable-background-networking", "--no-first-run", "--window-size=360,740"]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=8000", place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    found = re.search(r'data-ready="(.*?)"', done.stdout)
    assert found, done.stdout[-2000:]
    return json.loads(html.unescape(found[1])), done.stdout


@pytest.mark.nightly
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_page_runs_in_a_browser_without_a_network(stored, tmp_path):
    pytest.importorskip("vl_convert")
    from jaxgdp.explore.page import page

    text = page(stored)
    assert not re.search(r'(src|href)="https?:', text)
    (tmp_path / "explore.html").write_text(text, encoding="utf-8")
    seen = []
    for position in ("", "#sigma=2&epochs=100&size=1048576&batch=4096&delta=1e-8"):
        said, dom = _driven(f"file://{tmp_path}/explore.html{position}", tmp_path)
        mine = said["run"]
        run = jaxgdp.run(mine["sigma"], mine["n"], mine["b"], num_epochs=mine["epochs"])
        assert mine["steps"] == run.counts().steps
        exact = jaxgdp.measure(run, NAMES, delta=mine["delta"], rtol=1e-2)
        for name in NAMES:
            shown = said["found"]["poisson"][name]
            assert exact[name].lower <= shown <= 1.06 * exact[name].upper
        assert dom.count('type="range"') == 5 and "If batches were Poisson samples: " in dom
        seen.append(said["found"]["poisson"]["mu"])
    assert mine["n"] == 2**20 and mine["delta"] == 1e-8 and seen[0] > 2 * seen[1]


@pytest.mark.nightly
def test_server_answers_exactly():
    pytest.importorskip("vl_convert")
    from jaxgdp.explore.live import server

    with server() as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{serving.server_address[1]}"
        query = "/measure?sigma=0.9&n=45000&b=512&epochs=30&delta=1e-5"
        found = json.load(urllib.request.urlopen(place + query))
        assert 4.2856 <= found["poisson"]["epsilon"] <= 4.33
        assert found["shuffled"]["epsilon"] > 40 and "ε between 23 and 44" in found["statement"]
        assert all(row["low"] <= row["high"] for row in found["poisson"]["curve"])
        wrong = json.load(urllib.request.urlopen(place + query.replace("b=512", "b=99999")))
        assert "batch_size must be at most" in wrong["error"]
        serving.shutdown()
