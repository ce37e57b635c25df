"""Supporting lines and chords of finite laws whose masses go down to 1e-300, against 340 digits.

The rounding of a log near −690 is 1e-13: beside rates as small as that, no certificate may rest on
the last digits of a log."""

import mpmath
import numpy as np
import pytest
import scipy.special

from jaxgdp.accounting.certify.curve import Points, log_intercept
from jaxgdp.numerics.normal import log1mexp, log_error
from jaxgdp.quantities.reading import chords, rates

DIGITS = 340
FACTORS = 1.0, 1.001, 1.1, 2.0, 0.5, 0.999, 1.0 + 1e-12, 1.0 - 1e-12, 1.0 + 1e-14, 1.0 - 1e-14


def randomized_response(random):
    """Losses and masses of several uses of one randomized response, the largest loss first."""
    epsilon, uses = 10.0 ** random.uniform(0.0, 2.3), int(random.integers(1, 8))
    flip = 1 / (1 + mpmath.exp(epsilon))
    q = [mpmath.binomial(uses, k) * flip ** (uses - k) * (1 - flip) ** k for k in range(uses + 1)]
    return [mpmath.mpf(epsilon) * (uses - 2 * k) for k in range(uses + 1)], q[::-1], q


def any_law(random):
    """Losses and masses under P and Q of random outcomes, the largest loss first; what is left over
    shows everything.
    """
    number, span = int(random.integers(2, 9)), 10.0 ** random.uniform(0.0, 2.8)
    losses = [mpmath.mpf(x) for x in np.sort(random.uniform(-span, span, number))[::-1]]
    alpha = [mpmath.exp(-max(l, 0) - random.uniform(0.0, span)) for l in losses]
    tpr = [a * mpmath.exp(l) for a, l in zip(alpha, losses, strict=True)]
    whole = max(sum(alpha), sum(tpr))
    return losses, [t / whole for t in tpr], [a / whole for a in alpha]


class Exact:
    """Corners of a trade-off curve: FPR, TPR and FNR of "the loss is at least that of outcome k",
    and no test at all.
    """

    def __init__(self, losses, tpr, alpha):
        self.losses = losses
        beyond = max(1 - sum(tpr), mpmath.mpf(0))
        beyond = beyond if beyond > mpmath.mpf(10) ** -320 else mpmath.mpf(0)
        self.alpha, self.tpr = [mpmath.mpf(0)], [beyond]
        for a, t in zip(alpha, tpr, strict=True):
            self.alpha.append(self.alpha[-1] + a)
            self.tpr.append(self.tpr[-1] + t)
        self.beta = [sum(tpr[k:], mpmath.mpf(0)) for k in range(len(tpr) + 1)]

    def rates(self, alpha):
        """(TPR, FNR) at one FPR."""
        for k in range(len(self.losses)):
            if alpha <= self.alpha[k + 1]:
                share = (alpha - self.alpha[k]) / (self.alpha[k + 1] - self.alpha[k])
                return tuple(
                    row[k] + share * (row[k + 1] - row[k]) for row in (self.tpr, self.beta)
                )
        return mpmath.mpf(1), mpmath.mpf(0)

    def points(self, side) -> Points:
        """The corners in doubles, each rate moved by the rounding of its log: up what is dominated,
        down what is attacked (−1).
        """
        log = lambda row: np.array([float(mpmath.log(x)) if x > 0 else -np.inf for x in row])
        moved = lambda x, way: np.minimum(
            x + way * np.where(np.isfinite(x), np.abs(x), 0.0) * 2.0**-52, 0.0
        )
        losses = np.array([float(x) for x in self.losses])
        a, t, b = log(self.alpha[:-1]), log(self.tpr[:-1]), log(self.beta[:-1])
        ends = losses, np.append(np.inf, losses[:-1])
        return Points(
            *ends, moved(a, -side), moved(t, side), moved(b, -side), np.ones(len(losses), bool)
        )


def mirrored_lines(p: Points):
    """Lines of the swapped pair, those of slopes below one."""
    at = slice(None, None, -1)
    swapped = Points(
        -p.high[at], -p.low[at], p.log_beta[at], log1mexp(p.log_alpha)[at], p.log_alpha[at], None
    )
    return rates._lines(swapped._replace(used=(swapped.low >= 0.0) & np.isfinite(swapped.low)), ())


def bounds(above: Points, below: Points, log_fpr):
    """(bound of a rate's log, whether it is of the TPR, from above or from below) of every way to
    read one.
    """
    tpr, beta = chords.tpr_line(above, log_fpr)
    yield from ((tpr, True, 1.0), (beta, False, -1.0))
    tpr, beta = rates._certified(
        rates._lines(above._replace(used=above.low >= 0.0), ()), mirrored_lines(above), log_fpr
    )
    yield from ((tpr, True, 1.0), (beta, False, -1.0))
    tpr, beta = chords.tpr_chord(below, log_fpr)
    yield from (
        (tpr - log_error(tpr, log_fpr), True, -1.0),
        (min(beta + log_error(beta), 0.0), False, 1.0),
    )


