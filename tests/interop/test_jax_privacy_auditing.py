"""jax_privacy's auditing procedures: its published values, and what holds instead."""

import types

import numpy as np
import pytest
from scipy.special import ndtri

from jaxgdp import audit
from jaxgdp.interop import jax_privacy_auditing as theirs

# auditing_test.py of jax_privacy: 10⁴ + 10⁴ deterministic normal scores, significance 0.05, δ =
# 1e-6
PUBLISHED = (
    (0, 0.0, 0.0),
    (1, 1.13346, 2.164749),
    (2, 2.311945, 4.7218075),
    (4, 4.395568, 9.133752),
)
QUANTILES = ndtri((np.arange(10_000) + 0.5) / 10_000)


@pytest.mark.parametrize(("shift", "one_run", "one_run_fdp"), PUBLISHED)
def test_published_values(shift, one_run, one_run_fdp):
    scores = QUANTILES + shift, QUANTILES
    assert theirs.epsilon_one_run(*scores, 0.05, 1e-6) == pytest.approx(one_run, rel=1e-5)
    assert theirs.epsilon_one_run_fdp(*scores, 0.05, 1e-6) == pytest.approx(one_run_fdp, rel=1e-5)


@pytest.mark.parametrize("shift", [1, 2, 4])
def test_simultaneous_limits_beat_a_union_bound_over_their_thresholds(shift):
    scores = QUANTILES + shift, QUANTILES
    assert theirs.mu_from_gdp(*scores, 0.05) < audit.mu_lower_bound(*scores) < shift
    assert theirs.epsilon_clopper_pearson(*scores, 0.05, 1e-6) < audit.epsilon_lower_bound(
        *scores, 1e-6
    )


def test_thresholds_on_the_hull_are_theirs():
    # test_get_tn_fn_counts and those with ties of auditing_test.py
    for member, nonmember, fn, tn in (
        ([1.5, 2.5, 0.5, 3.5], [0, 3, 2, 1], [0, 0, 3, 4], [0, 1, 4, 4]),
        ([0, 1, 1, 2], [0, 0, 1, 1], [0, 1, 3, 4], [0, 2, 4, 4]),
        ([0, 0, 1, 2], [0, 1, 1, 1], [0, 3, 4], [0, 4, 4]),
        (np.zeros(4), np.zeros(4), [0, 4], [0, 4]),
    ):
        found = theirs._hull_counts(np.asarray(member, float), np.asarray(nonmember, float))
        assert found[0].tolist() == fn and found[1].tolist() == tn


def test_scores_of_an_auditor():
    for prefix in ("", "_"):
        auditor = types.SimpleNamespace(
            **{f"{prefix}in_canary_scores": [1.0], f"{prefix}out_canary_scores": [0.0]}
        )
        assert [side.tolist() for side in theirs.scores(auditor)] == [[1.0], [0.0]]
    with pytest.raises(ValueError, match="auditor must have in_canary_scores, got int"):
        theirs.scores(1)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="in_canary_scores must hold no NaN"):
        theirs.epsilon_one_run([np.nan], [1.0], 0.05, 1e-6)
    with pytest.raises(ValueError, match=r"significance must be in \(0, 1\)"):
        theirs.epsilon_one_run([1.0], [1.0], 1.0, 1e-6)
