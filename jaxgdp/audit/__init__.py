"""Audits: what attackers achieve, with confidence, against what is certified.

    bands, thresholds       error rates of every threshold, counted and bounded at once
    many_runs               a mechanism run many times: lower bounds on μ, ε(δ), the advantage and
                            the trade-off curve
    one_run, one_run_batch  one training run with many canaries (Steinke et al. 2023, Mahloujifar et
                            al. 2024), for many settings at once
    one_run_worst           the exact worst case of one run, by a linear program and its dual
    independent_run         one run whose canaries do not touch each other: an assumption
    zero_runs               a finished model and held-out records, under an assumption
    canaries                included by fair coins, scored in JAX, guessed with abstention
    epsilon_star, mixtures  how much the losses of one trained model give away (Negoescu et al.
                            2023)
    sequential, wealth      audits that may be looked at, and stopped, at any time; their parts are
                            half_planes (a claim as lines), bets, epochs, pairing and inversion
    several                 several claims or attacks at once, corrected
    claims, verdict         a claim (μ, (ε, δ), or a mechanism's own certified curve), and whether
                            it is refuted

A lower bound comes with a confidence: the chance, over repetitions of the whole experiment, that it
does not exceed the truth. Epsilon* is an estimate and bounds no mechanism."""

from . import canaries, mixtures
from .bound import Bound
from .canaries import (
    coins,
    count_right,
    directions,
    gradient_scores,
    guess,
    insert,
    likelihood_ratio_scores,
    loss_scores,
)
from .claims import Claim, as_claim, zero_concentrated
from .epsilon_star import epsilon_star, epsilon_star_interval
from .independent_run import independent_run_level, independent_run_mu
from .many_runs import (
    Limits,
    advantage_lower_bound,
    epsilon_lower_bound,
    from_counts,
    lower_bounds,
    mu_lower_bound,
)
from .one_run import one_run_epsilon, one_run_level, one_run_mu, one_run_p_value
from .one_run_batch import (
    best_num_guesses,
    correct_guesses,
    one_run_levels,
    one_run_mu_of_several,
    one_run_mus,
)
from .sequential import Sequential
from .several import Several, averaged, fixed_sequence, simultaneous
from .verdict import Verdict, one_run_verdict, verdict
from .zero_runs import zero_run_epsilon

__all__ = [
    "Bound",
    "Claim",
    "Limits",
    "Sequential",
    "Several",
    "Verdict",
    "advantage_lower_bound",
    "as_claim",
    "averaged",
    "best_num_guesses",
    "canaries",
    "coins",
    "correct_guesses",
    "count_right",
    "directions",
    "epsilon_lower_bound",
    "epsilon_star",
    "epsilon_star_interval",
    "fixed_sequence",
    "from_counts",
    "gradient_scores",
    "guess",
    "independent_run_level",
    "independent_run_mu",
    "insert",
    "likelihood_ratio_scores",
    "loss_scores",
    "lower_bounds",
    "mixtures",
    "mu_lower_bound",
    "one_run_epsilon",
    "one_run_level",
    "one_run_levels",
    "one_run_mu",
    "one_run_mu_of_several",
    "one_run_mus",
    "one_run_p_value",
    "one_run_verdict",
    "simultaneous",
    "verdict",
    "zero_concentrated",
    "zero_run_epsilon",
]
