"""The error model: every constant by which rounding enters a certificate; it has no other home.

Discretisation and truncation are bounded by mathematics and need no constant. The error of
floating-point arithmetic is bounded here: by a count of roundings where the algorithm is short,
else by a measurement against more digits, with room; ``tests/numerics/test_errors.py`` measures
each one on every backend that is present. Constants that only steer (windows, tilts, menus of
lattices) stay where they are used: they make a bracket wide, never wrong. How far two sides may
cross before that is called a contradiction is ``bracket.SAME``.

Relative errors unless said otherwise. "Units" are roundings of a double, ``UNIT`` each.
"""

from __future__ import annotations

import numpy as np

# --- doubles --------------------------------------------------------------------------------------

UNIT = 1.1102230246251565e-16  # 2⁻⁵³, the error of one rounding to nearest (IEEE 754)
# between 1 and the next double: one operation whatever the direction of rounding
SPACING = 2.0**-52

# --- elementary functions -------------------------------------------------------------------------

# of exp, of a given argument; measured: NumPy 1.2 units, XLA on CPU 2.2 units, here are 9
EXP = 1e-15
# absolute, of the log of a rate next to 1 that is a sum: its own last digits, 9 units
NEAR_ONE = 1e-15
# absolute, of the log of an error rate after a few of exp, log, expm1 and log1p; measured in
# ``log1mexp``: 1.7e-15
LOGS = 4e-15
# units, of the log of a rate, for each unit of the log: taken, added to another, subtracted, and
# the same of the FPR asked for
LOG = 4.0
RISK = 4e-15  # of exp of log(1 − δ), a few roundings each, for each unit of the log
# absolute, of the differences of probabilities that make a regret: 18 units of numbers below 1
GAP = 2e-15
# of an atom's loss, or of a lattice point h·(c + j): three roundings, and six times as much room
PLACE = 2e-15
LOG1P = 256.0  # units, of log1p between −0.75 and 0; XLA on CPU has 241 at −0.43 (NumPy 1)
ARCTAN2 = 4.0  # units, of the angle of φ; measured: 1.3

# --- limit theorems -------------------------------------------------------------------------------

BERRY_ESSEEN = 0.56  # of the distance of distribution functions, over the Lyapunov ratio, for sums
# of independent variables of any laws (Shevtsova 2010, Theorem 1: 0.5600)
MEAN_CENTRAL_LIMIT = 1.0  # of their L¹ distance (Goldstein 2010, Theorem 1.1)

# --- sums and transforms --------------------------------------------------------------------------

# units, of a root of unity in a transform, by which everything below is proven (``transforms``);
# against ball arithmetic: SciPy and NumPy 2.3, XLA on CPU 2.3
ROOT = 3.0
# units for each doubling of the length, of all outputs of a transform together: the root of their
# summed squared errors, over that of the outputs themselves; passes of 2, 4 and 8 numbers
FFT = 4.0
# units for each doubling of the length, of one output of a transform, over the sum of the inputs'
# absolute values
FFT_OUTPUT = 5.5
# units, of a composed frequency that is made of its log and its angle: exp has 9, an angle to 2π
# and its cosine 16, products with them and with a kernel's frequency 6
SPECTRUM = 32.0
# units, absolute, of cos and sin of an angle up to π, known to 1.4 units: 4.3, and one of the
# function; measured: 2.6
TWIDDLE = 8.0
# units, of log M of one use (a log and what it is added with), and of |T·log M| (a product and a
# sum)
SUM_OF_LOGS = 4.0, 8.0
# units of m·|x|·e^x, of m·(e^x − 1), x = s·ℓ, beside the error of m: the lattice point (three
# roundings), two products and expm1
NEAR_TERM = 16.0
# of sums over a block by Gauss nodes, relative to the sum of absolute values; measured: 7.5e-15
NODE_SUMS = 1e-14
# units, of a sum of up to 2⁴⁰ positive terms by NumPy, pairwise down to 128 of them
PAIRWISE = 64.0
DROPPED = 1e-14  # absolute, of a bound on |φ|: sums of some hundred positive terms that add up to 1
# of the exact end of a curve: T·log(1 − mass) and its expm1, some hundred additions
CURVE_END = 2e-13
# of the Q-mass that an open cell leaves over: a sum of up to a thousand masses (2¹⁰ − 1 units)
LEFT_OVER = 1e-13
# of a cell's mass without the part at an infinity: masses are known to some 64 units where that is
# asked
AT_INFINITY = 1e-14

# --- masses of cells, in units (``pairs.cells.Cells.roundoff`` and ``jitter``) --------------------

