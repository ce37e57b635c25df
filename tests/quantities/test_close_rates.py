"""μ where both rates are nearly the same, against fifty digits."""

import mpmath
import numpy as np
import pytest

from jaxgdp.numerics.errors import LOG, LOGS, UNIT
from jaxgdp.quantities.reading.quantiles import close_rates, quantiles


def _exact_mu(log_alpha, log_tpr, z, z_tpr):
    """Φ⁻¹(e^log_tpr) − Φ⁻¹(e^log_alpha) by Newton's method from near both quantiles."""
    ends = []
    for start, log_rate in ((z, log_alpha), (z_tpr, log_tpr)):
        x = mpmath.mpf(start)
        for _ in range(4):
            rate = mpmath.ncdf(x)
            x -= (mpmath.log(rate) - mpmath.mpf(log_rate)) * rate / mpmath.npdf(x)
        ends.append(x)
    return ends[1] - ends[0]


@pytest.mark.parametrize("rounding", [-1.0, 0.0, 1.0])
def test_mu_of_rates_that_are_nearly_the_same(rounding):
    """``rounding``: how far both logs are off, apart or together, of what is allowed."""
    rng = np.random.default_rng(0)
    z = -(30.0 ** rng.uniform(-1.0, 1.0, 60))
    with mpmath.workdps(50):
        exact = z + 10.0 ** rng.uniform(-12.0, -3.0, 60)
        log_alpha, log_tpr = (
            np.array([float(mpmath.log(mpmath.ncdf(mpmath.mpf(x)))) for x in side])
            for side in (z, exact)
        )
        rates = log_alpha, log_tpr, np.log1p(-np.exp(log_tpr))
        found = close_rates(rates, *quantiles(*rates))
        some = np.isfinite(found.upper)
        assert np.count_nonzero(some) >= 40
        for k in np.flatnonzero(some):
            off = [
                0.5 * rounding * (mpmath.mpf(LOGS) + LOG * UNIT * abs(mpmath.mpf(log[k])))
                for log in (log_alpha, log_tpr)
            ]
            mu = _exact_mu(log_alpha[k] - off[0], log_tpr[k] + off[1], z[k], exact[k])
            assert found.lower[k] <= mu <= found.upper[k]
            shown = float(exact[k] - z[k])
            room = 2.0 * (abs(z[k]) + 1.0) * shown + 2e-13 * (2.0 + z[k] ** 2)
            apart = 2.0 * (LOGS + LOG * UNIT * 2.0 * abs(log_alpha[k])) / max(abs(z[k]), 0.5)
            assert found.upper[k] - found.lower[k] <= room * shown + 1.5 * apart
