"""A finished model and two sets of records, some used for training and some not: zero new runs.

Memberships were not drawn by the auditor, and records of the two sets may differ for reasons that
have nothing to do with the model. Then no bound holds without an assumption: a model that never saw
any data is ε-DP with ε = 0, and an attacker who looks at the records alone tells the sets apart as
well as they differ.

The assumption here bounds the difference. Given all records X, memberships S₁ … S_m are
independent, and the odds Pr[Sᵢ = 1 | X]/Pr[Sᵢ = 0 | X] of every record that a guess is made for lie
between e^−γ and e^γ. Then, given the model, the records and S₁ … Sᵢ₋₁, the odds of Sᵢ are those
odds times a ratio of probabilities of the model with and without one record, within e^±ε: each
guess is right with probability at most q = 1/(1 + e^−(ε+γ)), whatever the ones before. So the
number of right ones is dominated by Bin(r, q), and ε is at least the bound of one run with fair
coins, at δ = 0, minus γ.

The proof is that of Steinke et al. 2023 with other odds. For δ > 0 and trade-off curves no proof of
this kind is known to us. Odds that are estimated from the data (propensity scores: Cebere et al.
2026) make the result an estimate, and so does a generator in place of held-out data (Kazmi et al.
2024)."""

from __future__ import annotations

from ..numerics.validation import nonnegative
from .bound import LOWER, Bound
from .one_run import one_run_epsilon


def zero_run_epsilon(
    num_records: int, num_guesses: int, num_correct: int, shift: float, confidence: float = 0.95
) -> Bound:
    """Lower bound on ε of pure DP from a finished model, if the shift between the sets is bounded.

    Args:
        num_records: m ≥ 1, members and others together.
        num_guesses: r, 1 ≤ r ≤ m, fixed before looking.
        num_correct: v, 0 ≤ v ≤ r, of them right.
        shift: γ ≥ 0 in nats: an assumption that the scores cannot check.
        confidence: in [0.5, 1 - 1e-9].

    Returns:
        A :class:`jaxgdp.audit.Bound`: if the assumption holds, then with the confidence ε is at
        least this; 0 where nothing is proven.

    Raises:
        ValueError: a number out of range.

    Example:
        >>> print(zero_run_epsilon(1000, 200, 190, shift=0.5))
        epsilon(delta = 0) >= 1.89... with confidence 95 %; if membership odds given the records ...
    """
    shift = float(nonnegative("shift", shift))
    found = one_run_epsilon(num_records, num_guesses, num_correct, 0.0, confidence)
    # rounded down
    value = max(0.0, float(found) - shift - 1e-12 * (float(found) + shift))
    caveat = f"if membership odds given the records lie within a factor e^{shift:g}"
    return Bound(value, "epsilon(delta = 0)", LOWER, found.confidence, caveat, {"shift": shift})
