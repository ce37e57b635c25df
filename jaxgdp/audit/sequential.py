"""Audits that are valid whenever one stops: look at the wealth after every run.

Scores come in pairs, one of a run with the record and one of a run without. The wealth starts at 1
and is a test supermartingale under the claim: its mean cannot rise, whatever pair of laws below the
claim's curve the scores have, so that it ever reaches 1/α with probability at most α (Ville 1939).
See the method page *Audits valid at any time* for the proof.

State holds whole numbers (counts above thresholds), thresholds, and the bets. The wealth is a
function of these alone and is rounded down, in 32 bits and in 64."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..numerics import namespace as xp
from ..numerics.provenance import provenance
from ..numerics.shapes import ArrayLike
from ..numerics.validation import checked
from . import epochs, inversion
from .bound import Bound
from .claims import as_claim
from .epochs import LOG_WEIGHTS, WINDOW, Epoch
from .half_planes import HalfPlanes
from .pairing import advance, new_hits
from .scores import confidence_level
from .wealth import Counts, log_wealth, path

_LARGEST = 80.0  # logarithm of a wealth that is reported as such, also in 32 bits
_CHUNK = 20_000  # scores whose wealth is followed at a time
_WAITING = 256  # scores of one class that wait for the other inside of a compiled function


@jax.tree_util.register_pytree_with_keys_class
class Sequential:
    """An audit of a claim that may be looked at, and stopped, at any time.

    ``audit = audit.update(member_scores, nonmember_scores)`` returns the audit with more scores.
    Pairs are made in the order in which scores come; what has no partner yet waits. The two runs of
    a pair are independent of each other, and larger scores mean "more likely a member". Later
    scores may come from an attack that was chosen by the earlier ones.

    An instance is a pytree: it goes through ``jax.jit``, ``jax.vmap`` (of an audit with leading
    axes, too), ``jax.lax.scan`` and checkpoints.

    Args:
        claim: a mechanism or composition, a :class:`jaxgdp.TradeoffCurve`, a number μ, a pair (ε,
            δ), :func:`jaxgdp.audit.zero_concentrated` for ρ, or a :class:`jaxgdp.audit.Claim`.
        confidence: in [0.5, 1 - 1e-9]: of each of ``refuted``, ``mu_lower``, ``epsilon_lower`` and
            ``advantage_lower``.
        delta: δ of ``epsilon_lower``, in [0, 1).

    Raises:
        ValueError: no claim, or a number out of range.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> audit = Sequential(1.0)  # 1-GDP, audited with twice as much
        >>> for _ in range(100):
        ...     audit = audit.update(2.0 + rng.standard_normal(1), rng.standard_normal(1))
        ...     if audit.refuted:
        ...         break
        >>> audit.refuted, audit.pairs < 100, bool(audit.mu_lower > 1.0)
        (True, True, True)
    """

    text: str
    confidence: float
    delta: float
    lines: HalfPlanes
    epoch: Epoch
    counts: Counts

    def __init__(self, claim: Any, confidence: float = 0.95, delta: float = 1e-5):
        stated = as_claim(claim)
        self.text = stated.text
        self.confidence = float(confidence_level("confidence", confidence))
        self.delta = _delta(delta)
        self.lines = stated.half_planes()
        self.epoch = epochs.idle()
        self.counts = Counts(
            pairs=np.array(0),
            above=np.zeros((*LOG_WEIGHTS.shape[:2], 2), int),
            window=np.zeros((2, WINDOW)),
            waiting=np.zeros(_WAITING),
            num_waiting=np.array(0),
            dropped=np.array(0),
            peak=np.array(0.0),
        )

    def tree_flatten_with_keys(self):
        """Children and static parts, for JAX."""
        names = ("lines", "epoch", "counts")
        children = tuple((jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in names)
        return children, (self.text, self.confidence, self.delta)

    @classmethod
    def tree_unflatten(cls, static: tuple[str, float, float], children: Any) -> Sequential:
        """The reverse of :meth:`tree_flatten_with_keys`."""
        made = object.__new__(cls)
        made.text, made.confidence, made.delta = static
        made.lines, made.epoch, made.counts = children
        return made

    def _with(self, epoch: Epoch, counts: Counts) -> Sequential:
        return self.tree_unflatten(
            (self.text, self.confidence, self.delta), (self.lines, epoch, counts)
        )

    def update(self, member_scores: ArrayLike, nonmember_scores: ArrayLike) -> Sequential:
        """The audit with more scores: any number of each, also none.

        Args:
            member_scores: one for each run with the record, larger the more likely; shape (n₁,) or
                a scalar.
            nonmember_scores: likewise without it, shape (n₀,).

        Returns:
            A new :class:`Sequential`. Inside of a compiled function, 256 scores at most can wait
            for a partner; more are dropped and counted.

        Raises:
            ValueError: a NaN (inside of a compiled function a NaN counts against refutation), or no
                numbers.
        """
        found = advance(self.lines, self.epoch, self.counts, member_scores, nonmember_scores)
        return self._with(*found)

    def path(self, member_scores: ArrayLike, nonmember_scores: ArrayLike) -> np.ndarray:
        """log of the wealth after every pair that an update with these scores would make.

        Args:
            member_scores: as for :meth:`update`.
            nonmember_scores: as for :meth:`update`.

        Returns:
            Shape (new pairs,); for figures, and to look at every pair of a file.

        Example:
            >>> audit = Sequential(1.0)
            >>> path = audit.path([2.0, 3.0, 1.0, 2.0], [0.0, 1.0, -1.0, 0.5])
            >>> [round(float(x), 3) for x in path]
            [-0.0, -0.0, -0.0, 0.023]
        """
        members, nonmembers = np.ravel(member_scores), np.ravel(nonmember_scores)
        audit, found = self, [np.zeros(0)]
        for first in range(0, max(len(members), len(nonmembers), 1), _CHUNK):
            part = members[first : first + _CHUNK], nonmembers[first : first + _CHUNK]
            after = jax.tree.map(np.asarray, audit.update(*part))
            found.append(path(inversion.factors_of(after), *new_hits(audit.counts, after, *part)))
            audit = after
        return np.concatenate(found)

    @property
    def log_wealth(self) -> Any:
        """log of the wealth now, from below; worked out in doubles outside of JAX's functions."""
        if _traced(self):
            return log_wealth(self.epoch.factors, self.counts.above, self.counts.pairs)
        return _plain(self._each(inversion.exact_log_wealth), float)

    @property
    def wealth(self) -> Any:
        """The wealth now, from below, at most e⁸⁰: evidence against the claim; starts at 1."""
        return xp.exp(xp.minimum(self.log_wealth, _LARGEST))

    @property
    def refuted(self) -> Any:
        """Whether the wealth reached 1/(1 − confidence) now or at the end of any update."""
        level = -np.log1p(-self.confidence) * (1.0 + 1e-12)
        if _traced(self):
            return jnp.maximum(self.log_wealth, self.counts.peak) >= level * (1.0 + 1e-6)
        found = np.maximum(self.log_wealth, np.asarray(self.counts.peak)) >= level
        return found if np.ndim(found) else bool(found)

    @property
    def pairs(self) -> Any:
        """How many pairs of scores have been used."""
        return self.counts.pairs if _traced(self) else _plain(self.counts.pairs, int)

    @property
    def waiting(self) -> Any:
        """How many scores wait for a partner."""
        waiting = abs(self.counts.num_waiting)
        return waiting if _traced(self) else _plain(waiting, int)

    @property
    def dropped(self) -> Any:
        """How many scores found no room to wait, inside of compiled functions."""
        return self.counts.dropped if _traced(self) else _plain(self.counts.dropped, int)

    @property
    def mu_lower(self) -> Any:
        """Lower bound on μ: with the confidence, and whenever one stops, μ is at least this."""
        return self._bound(inversion.mu, "mu")

    @property
    def epsilon_lower(self) -> Any:
        """Lower bound on ε at ``delta``; ``epsilon_lower(1e-6)`` is the bound at another δ."""
        return self._epsilon(self.delta, AtAnyDelta)

    @property
    def advantage_lower(self) -> Any:
        """Lower bound on the advantage, max TPR − FPR."""
        return self._bound(inversion.advantage, "advantage")

    def _epsilon(self, delta: float, kind: type[Bound] = Bound) -> Any:
        delta = _delta(delta)
        found = self._bound(
            lambda audit: inversion.epsilon(audit, delta), f"epsilon(delta = {delta:g})", kind
        )
        if isinstance(found, AtAnyDelta):
            found.audit = self
        return found

    def _bound(self, function: Any, quantity: str, kind: type[Bound] = Bound) -> Any:
        if _traced(self):
            raise ValueError(
                f"the lower bound on {quantity} is worked out on the host: return the audit from"
                " the compiled function and read the bound there (refuted and wealth can be read"
                " inside)"
            )
        found = self._each(function)
        return found if found.ndim else kind(float(found), quantity, confidence=self.confidence)

    def _each(self, function: Any) -> np.ndarray:
        """A function of every audit along the leading axes, in doubles."""
        host = jax.tree.map(np.asarray, self)
        lead = host.counts.pairs.shape
        if not lead:
            return np.asarray(function(host))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[len(lead) :]), host)
        rows = [
            function(jax.tree.map(lambda x, i=i: x[i], flat)) for i in range(int(np.prod(lead)))
        ]
        return np.reshape(np.array(rows), lead)

    @property
    def line(self) -> str:
        """Where the audit stands, in one line."""
        level = f"{100.0 * self.confidence:g} %"
        alone = f", {self.waiting} scores without a partner" if self.waiting else ""
        needed = 1.0 / (1.0 - self.confidence)
        facts = (
            f"{self.pairs} pairs{alone}; wealth {self.wealth:.4g} of {needed:.4g};"
            f" mu >= {self.mu_lower:.4g}"
        )
        if self.refuted:
            return f"A BUG IS PROVEN: {self.text} is refuted at confidence {level} ({facts})"
        return f"consistent so far: {self.text} is not refuted at confidence {level} ({facts})"

    def to_dict(self) -> dict[str, Any]:
        """Where the audit stands, ready for JSON."""
        return {
            **provenance(f"whether scores refute {self.text}", None),
            "claim": self.text,
            "refuted": self.refuted,
            "verdict": self.line,
            "confidence": self.confidence,
            "method": "sequential",
            "pairs": self.pairs,
            "waiting": self.waiting,
            "dropped": self.dropped,
            "wealth": float(self.wealth),
            "mu_lower_bound": float(self.mu_lower),
            "epsilon_lower_bound": float(self.epsilon_lower),
            "delta": self.delta,
            "advantage_lower_bound": float(self.advantage_lower),
        }

    def to_json(self) -> str:
        """:meth:`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def __str__(self) -> str:
        return self.line

    def __repr__(self) -> str:
        return f"Sequential({self.text}, confidence={self.confidence:g})"


class AtAnyDelta(Bound):
    """A bound on ε at one δ; called with another δ, it is the bound there."""

    audit: Sequential

    def __call__(self, delta: float) -> Bound:
        return self.audit._epsilon(delta)


def _delta(delta: float) -> float:
    return float(checked("delta", delta, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0)))


def _traced(tree: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def _plain(value: Any, kind: type) -> Any:
    value = np.asarray(value)
    return value if value.ndim else kind(value)
