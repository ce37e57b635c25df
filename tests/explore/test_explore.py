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

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def computed():
    return grid.computed(8)


def test_next_point_of_the_grid_is_less_private(computed):
    axes = {name: np.array(values) for name, values in computed["axes"].items()}
    generator = np.random.default_rng(3)
    for _ in range(4):
        own = {name: np.exp(generator.uniform(*np.log(a[[0, -1]]))) for name, a in axes.items()}
        own["num_steps"] = np.ceil(own["num_steps"])
        sigma = np.searchsorted(axes["noise_multiplier"], own["noise_multiplier"], "right") - 1
        rate, steps = (
            np.searchsorted(axes[name], own[name]) for name in ("sampling_prob", "num_steps")
        )
        place = np.ravel_multi_index((sigma, rate, steps), [len(a) for a in axes.values()])
        run = jaxgdp.dpsgd(**own)
        exact = jaxgdp.measure(run, ("mu", "advantage", "epsilon"), delta=1e-5, rtol=1e-2)
        for name in ("mu", "advantage"):
            stored = computed[name][place]
            assert stored is None or stored >= exact[name].lower
        stored = computed["epsilon"][grid.DELTAS.index(1e-5)][place]
        assert stored is None or stored >= exact.epsilon.lower


def test_numbers_of_the_page_are_rounded_up():
    assert grid._up([1.00001, 2.0, np.inf]) == [1.001, 2.0, None]


def _driven(path, folder):
    """What the page says of itself once it has drawn."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=8000", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    found = re.search(r'data-ready="(.*?)"', done.stdout)
    assert found, done.stdout[-2000:]
    return json.loads(html.unescape(found[1])), done.stdout


@pytest.mark.nightly
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_page_runs_in_a_browser_without_a_network(computed, tmp_path):
    pytest.importorskip("vl_convert")
    from jaxgdp.explore.page import page

    text = page(computed)
    assert not re.search(r'(src|href)="https?:', text)
    (tmp_path / "explore.html").write_text(text, encoding="utf-8")
    said, dom = _driven(f"file://{tmp_path}/explore.html", tmp_path)
    assert said["run"]["steps"] == np.ceil(
        said["run"]["epochs"] * said["run"]["n"] / said["run"]["b"]
    )
    assert dom.count('type="range"') == 4 and "If batches were Poisson samples: " in dom
    exact = jaxgdp.epsilon(
        jaxgdp.run(0.9, said["run"]["n"], said["run"]["b"], num_epochs=30), delta=1e-5
    )
    assert said["found"]["epsilon"] is None or said["found"]["epsilon"] >= exact.lower


@pytest.mark.nightly
def test_server_answers_exactly():
    pytest.importorskip("vl_convert")
    from jaxgdp.explore.live import server

    with server() as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{serving.server_address[1]}"
        query = "/measure?sigma=0.9&n=45000&b=512&epochs=30&delta=1e-5"
        found = json.load(urllib.request.urlopen(place + query))
        assert found["epsilon"] >= 4.2856 and "ε between 23 and 44" in found["statement"]
        wrong = json.load(urllib.request.urlopen(place + query.replace("b=512", "b=99999")))
        assert "batch_size must be at most" in wrong["error"]
        serving.shutdown()
