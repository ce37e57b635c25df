"""What takes one large step, composed apart: probabilities far below the rounding of one, against
exact integrals.
"""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import jaxgdp
from jaxgdp.accounting.certify.composed import Window
from jaxgdp.accounting.certify.discretisation import Weights
from jaxgdp.accounting.certify.jumps import compose_jumps
from jaxgdp.accounting.certify.truncation import escaped_mass

DIGITS = 30


def one_step(sigma, p, epsilon, adding):
    """Pr_P[loss > ε] and Pr_Q[loss > ε] of one step of DP-SGD, any real ε; ``adding`` swaps the
    pair.
    """
    cdf = mpmath.ncdf
    r = (mpmath.exp(-epsilon if adding else epsilon) - 1 + p) / p
    if r <= 0:
        return (mpf(0), mpf(0)) if adding else (mpf(1), mpf(1))
    u = sigma * mpmath.log(r) + 1 / (2 * sigma)
    side = 1 if adding else -1
    null, shifted = cdf(side * u), cdf(side * (u - 1 / sigma))
    mixed = (1 - p) * null + p * shifted
    return (mixed, null) if adding else (null, mixed)


def exact(sigma, p, uses, epsilon, adding=False):
    """Pr_P, Pr_Q of a composed loss above ε, of one or two steps, by integration over the output of
    one of them.
    """
    if uses == 1:
        return one_step(sigma, p, epsilon, adding)
    ratio = lambda x: mpmath.log(1 - p + p * mpmath.exp((2 * x - 1) / (2 * sigma**2)))
    density = lambda x: mpmath.npdf(x, 0, sigma)
    kink = sigma**2 * mpmath.log((mpmath.exp(epsilon) - 1 + p) / p) + mpf(1) / 2
    reach = max(kink, 1) + 12 * sigma
    # (many short intervals: the integrand has narrow peaks, most of them next to the kink, whose
    # places nobody knows beforehand)
    around = [
        kink + sign * far * p * sigma
        for far in (0, *(2.0**k for k in range(-1, 9)))
        for sign in (-1, 1)
    ]
    ends = sorted({*mpmath.linspace(-12 * sigma, reach, 121), *around})

    def part(which):
        def integrand(x):
            loss = ratio(x)
            other = one_step(sigma, p, epsilon - (-loss if adding else loss), adding)[which]
            # (Q of the swapped pair, and P of the other, are the plain noise)
            return other * density(x) * (1 if which == int(adding) else mpmath.exp(loss))

        return mpmath.quad(integrand, ends, maxdegree=4, method="gauss-legendre")

    return part(0), part(1)


# σ, p, uses, ε; adding: δ from 1e-16 to 1e-170
DEEP = [
    (0.5, 0.01, 1, 25.0, False),
    (1.1, 0.003, 2, 6.0, False),
    (0.6, 0.05, 2, 20.0, False),
    (0.9, 0.0005, 2, 16.0, False),
    (0.8, 0.3, 2, 0.5, True),
]


@pytest.mark.parametrize("sigma, p, uses, epsilon, adding", DEEP)
def test_delta_and_tpr_where_one_step_is_the_likeliest_way(sigma, p, uses, epsilon, adding):
    with mpmath.workdps(DIGITS):
        alpha, tpr = exact(mpf(sigma), mpf(p), uses, mpf(epsilon), adding)
        delta, alpha = tpr - mpmath.exp(mpf(epsilon)) * alpha, float(alpha)
    adjacency = "add" if adding else "remove"
    asked = {"epsilon": epsilon, "fpr": alpha} if alpha > 1e-300 else {"epsilon": epsilon}
    found = jaxgdp.measure(
        jaxgdp.dpsgd(sigma, p, uses),
        ("delta", "tpr")[: len(asked)],
        rtol=1e-2,
        adjacency=adjacency,
        nested=False,
        **asked,
    )
    room = 1e-9  # of the integral, and of the FPR as a double
    for name, bracket in found.brackets.items():
        true = delta if name == "delta" else tpr
        assert mpf(float(bracket.lower)) <= true * (1 + room) and mpf(
            float(bracket.upper)
        ) >= true * (1 - room), name
        assert bracket.upper <= 1.011 * bracket.lower and found.status[name] == 0, name