@pytest.mark.parametrize("law", [randomized_response, any_law])
def test_no_rate_is_read_beyond_the_digits_of_its_log(law):
    random = np.random.default_rng(5)
    with mpmath.workdps(DIGITS), np.errstate(all="ignore"):
        for _ in range(25):
            exact = Exact(*law(random))
            above, below = exact.points(1.0), exact.points(-1.0)
            asked = [float(alpha * factor) for alpha in exact.alpha[1:] for factor in FACTORS]
            asked += list(10.0 ** random.uniform(-300.0, 0.0, 10))
            for fpr in (x for x in asked if 1e-305 < x < 1.0):
                true = exact.rates(mpmath.mpf(fpr))
                for bound, of_tpr, side in bounds(above, below, np.log(fpr)):
                    rate = true[0] if of_tpr else true[1]
                    if rate > 1e-300:
                        found = (
                            mpmath.exp(mpmath.mpf(float(bound)))
                            if bound > -np.inf
                            else mpmath.mpf(0)
                        )
                        assert side * (found - rate) >= 0, (
                            fpr,
                            of_tpr,
                            side,
                            float(found / rate - 1),
                        )


def test_chord_is_taken_where_only_its_fnr_tells_it_from_the_tests_beside_it():
    """FNRs far below the last digit of a TPR next to 1: the chord between two tests has a smaller
    one than the stricter test.
    """
    random = np.random.default_rng(7)
    with mpmath.workdps(DIGITS), np.errstate(all="ignore"):
        for _ in range(200):
            log_alpha = np.cumsum(random.uniform(-0.5, -0.01, 6))
            log_beta = np.cumsum(random.uniform(0.05, 0.5, 6)) - random.uniform(40.0, 600.0)
            tests = Points(
                np.zeros(6), np.zeros(6), log_alpha, log1mexp(log_beta), log_beta, np.ones(6, bool)
            )
            k, part = int(random.integers(5)), random.uniform(0.02, 0.98)
            laxer, stricter = (mpmath.exp(mpmath.mpf(x)) for x in log_alpha[k : k + 2])
            log_fpr = float(mpmath.log(stricter + part * (laxer - stricter)))
            share = (mpmath.exp(mpmath.mpf(log_fpr)) - stricter) / (laxer - stricter)
            low, high = (mpmath.exp(mpmath.mpf(x)) for x in log_beta[k : k + 2])
            true, found = share * low + (1 - share) * high, chords.tpr_chord(tests, log_fpr)[1]
            assert (
                true <= mpmath.exp(mpmath.mpf(float(found + log_error(found)))) <= true * (1 + 1e-9)
            )


def test_line_meets_fpr_0_at_a_difference_that_its_rounding_does_not_hide():
    """δ at thresholds next to the loss of the only outcome above them: TPR − e^ε·α is a small share
    of either.
    """
    random = np.random.default_rng(6)
    with mpmath.workdps(60), np.errstate(all="ignore"):
        for _ in range(400):
            loss, log_alpha = random.uniform(0.1, 300.0), -random.uniform(0.0, 400.0)
            log_alpha = min(log_alpha, -loss)
            tpr = mpmath.exp(mpmath.mpf(log_alpha) + mpmath.mpf(loss))
            below = loss * (1.0 - 10.0 ** random.uniform(-15.0, -1.0))
            true = (
                mpmath.log(tpr - mpmath.exp(mpmath.mpf(below) + mpmath.mpf(log_alpha)))
                if below < loss
                else -mpmath.inf
            )
            log_tpr = float(mpmath.log(tpr))
            upper = log_intercept(below, log_alpha, log_tpr * (1.0 - 2.0**-52), 1.0)
            lower = log_intercept(below, log_alpha, log_tpr * (1.0 + 2.0**-52), -1.0)
            assert lower <= true <= upper, (loss, log_alpha, below)


def test_chords_where_pieces_overlap_are_below_the_curve_and_no_less_than_those_of_each_piece():
    """Tests of N(1, 1) against N(0, 1), in pieces the second of which goes back beyond the end of
    the first: their FPRs fall, rise, and fall again.
    """
    log_ndtr = scipy.special.log_ndtr
    first, second = np.linspace(-1.0, 1.5, 26), np.linspace(1.23, 4.0, 29)

    def tests(thresholds):
        rates = log_ndtr(-thresholds), log_ndtr(1.0 - thresholds), log_ndtr(thresholds - 1.0)
        return Points(thresholds, thresholds, *rates, np.ones(len(thresholds), bool))

    both = tests(np.concatenate([first, second]))
    for threshold in np.linspace(-0.9, 3.9, 97):
        log_fpr = log_ndtr(-threshold)
        found = chords.tpr_chord(both, log_fpr)
        assert found[0] <= log_ndtr(1.0 - threshold) and found[1] >= log_ndtr(threshold - 1.0)
        for piece in (first, second):
            alone = chords.tpr_chord(tests(piece), log_fpr)
            assert found[0] >= alone[0] - 1e-12 and found[1] <= alone[1] + 1e-12
