"""The constants of the error model, each measured on the backends that are present: NumPy with
SciPy, and JAX as it runs here.
"""

import jax
import mpmath
import numpy as np
import pytest
import scipy.fft

from jaxgdp.accounting.certify import convolution, frequency_tables
from jaxgdp.mechanisms import FromPMFs
from jaxgdp.numerics import errors, normal, transforms
from jaxgdp.numerics import namespace as xp
from jaxgdp.numerics.compiling import Program
from jaxgdp.quantities.reading import unsampled

DIGITS = 40
mpf = mpmath.mpf


def by_numpy(function, *arguments):
    with np.errstate(all="ignore"):
        return jax.tree.map(np.asarray, function(*arguments))


def by_jax(function, *arguments):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(function)(*arguments))


def by_program(function, *arguments):
    """As ``jax.jit`` does, with the options of the compiler that this package's own programs
    have.
    """
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, Program(function)(*arguments))


backends = pytest.mark.parametrize(
    "run", [by_numpy, by_jax, by_program], ids=["numpy", "jax", "program"]
)
RANDOM = np.random.default_rng(0)
SMALL = 10.0 ** RANDOM.uniform(-18.0, 0.0, 150)


def relative(found, exact):
    return max(abs(float((mpf(float(f)) - e) / e)) for f, e in zip(found, exact, strict=True))


def absolute(found, exact):
    return max(abs(float(mpf(float(f)) - e)) for f, e in zip(found, exact, strict=True))


def tail(z):
    """Φ(−z)."""
    return mpmath.erfc(mpf(z) / mpmath.sqrt(2)) / 2


def quantile(log_p, near):
    """Φ⁻¹(e^{log_p}) for a double or more digits of a log, from a number close to it."""
    z = mpf(float(near))
    for _ in range(4):
        p = tail(-z)
        z -= (mpmath.log(p) - mpf(log_p)) * p * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(z * z / 2)
    return z


ELEMENTARY = {
    "exp": (
        xp.exp,
        mpmath.exp,
        np.concatenate([RANDOM.uniform(-700, 700, 300), -SMALL]),
        errors.EXP,
    ),
    "expm1": (
        xp.expm1,
        mpmath.expm1,
        np.concatenate([RANDOM.uniform(-40, 40, 200), SMALL, -SMALL]),
        errors.EXP,
    ),
    "log": (
        xp.log,
        mpmath.log,
        np.concatenate([10.0 ** RANDOM.uniform(-300, 300, 100), RANDOM.uniform(0.5, 2, 200)]),
        errors.EXP,
    ),
    "log1p": (
        xp.log1p,
        mpmath.log1p,
        np.concatenate(
            [RANDOM.uniform(-0.75, 0, 300), np.linspace(-0.5, -0.3, 200), SMALL, -0.7 * SMALL]
        ),
        errors.LOG1P * errors.UNIT,
    ),
}


@backends
@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions(name, run):
    function, exact, points, bound = ELEMENTARY[name]
    assert relative(run(function, points), [exact(mpf(float(x))) for x in points]) <= bound


@backends
def test_log1p_next_to_its_worst(run):
    """On 400,000 points, against extended precision (whose own error is a two-thousandth of a
    unit).
    """
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("no extended precision on this machine")
    x = np.linspace(-0.75, -0.05, 400_001)
    exact = np.log1p(x.astype(np.longdouble))
    worst = float(np.max(np.abs((run(xp.log1p, x) - exact) / exact)))
    assert worst <= errors.LOG1P * errors.UNIT


@backends
def test_logs_of_rates(run):
    """log(1 − e^a), through which one rate is read off the other."""
    a = np.concatenate([-RANDOM.uniform(0.0, 3.0, 300), -(10.0 ** RANDOM.uniform(-15.0, 2.0, 200))])
    exact = [
        (
            mpmath.log1p(-mpmath.exp(mpf(float(v))))
            if v < -1.0
            else mpmath.log(-mpmath.expm1(mpf(float(v))))
        )
        for v in a
    ]
    found = run(normal.log1mexp, a)
    # absolute, and for logs far from 0 to their own last digits
    room = [errors.LOGS * max(1.0, abs(float(e))) for e in exact]
    assert all(
        abs(float(mpf(float(f)) - e)) <= r for f, e, r in zip(found, exact, room, strict=True)
    )