def direct(weights, beyond, count):
    """Masses of the composed law with and without jumps, by sums of products of positive
    numbers.
    """
    laws = [np.where(beyond, 0.0, weights), np.asarray(weights)]
    out = []
    for law in laws:
        total = np.ones(1)
        for row, uses in zip(law, count, strict=True):
            for _ in range(int(uses)):
                total = np.convolve(total, row)
        out.append(total)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_composed_jumps_are_the_difference_of_two_laws(seed):
    """Within the error that is stated, and that is far below what an FFT of the whole would
    allow.
    """
    rng = np.random.default_rng(seed)
    left, right, size, block, h = 16, 48, 512, 8, 0.05
    count = np.array([[1.0, 2.0], [5.0, 1.0], [3.0, 4.0]][seed % 3])
    offset = np.arange(-left, right)
    bulk = np.exp(-0.5 * (offset / np.array([[2.0], [3.0]])) ** 2)
    rare = 10.0 ** rng.uniform(-40.0, -20.0)
    jumps = rare * rng.random(bulk.shape) * (offset > 30)
    weights = bulk * (offset <= 12) + jumps
    weights[:, [0, -1]] = 0.0
    weights /= np.sum(weights, axis=1, keepdims=True)
    beyond = np.broadcast_to(offset > 30, weights.shape)
    small, whole = direct(weights, beyond, count)
    least = -left * int(count.sum())
    start = -128
    with_jumps = whole - small
    none = np.zeros(2)
    law = Weights(weights, none, none, none, none, none, none, np.zeros_like(weights), none)
    found = compose_jumps(
        law, count, Window(start, 0.0, h, 3.0, 3.0), beyond, 90, left=left, size=size, block=block
    )  # fmt: skip
    reachable = np.zeros(size)
    at = np.arange(len(whole)) + least - start
    inside = (at >= 0) & (at < size)
    reachable[at[inside]] = with_jumps[inside]
    sums = reachable.reshape(-1, block).sum(axis=1)
    points = start + block * np.arange(size // block)
    alone = points >= 12 * int(count.sum())  # beyond what small steps reach
    assert alone.any() and np.max(sums[alone]) > 0.0
    allowed = found.guard(0.0, h, size)
    assert np.all(np.abs(found.plain[alone] - sums[alone]) <= allowed + 1e-13 * sums[alone])
    assert found.noise < 1e-12 * (count @ np.sum(jumps, axis=1)) < 1e-27


def test_reach_of_small_steps_is_in_the_bound():
    """No jump at all: the tail of a binomial law, whose mass beyond the first vertex must be in
    what is left out.
    """
    count, p = np.array([40.0]), 0.1
    weights = np.zeros((1, 64))
    left = 16
    weights[0, left], weights[0, left + 1] = 1.0 - p, p
    none, beyond = np.zeros(1), np.zeros_like(weights, bool)
    law = Weights(weights, none, none, none, none, none, none, np.zeros_like(weights), none)
    window = Window(-64, 0.0, 1.0, 2.0, 2.0)
    for from_point in (5, 12, 25, 38):
        found = compose_jumps(law, count, window, beyond, from_point, left=left, size=256, block=8)
        with mpmath.workdps(DIGITS):
            tail = mpmath.fsum(
                mpmath.binomial(40, k) * mpf(p) ** k * (1 - mpf(p)) ** (40 - k)
                for k in range(from_point + 1, 41)
            )
        assert tail <= found.escaped <= 1e6 * tail + 1e-300
        assert np.all(np.abs(found.plain) <= found.guard(0.0, 1.0, 256))


def test_large_steps_are_not_cut_off_in_exponential_moments():
    """One step of 1000 with a probability of 1e-280 leaves a window that ends at 900."""
    weights = np.array([[0.0, 1.0, 1e-280, 0.0]])
    steps = np.array([-1.0, 0.0, 1000.0, 1001.0])
    escaped = escaped_mass(weights, np.array([1.0]), steps, 910, Window(-10.0, 0.0, 1.0, 1.0, 1.0))
    assert 1e-280 <= escaped <= 1e-200
