"""Groups of records: closed forms."""

import numpy as np
import pytest

import jaxgdp


def test_groups_of_known_mechanisms():
    run = jaxgdp.compose([(jaxgdp.Gaussian(4.0), 4), (jaxgdp.SubsampledGaussian(2.0, 1.0), 1)])
    assert jaxgdp.mu(jaxgdp.group_privacy(run, 3)).contains(3 * np.sqrt(4 / 16 + 1 / 4))
    laplace = jaxgdp.group_privacy(jaxgdp.Laplace(6.0), 3)
    assert jaxgdp.epsilon(laplace, delta=1e-12).upper <= 0.5 * (1 + 1e-9)
    one, two = (
        jaxgdp.epsilon(each, delta=1e-5)
        for each in (
            jaxgdp.group_privacy(jaxgdp.dpsgd(1.0, 0.01, 100), 4),
            jaxgdp.dpsgd(1.0, 0.01, 100, records_per_user=4),
        )
    )
    assert tuple(one) == tuple(two)
    assert jaxgdp.group_privacy(jaxgdp.Gaussian(2.0), 1).mechanisms[0] == jaxgdp.Gaussian(2.0)


def test_groups_that_are_not_known_are_refused_by_name():
    with pytest.raises(ValueError, match=r"got FixedSize.*group_profile"):
        jaxgdp.group_privacy(jaxgdp.FixedSize(1.0, 10, 100), 2)
    with pytest.raises(ValueError, match="records_per_user must be one whole number"):
        jaxgdp.group_privacy(jaxgdp.Gaussian(1.0), 300)