@backends
def test_log_transform(run):
    """log φ from φ − 1, next to φ = 1, along the real axis where log1p is worst, and everywhere in
    the disc.
    """
    angle, radius = RANDOM.uniform(-np.pi, np.pi, 300), RANDOM.uniform(0.01, 1.0, 300)
    line = np.linspace(0.5, 0.99, 300)
    re = np.concatenate(
        [radius * np.cos(angle) - 1.0, -(10.0 ** RANDOM.uniform(-14.0, 0.0, 200)), line - 1.0]
    )
    im = np.concatenate(
        [radius * np.sin(angle), 10.0 ** RANDOM.uniform(-14.0, 0.0, 200), 0.0 * line]
    )
    log_abs, arg, bound = run(convolution.log_transform, re, im)
    for *parts, a, b, e in zip(re, im, log_abs, arg, bound, strict=True):
        z = mpmath.mpc(1 + mpf(float(parts[0])), mpf(float(parts[1])))
        assert abs(mpmath.log(z) - mpmath.mpc(mpf(float(a)), mpf(float(b)))) <= e, parts


def _exact_transform(x):
    """A few frequencies of a real array, in extended precision, with exact reduction of the
    angle.
    """
    number = len(x)
    k = np.unique(np.concatenate([[0, 1, 2, number // 2], RANDOM.integers(0, number // 2, 60)]))
    turns = (k[:, None] * np.arange(number)) % number
    table = np.arange(number, dtype=np.longdouble) * (2 * np.arccos(np.longdouble(-1)) / number)
    cos, sin = np.cos(table), np.sin(table)
    x = x.astype(np.longdouble)
    return k, cos[turns] @ x, -(sin[turns] @ x)


@backends
@pytest.mark.parametrize("size", [2**10, 2**12, 2**14])
def test_transform(run, size):
    """Of masses less a point mass, and of noise: no output is off by more than is allowed for the
    sum of absolute values, nor by more than two units for each doubling of their root of squares,
    of which that is several times as much; and back again."""
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("no extended precision on this machine")
    bell = np.exp(-0.5 * ((np.arange(size) - size / 3) / (size / 40)) ** 2)
    bell = bell / np.sum(bell)
    bell[size // 3] -= 1.0
    step = np.exp(-np.arange(size) / 5.0)
    step[0] -= np.sum(step)
    for x in (bell, step, RANDOM.normal(size=size)):
        k, re, im = _exact_transform(x)
        root = np.sqrt(np.sum(x * x))
        found = run(xp.rfft, x)[k]
        worst = float(np.max(np.hypot(found.real - re, found.imag - im)))
        assert worst <= 2.0 * np.log2(size) * errors.UNIT * root
        assert worst <= transforms.one_output(size) * np.sum(np.abs(x))
        spectrum_of = run(xp.rfft, x)
        back = run(lambda a: xp.irfft(a, size), spectrum_of)
        # there and back: both errors
        assert np.sqrt(np.sum((back - x) ** 2)) <= 2.0 * transforms.all_outputs(size) * root


@pytest.mark.parametrize("size", [2**16, 2**18])
def test_transform_of_long_lattices(size):
    """Every output, against a transform in extended precision: of a narrow law, of a flat one, and
    of rare large steps.
    """
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("no extended precision on this machine")
    place = np.arange(size)
    narrow = np.exp(-0.5 * ((place - size // 3) / 0.7) ** 2)
    flat = np.where(place < size // 2, 1.0 + RANDOM.uniform(-1e-3, 1e-3, size), 0.0)
    rare = np.exp(-10.0 * place / size)
    for mass, centre, share in ((narrow, size // 3, 1.0), (flat, 0, 1.0), (rare, 0, 1e-6)):
        x = share * mass / np.sum(mass)
        x[centre] -= np.sum(x)
        error = np.max(np.abs(xp.rfft(x) - scipy.fft.rfft(x.astype(np.longdouble))))
        assert error <= transforms.one_output(size) * np.sum(np.abs(x))
        assert error <= 2.0 * np.log2(size) * errors.UNIT * np.sqrt(np.sum(x * x))


@pytest.mark.parametrize(
    ("number", "decay"), [(16, 0.5), (256, 5.0), (4096, 0.01), (65536, 25.0), (65536, 0.0)]
)
def test_sums_over_a_block(number, decay):
    """Gauss nodes against the sums themselves (geometric: a closed form), for waves up to half a
    turn over the block.
    """
    node, weight = frequency_tables._discrete_gauss(number, frequency_tables.NODES)
    for turns in (0.0, 0.1, 0.5):
        rate, theta = decay / number, 2.0 * np.pi * turns / number
        found = np.sum(weight * np.exp(-rate * node) * np.exp(1j * theta * node))
        ratio = mpmath.exp(mpmath.mpc(-mpf(rate), mpf(theta)))
        exact = complex((1 - ratio**number) / (1 - ratio)) if ratio != 1 else complex(number)
        size = (
            float((1 - mpmath.exp(-mpf(rate) * number)) / (1 - mpmath.exp(-mpf(rate))))
            if rate
            else float(number)
        )
        assert abs(found - exact) <= errors.NODE_SUMS * size


@backends
def test_normal_functions(run):
    z = np.concatenate([RANDOM.uniform(0.0, 6.0, 300), 10.0 ** RANDOM.uniform(-12.0, 1.5, 200)])
    exact = [mpmath.exp(mpf(float(x)) ** 2) * mpmath.erfc(mpf(float(x))) for x in z]
    assert relative(run(normal.erfcx, z), exact) <= errors.ERFCX
    z = np.concatenate(
        [RANDOM.uniform(-40.0, 8.0, 300), -(10.0 ** RANDOM.uniform(-10.0, 3.5, 200))]
    )
    exact = [mpmath.log1p(-tail(x)) if x > 0.0 else mpmath.log(tail(-x)) for x in z]
    assert relative(run(normal.log_ndtr, z), exact) <= errors.LOG_NDTR


@backends
def test_quantiles(run):
    """Of probabilities by their logs, also next to 1: relative, and next to 0 absolute."""
    z = np.concatenate(
        [
            RANDOM.uniform(-38.0, 8.0, 200),
            -(10.0 ** RANDOM.uniform(-8.0, 4.0, 250)),
            RANDOM.uniform(0.0, 37.0, 100),
        ]
    )
    log_p = np.array(
        [float(mpmath.log1p(-tail(x)) if x > 0.0 else mpmath.log(tail(-x))) for x in z]
    )
    found = run(normal.ndtri_exp, log_p)
    for f, l, x in zip(found, log_p, z, strict=True):
        exact = (
            quantile(l, x) if x < 0.0 else -quantile(mpmath.log(-mpmath.expm1(mpf(float(l)))), -x)
        )
        assert (
            abs(float(mpf(float(f)) - exact)) <= errors.QUANTILE * abs(x) + errors.QUANTILE_AT_ZERO
        ), x


@backends
def test_quantiles_about_one_half(run):
    x = np.concatenate([10.0 ** RANDOM.uniform(-15.0, -0.31, 150), RANDOM.uniform(0.0, 0.5, 150)])
    log_rest = np.array([float(mpmath.log(mpf(0.5) - mpf(float(v)))) for v in x])
    exact = [mpmath.sqrt(2) * mpmath.erfinv(2 * mpf(float(v))) for v in x]
    assert relative(run(normal.ndtri_half_plus, x, log_rest), exact) <= errors.QUANTILE
    mu = 10.0 ** RANDOM.uniform(-3.0, 2.0, 50)
    squares = run(normal.square_above, mu)
    assert np.all(squares >= mu * mu) and np.all(
        squares <= mu * mu * (1.0 + 3.0 * errors.SQUARED_QUANTILE)
    )


@backends
def test_closed_forms_of_gaussian_curves(run):
    """Moved to either side by their errors they lie on that side."""
    with mpmath.workdps(80):
        for mu, epsilon in (
            (1e-3, 0.0),
            (0.01, 0.05),
            (0.3, 2.0),
            (1.0, 0.0),
            (4.0, 30.0),
            (30.0, 1.0),
        ):
            m, e = mpf(mu), mpf(epsilon)
            exact = mpmath.log(tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2))
            low, high = (float(run(unsampled.log_delta, epsilon, mu, side)) for side in (-1.0, 1.0))
            assert low <= exact <= high and high - low < 1e-9
            for log_fpr in (-1e-3, -0.7, -23.0, -600.0):
                z = quantile(log_fpr, float(normal.ndtri_exp(np.array(log_fpr))))
                rates = [
                    run(unsampled.error_rates, np.array(log_fpr), mu, side) for side in (-1.0, 1.0)
                ]
                tpr, beta = mpmath.log(tail(-z - m)), mpmath.log(tail(z + m))
                assert rates[0][0] <= tpr <= rates[1][0] and rates[1][1] <= beta <= rates[0][1]
            for prior in (0.5, 0.01):
                t = mpmath.log(mpf(prior) / (1 - mpf(prior))) / m
                risk = mpf(prior) * tail(t + m / 2) + (1 - mpf(prior)) * tail(m / 2 - t)
                assert abs(float(run(unsampled.bayes_risk, prior, mu)) - risk) <= errors.CLOSED_RISK


@backends
def test_masses_of_a_table(run):
    """Masses of cells against exact sums, to the units that they declare."""
    p = RANDOM.uniform(0.1, 1.0, 40)
    q = RANDOM.uniform(0.1, 1.0, 40)
    p, q = p / np.sum(p), q / np.sum(q)
    pair = FromPMFs(p, q).canonical()
    ell = np.linspace(-2.5, 2.5, 12)
    cells = run(lambda m, e: m.cells(e, np.inf), pair, ell)
    for masses, logs in ((pair.log_p, cells.log_x), (pair.log_q, cells.log_y)):
        place = np.searchsorted(ell, np.asarray(pair.loss))
        for cell in range(len(ell) + 1):
            exact = mpmath.fsum(
                mpmath.exp(mpf(float(v))) for v, c in zip(masses, place, strict=True) if c == cell
            )
            if exact > 0:
                assert (
                    abs(float(mpmath.exp(mpf(float(logs[cell]))) / exact - 1))
                    <= cells.roundoff[cell] * errors.UNIT
                )


def test_every_constant_is_used():
    """A constant that nothing imports bounds nothing."""
    import ast
    from pathlib import Path

    import jaxgdp

    root = Path(jaxgdp.__file__).parent
    used = set()
    for path in root.rglob("*.py"):
        if path.name != "errors.py":
            names = {
                n
                for node in ast.walk(ast.parse(path.read_text("utf-8")))
                if isinstance(node, ast.ImportFrom)
                for a in node.names
                if node.module and node.module.endswith("errors")
                for n in (a.name,)
            }
            used |= names
    declared = {name for name in vars(errors) if name.isupper()}
    assert declared - used <= {"AT_INFINITY", "ERFCX", "LOG_NDTR", "ROOT"}


def test_tents():
    """Second differences of integrated normal and log-normal laws, down to masses of 1e-100."""
    from jaxgdp.mechanisms.matrix_mechanism import markov_above as chain

    with mpmath.workdps(330):
        for fine, scale, mean, deviation in (
            (0.1, 1.0, 2.0, 0.9),
            (0.07, 0.1, -7.65, 0.43),
            (0.4, 3.0, 6.0, 0.87),
        ):
            grid = chain._values(fine, 0.5) * scale
            m, d = mpmath.mpf(mean * scale), mpmath.mpf(deviation * scale)
            z = [(mpmath.mpf(float(x)) - m) / d for x in grid]
            for side in (chain.CALL, chain.PUT):
                found = chain.tents(np.array(mean * scale), deviation * scale, grid, side)
                if side == chain.CALL:
                    at, first = z, mpmath.mpf(0)
                    total = [mpmath.npdf(t) + t * mpmath.ncdf(t) for t in z]
                else:
                    at = [mpmath.exp(mpmath.mpf(float(x))) for x in grid]
                    whole = mpmath.exp(m + d * d / 2)
                    total = [
                        y * mpmath.ncdf(t) - whole * mpmath.ncdf(t - d)
                        for y, t in zip(at, z, strict=True)
                    ]
                    first = total[0] / at[0]
                steps = zip(total, total[1:], at, at[1:], strict=False)
                slope = [first, *((b - a) / (y - x) for a, b, x, y in steps), mpmath.mpf(1)]
                for k, mass in enumerate(found):
                    exact = slope[k + 1] - slope[k]
                    if exact > mpmath.mpf(10) ** -100:
                        assert abs(mpmath.mpf(float(mass)) - exact) <= errors.TENTS * exact
