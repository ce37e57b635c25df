"""Scores of canaries: likelihood ratios with reference models against their formula, and power."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from jaxgdp import audit


def losses(parameters, canary):
    """A model is the list of its losses; a canary is its place in it."""
    return jnp.asarray(parameters)[canary]


def test_likelihood_ratio_is_that_of_fitted_normal_laws():
    rng = np.random.default_rng(0)
    half = rng.random((4, 30)) < 0.5
    included = np.concatenate([half, ~half])
    models = rng.standard_normal((8, 30)) - 1.5 * included
    own = rng.standard_normal(30)
    found = audit.likelihood_ratio_scores(losses, own, models, included, (np.arange(30),))
    for i in range(30):
        inside, outside = models[included[:, i], i], models[~included[:, i], i]
        left = np.concatenate([inside - inside.mean(), outside - outside.mean()])
        spread = np.sqrt(np.sum(left**2) / 6.0)
        expected = norm.logpdf(own[i], inside.mean(), spread) - norm.logpdf(
            own[i], outside.mean(), spread
        )
        assert found[i] == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_reference_models_beat_the_loss_where_canaries_differ():
    """Canaries of different difficulty: the loss alone tells little, the ratio nearly all."""
    rng = np.random.default_rng(1)
    hard = 20.0 * rng.standard_normal(400)
    coins = rng.random(400) < 0.5
    half = rng.random((8, 400)) < 0.5
    included = np.concatenate([half, ~half])
    models = hard + rng.standard_normal((16, 400)) - 4.0 * included
    own = hard + rng.standard_normal(400) - 4.0 * coins
    canaries = (np.arange(400),)
    ratio = audit.likelihood_ratio_scores(losses, own, models, included, canaries)
    loss = audit.loss_scores(losses, own, canaries)
    right = lambda scores: audit.count_right(audit.guess(scores, 400), coins)
    assert right(ratio) > 370 and right(loss) < 260


def test_canaries_with_too_few_reference_models_are_refused():
    models, places = np.zeros((3, 2)), (np.arange(2),)
    for included in (np.ones((3, 2), bool), np.ones((2, 2), bool)):
        with pytest.raises(ValueError, match="two models at least with and two without"):
            audit.likelihood_ratio_scores(losses, models[0], models, included, places)
