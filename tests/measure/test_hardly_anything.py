"""Mechanisms that reveal hardly anything: losses of far less than the rounding of 1.

With losses that small, two uses show E|ℓ₁ + ℓ₂|/2 of one side, whatever the rest of their law.
"""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import jaxgdp
from jaxgdp.accounting.certify import closed_forms
from jaxgdp.quantities.reading import unsampled

GAUSSIAN = 1.0 / np.sqrt(np.pi)  # √2·φ(0)
CASES = {  # by what the advantage of two uses is to 1/scale
    "Gaussian": (lambda s: jaxgdp.Gaussian(s), GAUSSIAN),
    "SubsampledGaussian": (lambda s: jaxgdp.SubsampledGaussian(s, 0.5), 0.5 * GAUSSIAN),
    "Laplace": (lambda s: jaxgdp.Laplace(s), 0.5),
    "ExponentialMechanism": (lambda s: jaxgdp.ExponentialMechanism(1.0 / s), 0.25),
    "NoisyMaximum": (lambda s: jaxgdp.NoisyMaximum(s, 2, "gaussian"), np.sqrt(2.0) * GAUSSIAN),
    "ThresholdedGaussian": (lambda s: jaxgdp.ThresholdedGaussian(s, 1.0 + 60.0 * s), GAUSSIAN),
}


@pytest.mark.parametrize(
    "name, scale",
    [
        (name, scale)
        if scale == 1e16 and name != "ThresholdedGaussian" or name in ("Gaussian", "NoisyMaximum")
        else pytest.param(name, scale, marks=pytest.mark.nightly)
        for scale in (1e14, 1e16, 1e155)
        for name in CASES
    ],
)
def test_advantage_of_two_uses_is_not_below_what_they_show(name, scale):
    make, shown = CASES[name]
    found = jaxgdp.advantage(jaxgdp.compose([(make(scale), 2)]))
    assert found.lower <= shown / scale * (1.0 + 1e-9)
    assert shown / scale * (1.0 - 1e-9) <= found.upper


@pytest.mark.parametrize("mu", [1e-290, 1e-52, 1e-16, 1e-14, 1e-7, 1e-3])
def test_profile_of_a_tiny_gaussian_parameter_is_between_its_sides(mu):
    """Both terms of δ_μ(ε) agree in all digits of a double."""
    m = mpf(mu)
    with mpmath.workdps(60 - 2 * int(np.log10(mu))):
        for share in (0.0, 1e-4, 0.9 * mu, 1.0, 30.0, 150.0):
            epsilon = np.float64(mu * share)
            e = mpf(float(epsilon))
            delta = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            exact = mpmath.log(delta)
            lower, upper = (unsampled.log_delta(epsilon, np.float64(mu), s) for s in (-1.0, 1.0))
            assert lower <= exact <= upper
            assert upper - lower <= 1e-2


@pytest.mark.parametrize(
    "mechanism, shown",
    [
        (lambda s: jaxgdp.Selected(jaxgdp.Laplace(s), jaxgdp.runs.Geometric(3.0)), 0.5),
        (
            lambda s: jaxgdp.NoisyMaximum(s, 5, "gaussian"),
            np.sqrt(0.8) * 2.0 * GAUSSIAN / np.sqrt(2.0),
        ),
        (lambda s: jaxgdp.ThresholdedGaussian(s, 1.0), 0.5 * GAUSSIAN),
    ],
)
@pytest.mark.parametrize(
    "scale",
    [
        pytest.param(1e20, marks=pytest.mark.nightly),
        pytest.param(1e60, marks=pytest.mark.nightly),
        1e290,
    ],
)
def test_one_use_of_a_table_is_not_taken_for_nothing(mechanism, shown, scale):
    assert jaxgdp.advantage(mechanism(scale)).upper >= shown / scale


@pytest.mark.parametrize("uses", [1, 5])
def test_mechanisms_without_a_loss_need_no_lattice(uses):
    one = np.ones(1)
    nothing = jaxgdp.compose(
        [(jaxgdp.RandomizedResponse(0.0), uses), (jaxgdp.NoisyMaximum(one, one, "gaussian"), uses)]
    )
    assert closed_forms.find(nothing.stacked())[0] is not None
    assert jaxgdp.delta(nothing, epsilon=[0.0, 1.0]).upper.tolist() == [0.0, 0.0]
    assert jaxgdp.tpr(nothing, fpr=0.1).contains(0.1)
    mixed = jaxgdp.mu(jaxgdp.RandomizedResponse([0.0, 1.0]))
    assert mixed.upper[0] == 0.0 and mixed.lower[1] > 1.0
