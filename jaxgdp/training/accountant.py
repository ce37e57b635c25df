"""An account of a run whose noise or rate changes on a schedule: how often each setting was used.

    # (noise multiplier, sampling probability) of each setting
    account = accountant.init([(1.0, 0.01), (2.0, 0.02)])
    account = accountant.step(account, 0)  # inside jit or scan: one step with the first of them
    account.mu(), account.epsilon(delta=1e-5)  # on the host, certified

The settings are fixed before the run; which one a step uses may be traced. A schedule that depends
on the data needs a filter instead (``filters``), or an odometer that reads the same counts
(``odometers.after``): the composition here is right only for a schedule that the data do not
influence."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .. import options
from ..bracket import Bracket
from ..deprecation import renamed_arguments
from ..mechanisms import Composition, SubsampledGaussian, compose
from ..numerics.shapes import Array, ArrayLike, Int
from ..numerics.validation import positive, probability
from .overflow import certified, question, single, without_steps

_MOST = 2**31 - 1


def fingerprint(settings: Iterable[tuple[float, float]]) -> np.ndarray:
    """Eight bytes of a hash of the settings, which tie counts to the settings they count."""
    packed = b"".join(struct.pack("<dd", *pair) for pair in settings)
    return np.frombuffer(hashlib.sha256(packed).digest()[:8], np.uint32)


@dataclass(frozen=True)
class Account:
    """Counts of steps by setting, by :func:`init`, :func:`step`, :func:`merge`; never changed.

    A pytree of two small integer arrays, so it goes through ``jit`` and ``scan`` and into any
    checkpoint of arrays. The settings are
    static: as Python floats they are never rounded to float32.

    Attributes:
        settings: tuple of (noise multiplier, sampling probability), all different.
        counts: int32, steps taken with each setting, and last the steps that named no setting.
        mark: fingerprint of the settings, uint32; counts restored into an account of other settings
            are found out by it.
    """

    settings: tuple[tuple[float, float], ...]
    counts: Int[Array, " settings"]
    mark: Int[Array, " words"]

    def checked_counts(self) -> np.ndarray:
        """Steps by setting, as int64.

        Raises:
            ValueError: the counts are not those of these settings, are negative, or some step named
                no setting.
        """
        if isinstance(self.counts, Tracer):
            raise ValueError(
                "an account is evaluated on the host only; inside jit use a plan's at()"
            )
        counts, number = np.asarray(self.counts).astype(np.int64), len(self.settings)
        if counts.shape != (number + 1,) or not np.array_equal(
            np.asarray(self.mark), fingerprint(self.settings)
        ):
            raise ValueError(
                f"counts must belong to the account's own {number} settings, got those of others:"
                f" {counts.tolist()}"
            )
        if np.any(counts < 0):
            raise ValueError(f"counts must be in [0, {_MOST}], got {counts.tolist()}")
        if counts[-1]:
            raise ValueError(
                f"setting must be in [0, {number - 1}] in every step, got {counts[-1]} steps with"
                " another one or a wrong count"
            )
        return counts[:-1]

    @property
    def num_steps(self) -> int:
        """Steps taken, all settings together."""
        return int(np.sum(self.checked_counts()))

    def composition(self) -> Composition | None:
        """The run so far as a :class:`jaxgdp.Composition`; None before the first step."""
        counts = self.checked_counts()
        used = zip(self.settings, counts, strict=True)
        parts = [(SubsampledGaussian(*pair), int(count)) for pair, count in used if count]
        return compose(parts) if parts else None

    @renamed_arguments(d="approximation")
    def spent(
        self,
        quantities: str | Iterable[str] = ("mu", "epsilon", "advantage"),
        *,
        overflow: float = 0.0,
        **asked: Any,
    ) -> dict[str, Bracket]:
        """Certified privacy of the run so far.

        Args:
            quantities: any of those of :func:`jaxgdp.measure`.
            overflow: as for :func:`plan_budget`, of the whole run.
            **asked: rtol, fpr_floor, adjacency, and the arguments of the quantities (delta,
                epsilon, fpr, approximation, prior, …): as for ``measure``, scalars.

        Returns:
            quantity → :class:`Bracket`; report the upper side, of "beta" and "bayes_risk" the lower
            one.

        Raises:
            ValueError: an argument is out of range or unknown, or the counts are not valid (see
                :meth:`checked_counts`).

        Example:
            >>> account = step(init([(2.0, 1.0)]), 0, count=4)
            >>> bool(account.spent("mu")["mu"].contains(1.0))
            True
        """
        names, asked = question(quantities, overflow, asked)
        run = self.composition()
        if run is not None:
            return certified(run, names, asked, overflow)[0]
        return {name: Bracket(*(np.float64(without_steps(name, asked)),) * 2) for name in names}

    def mu(self, fpr_floor: float = options.FPR_FLOOR, **asked: Any) -> Bracket:
        """μ over FPRs from the floor on; report the upper side."""
        return self.spent("mu", fpr_floor=fpr_floor, **asked)["mu"]

    def epsilon(self, delta: float = options.DELTA, **asked: Any) -> Bracket:
        """ε at δ in [0, 1], in nats; report the upper side. At δ = 1 it is 0, and at δ = 0, where
        only the largest loss counts, ∞ from the first step on.
        """
        if float(delta) not in (0.0, 1.0):
            return self.spent("epsilon", delta=delta, **asked)["epsilon"]
        question("epsilon", asked.pop("overflow", 0.0), asked)
        lost = np.float64(np.inf if self.num_steps and float(delta) == 0.0 else 0.0)
        return Bracket(lost, lost)

    def delta(self, epsilon: float = options.EPSILON, **asked: Any) -> Bracket:
        """δ at ε; report the upper side."""
        return self.spent("delta", epsilon=epsilon, **asked)["delta"]

    def advantage(self, **asked: Any) -> Bracket:
        """Membership advantage; report the upper side."""
        return self.spent("advantage", **asked)["advantage"]

    def tpr(self, fpr: float = options.FPR, **asked: Any) -> Bracket:
        """Largest TPR at an FPR; report the upper side."""
        return self.spent("tpr", fpr=fpr, **asked)["tpr"]


jax.tree_util.register_dataclass(Account, data_fields=["counts", "mark"], meta_fields=["settings"])


def _pair(setting: Any) -> tuple[float, float]:
    try:
        sigma, p = setting
    except (TypeError, ValueError):
        raise ValueError(
            f"setting must be a pair (noise_multiplier, sampling_prob), got {setting!r}"
        ) from None
    return single("noise_multiplier", sigma, positive), single("sampling_prob", p, probability)


def init(settings: Iterable[tuple[float, float]] = ()) -> Account:
    """An account of no steps.

    Args:
        settings: pairs (noise multiplier, sampling probability) that the run may use; equal ones
            are one.

    Returns:
        An :class:`Account`; ``account.settings`` lists the settings by index.

    Raises:
        ValueError: a setting is no pair, or out of range.

    Example:
        >>> init([(1.0, 0.01), (2.0, 0.01)]).num_steps
        0
    """
    pairs = tuple(dict.fromkeys(_pair(setting) for setting in settings))
    return Account(pairs, np.zeros(len(pairs) + 1, np.int32), fingerprint(pairs))


def step(account: Account, setting: ArrayLike, count: ArrayLike = 1) -> Account:
    """The account after one more step, or ``count`` more steps, with one setting.

    Args:
        account: what is known so far.
        setting: index of the setting, which may be traced; or a pair (noise multiplier, sampling
            probability), which is added where it is new (not inside ``jit``).
        count: whole number ≥ 0, may be traced: ``count=1 - state.spent`` adds nothing once a budget
            is spent.

    Returns:
        A new :class:`Account`. A traced index outside the settings, or a traced count that is
            negative or too large, is not lost: every later query raises.

    Raises:
        ValueError: an index outside the settings, a count that is negative or not whole, or more
            than 2³¹ − 1 steps, where they are known before tracing; a traced count that is not of
            an integer type.

    Example:
        >>> account = step(init(), (1.0, 0.01), count=100)
        >>> step(account, 0).num_steps
        101
    """
    if not isinstance(count, Tracer):
        count = np.asarray(count)
        if count.shape != () or count.dtype.kind not in "iub" or not 0 <= count <= _MOST:
            raise ValueError(f"count must be a whole number in [0, {_MOST}], got {count}")
    if isinstance(setting, (tuple, list)):
        pair = _pair(setting)
        if pair not in account.settings:
            account = _with_settings(account, account.settings + (pair,))
        setting = account.settings.index(pair)
    number = len(account.settings)
    if any(isinstance(x, Tracer) for x in (setting, count, account.counts)):
        index = jnp.asarray(setting)
        if index.shape != () or not jnp.issubdtype(index.dtype, jnp.integer):
            raise ValueError(f"setting must be the index of a setting or a pair, got {setting!r}")
        count = jnp.asarray(count)
        whole = jnp.issubdtype(count.dtype, jnp.integer) or count.dtype == bool
        if count.shape != () or not whole:
            raise ValueError(
                f"count must be a whole number in [0, {_MOST}], got dtype {count.dtype}, shape"
                f" {count.shape}"
            )
        counts = jnp.asarray(account.counts)
        known = (index >= 0) & (index < number)
        counted = count >= 0
        # (compared in its own type: int32 may not hold it)
        if count.dtype != bool and jnp.iinfo(count.dtype).max > _MOST:
            counted = counted & (count <= _MOST)
        added = jnp.where(counted, count, 1).astype(counts.dtype)
        counted = counted & (added <= _MOST - counts[jnp.where(known, index, number)])
        index = jnp.where(known & counted, index, number)
        counts = counts.at[index].add(jnp.where(counted, added, 1))
        return dataclasses.replace(account, counts=counts)
    index = np.asarray(setting)
    if index.shape != () or index.dtype.kind not in "iu" or not 0 <= index < number:
        raise ValueError(
            f"setting must be the index of one of {number} settings or a pair, got {setting!r}"
        )
    counts = np.array(account.counts)
    total = int(counts[index]) + int(count)
    if total > _MOST:
        raise ValueError(f"count must leave at most {_MOST} steps of a setting, got {total}")
    counts[index] = total
    return dataclasses.replace(account, counts=counts)


def _with_settings(account: Account, settings: tuple[tuple[float, float], ...]) -> Account:
    """The same counts in an account of more settings."""
    if isinstance(account.counts, Tracer):
        raise ValueError("setting must be an index inside jit: name all settings in init")
    counts = np.zeros(len(settings) + 1, np.int32)
    for i, count in enumerate(account.checked_counts()):
        counts[settings.index(account.settings[i])] = count
    return Account(settings, counts, fingerprint(settings))


def merge(one: Account, other: Account) -> Account:
    """The account of two runs, or parts of a run, on the same data: counts are added.

    It is for different steps. An account and its own checkpoint are the same steps: restore
    instead.

    Args:
        one, other: accounts.

    Raises:
        ValueError: the counts of one are not valid, or add up to more than 2³¹ − 1 of a setting.

    Example:
        >>> merge(step(init(), (1.0, 0.1)), step(init(), (2.0, 0.1), count=3)).num_steps
        4
    """
    settings = tuple(dict.fromkeys(one.settings + other.settings))
    merged = _with_settings(one, settings)
    for pair, count in zip(other.settings, other.checked_counts(), strict=True):
        merged = step(merged, settings.index(pair), int(count))
    return merged