# of a mass from one or two elementary functions: what its log is rounded by at its size comes on
# top
CELL = 8.0
# of a normal mass below e^−8, for each unit of its log: an edge to two roundings, squared;
# measured: 3.8 in all
FAR, FAR_CELL = 8.0, 4.0
# absolute, of the share that connect-the-dots moves up in a narrow cell, and of a quotient of
# ratios in a wide one; measured: 36
SHARE = 192.0
EDGE = 8.0  # of a normal tail at a cell's edge, which both neighbours share: ``ERFCX``
STRETCH = 16.0  # of a mass, and of the loss, of a stretch: half a dozen elementary functions
TABLE = 16.0  # of masses and losses from a user's table, a quotient of sums and its log each
# relative, of the log of a normal probability by SciPy, lower or upper, added to T − 1 times
# another; measured: 4e-15
SLICES = 1e-14
BINOMIAL = 64.0  # of a binomial coefficient by three log-gammas below 300
# relative, not in units, of a binomial mass for up to 10⁹ terms: of its own (a log of up to 750),
# and for each value between it and the mean, as the probability is rounded; measured: 1.9e-13 and
# 2.3e-16
LONG_BINOMIAL = 2e-12, 4e-15
# relative, not in units, of masses of a log-normal law in narrow cells, |z| ≤ 19: the exponent z²/2
# to a few units, and quadrature by 24 nodes
ALLOCATION = 4e-14
# of a cell's mass of a normal law by 24 nodes: for each unit of its log and of that of a ratio, and
# besides; measured: 0.13 of both together
SELDOM = 4.0, 64.0
# of a normal tail by erfcx and an exponent whose large part is exact: ``ERFCX``, exp twice and a
# few products; measured: 9
NORMAL_TAIL = 32.0
# of a share that keeps the mean of an exponential: two exponentials less 1, of rounded products,
# and their ratio
SHARE_OF_LOGS = 12.0
# relative, not in units, of tents of a normal law up to 17 standard deviations out, on grids with
# spacings of at least 0.07 of them; measured: 4e-11
TENTS = 5e-10
# relative, not in units, of a mixture by a binomial tail: tails are known to 1e-8, see
# ``BINOMIAL_TAIL``
CAPPED = 3e-8
# absolute, of losses of a table whose points are sums of rounded ones: log V is z/σ to a few units,
# |z| ≤ 19, σ ≥ 1/5
BRACKETED = 512.0
PIECES = 64.0  # of masses of several log-linear pieces added up
# of a sum of a normal law over integers and its Euler–Maclaurin end, and of the place of its loss
INTEGERS = 60.0, 80.0
# σ² after a few roundings: by so much more than a table's, and units of each place
DISCRETE = 4.0, 16.0

# --- normal probabilities -------------------------------------------------------------------------

# of erfcx(z), z ≥ 0; measured at 20,000 points: the polynomial 6.9e-16, SciPy's 8.8e-16
ERFCX = 1e-15
LOG_NDTR = 3e-14  # of log Φ(z); measured: NumPy 2e-15, XLA on CPU 2e-14 (its log1p)
QUANTILE = 1e-14  # of Φ⁻¹ of a probability given by its log
# absolute, of the same next to 0: Φ⁻¹ of a double next to ½, √(2π)·UNIT; measured: 2.2e-16
QUANTILE_AT_ZERO = 3e-16
# of the square of a difference of quantiles: twice ``QUANTILE``, and half as much again
SQUARED_QUANTILE = 3e-14
COMPOSED_MU = 1e-14  # of √Σ of the components' own μ²: a sum of positive terms, and a root
PRECISION = 1e-15  # of 1/σ²: three roundings, and three times as much room
# of the quantiles of cumulative sums; absolute for each mass in them (a log-sum is rounded at 1)
PEAK = 1e-13, 1e-15
# absolute, of log δ_μ(ε): of its own; times (1 + ε/μ)/μ, two Mills ratios that nearly cancel; and
# of slopes of Mills ratios, 2e-15 of 4e-5 and the next term of a series, 1e-10 each
CLOSED_LOG_DELTA = 1e-12, 4e-15, 4e-10
# absolute, of log Φ of a quantile plus μ: of its own; times (|z| + 1)·(|z| + |quantile| + μ)
CLOSED_RATES = 1e-12, 2e-14
CLOSED_RISK = 2e-14  # absolute, of the Bayes risk of a Gaussian curve
# absolute, of log J(z, x) = log((Φ(z + x) − Φ(z))/φ(z)), beside a few units of the log and of z²
GAIN = 2e-14
CLOSED_MU = 1e-11  # of a target's closed form in μ, far more than it loses
PURE_MU = 2e-12  # of ``gdp.mu_from_pure_dp``, whose own promise is 1e-12

# --- conversions and closed forms outside the core ------------------------------------------------

# of sums of up to four terms of a Rényi bound, each by one or two elementary functions
RENYI = 16.0 * SPACING
RDP = 32.0 * SPACING  # of a conversion from Rényi divergences, twice as many
CLOSED_FORM = 1e-12  # of ``gdp``'s closed forms: that is their promise
# of a chord beside a tangent, five elementary functions each and masses of up to a thousand
# randomised responses; see ``CLOSED_LOG_DELTA`` for the rest
RESIDUE = 1e-11
SHORT = 1e-15  # of what two or three operations make of numbers up to 1: 9 units
FILTER_COST = 1e-10  # of a cost in float64 added up over a run of up to 2²⁰ steps: 2²⁰ units
# of SciPy's incomplete beta function, whose tails are known to 1e-8 for counts up to 1e6
BINOMIAL_TAIL = 1e-6
PROFILE = 1e-11  # of a profile by a recursion over 64 uses in extended precision
# of masses of the best of several runs and of bounds on them: a power, a log and sums of up to a
# thousand positive terms
SELECTION = 1e-11
# of the probability that noise passes a threshold, by the log of a tail down to e^−2000
THRESHOLD = 1e-10
# of bounds on how fast probabilities grow and of places along their growth, a dozen elementary
# functions and sums of up to four thousand positive terms; a thousandth of it counts where growth
# is that of no more than a rounding
GROWTH = 1e-10
# of the laws of an index of noisy scores, by Gauss nodes of panels; measured on 100 random laws of
# two to six scores, against 30 digits: 3e-14
INDEX_LAW = 1e-10
# units of the widest floats there are, of an integral of a density over an interval
DENSITY = 16.0
FOREIGN_SUM = 1e-13  # absolute, of the sum of a foreign table's masses
# of the arithmetic around a user's function, one operation in either direction and its argument
BLACK_BOX = 4.0 * SPACING
# of the values themselves, relative and absolute, unless their author says otherwise
BLACK_BOX_VALUES = 1e-12, 1e-15

LOG_AT_INFINITY = float(np.log(AT_INFINITY))
