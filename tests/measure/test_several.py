"""A list of runs is a batch: the numbers of each by itself, in the order of the list."""

import numpy as np
import pytest

import jaxgdp

ASKED = {"delta": 1e-5, "executor": "eager"}
NAMES = ("mu", "epsilon", "advantage")
RUNS = [
    jaxgdp.dpsgd(1.1, 0.01, 500),
    jaxgdp.Laplace(2.0),
    jaxgdp.dpsgd(2.0, 0.02, 300),
    jaxgdp.compose([(jaxgdp.Gaussian(3.0), 2), (jaxgdp.Laplace(9.0), 3)]),
    jaxgdp.FromPMFs([0.7, 0.3], [0.2, 0.8]),
    jaxgdp.FromPMFs([0.6, 0.4], [0.3, 0.7]),
    jaxgdp.Laplace(3.0),
]


def _same(part, whole, row):
    for name in part:
        for alone, together in zip(part[name], whole[name], strict=True):
            assert np.all(alone == together[row]), (name, row)
        assert np.all(part.status[name] == whole.status[name][row])


def test_runs_of_any_classes_equal_separate_calls():
    found = jaxgdp.measure(RUNS, NAMES, **ASKED)
    assert found.mu.upper.shape == found.worst.shape == (len(RUNS),)
    for row, run in enumerate(RUNS):
        _same(jaxgdp.measure(run, NAMES, **ASKED), found, row)
    assert jaxgdp.measure(tuple(RUNS), NAMES, **ASKED).epsilon.upper.tolist() == (
        found.epsilon.upper.tolist()
    )


def test_shapes_of_runs_and_arguments_broadcast_behind_the_first_axis():
    runs = [
        jaxgdp.Gaussian([1.0, 2.0]),
        jaxgdp.Gaussian(3.0),
        jaxgdp.Laplace([[2.0], [4.0], [8.0]]),
    ]
    delta = np.array([1e-5, 1e-6])
    found = jaxgdp.measure(runs, ("epsilon", "mu"), delta=delta, executor="eager")
    assert found.epsilon.upper.shape == (3, 3, 2)
    for row, run in enumerate(runs):
        alone = jaxgdp.measure(run, ("epsilon", "mu"), delta=delta, executor="eager")
        _same(alone, found, row)


def test_runs_of_one_structure_are_one_call(monkeypatch):
    from jaxgdp.measure import pieces

    sizes, here = [], pieces._here
    count = lambda piece, progress=None: (
        sizes.append(piece.groups[0][1].shape[0]) or here(piece, progress)
    )
    monkeypatch.setattr(pieces, "_here", count)
    jaxgdp.measure([jaxgdp.Laplace(b) for b in (1.0, 2.0, 3.0)], "mu")
    assert sizes == [3]


def test_lists_are_not_compositions():
    runs = [jaxgdp.Gaussian(2.0), jaxgdp.Gaussian(2.0)]
    each = jaxgdp.mu(runs)
    both = jaxgdp.mu(jaxgdp.compose(runs))
    assert np.all(each.upper < 0.6) and both.lower > 0.7


@pytest.mark.parametrize(
    ("runs", "named"),
    [
        ([], "at least one"),
        ([jaxgdp.Gaussian([1.0, 2.0]), jaxgdp.Gaussian([1.0, 2.0, 3.0])], "run 1"),
        ([jaxgdp.Gaussian(1.0), 3.0], "must be one of"),
    ],
)
def test_lists_that_are_no_batch_are_refused(runs, named):
    with pytest.raises(ValueError, match=named):
        jaxgdp.measure(runs)


def test_progress_counts_every_setting():
    done = []
    jaxgdp.measure(RUNS, "mu", progress=done.append)
    assert sum(done) == len(RUNS)
