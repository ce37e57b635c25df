"""An accountant for Opacus, without importing Opacus or torch.

    import jaxgdp.interop.opacus

    jaxgdp.interop.opacus.register()             # once; imports Opacus
    engine = PrivacyEngine(accountant="jaxgdp")  # make_private, make_private_with_epsilon, …

Opacus counts DP-SGD steps with Poisson sampling; neighbours are data sets with one record more or
less. Its own accountant "gdp" is on the unsafe side: 3.933 for a run whose ε is 4.283."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

import numpy as np

from .. import options
from ..deprecation import renamed_arguments, renamed_names
from ..mechanisms import Composition, Gaussian, SubsampledGaussian
from ..numerics.shapes import ArrayLike
from ..numerics.validation import ROUNDED_RATE, floor_rate, relative_width
from .safe_sides import MuAndRegret, MuOrRegret
from .spent import Spent

_KEYS = ("history", "mechanism")
_SAME_HISTORY = ("rdp", "prv", "gdp")  # Opacus' own accountants


class CertifiedAccountant(MuOrRegret):
    """Has the interface of Opacus' ``IAccountant`` and answers with the safe side of certified
    brackets.

    Args:
        rtol: requested relative width of the brackets, in [1e-8, 1).
        fpr_floor: default FPR floor of μ and regret, in [1e-300, 0.5).

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> accountant = CertifiedAccountant()
        >>> accountant.history = [(2.0, 1.0, 3)]
        >>> accountant.step(noise_multiplier=2.0, sample_rate=1.0)
        >>> accountant.history, len(accountant), round(accountant.get_epsilon(1e-5), 4)
        ([(2.0, 1.0, 4)], 4, 4.3772)
    """

    def __init__(self, rtol: float = options.RTOL, fpr_floor: float = options.FPR_FLOOR):
        self.rtol = float(relative_width("rtol", rtol))
        self.fpr_floor = float(floor_rate("fpr_floor", fpr_floor))
        self._history: list[tuple[float, float, int]] = []

    @property
    def history(self) -> list[tuple[float, float, int]]:
        """(noise multiplier, sample rate, number of steps), in order; may be assigned or changed in
        place.
        """
        return self._history

    @history.setter
    def history(self, value: Iterable) -> None:
        self._history = _checked_history(value)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one step.

        Args:
            noise_multiplier: σ ≥ 0.
            sample_rate: in [0, 1].

        Raises:
            ValueError: an argument is out of range; nothing is counted.
        """
        sigma, rate, _ = _checked_entry((noise_multiplier, sample_rate, 1), "step")
        if self._history and tuple(self._history[-1][:2]) == (sigma, rate):
            self._history[-1] = (sigma, rate, self._history[-1][2] + 1)
        else:
            self._history.append((sigma, rate, 1))

    def __len__(self) -> int:
        """Number of steps."""
        return sum(steps for _, _, steps in _checked_history(self._history))

    @classmethod
    def mechanism(cls) -> str:
        """Name under which a state is saved."""
        return "jaxgdp"

    def composition(self) -> Composition:
        """The steps so far as a mechanism, for :func:`jaxgdp.measure`, :func:`jaxgdp.tradeoff` and
        :func:`jaxgdp.report`.

        Raises:
            ValueError: there are no steps, or one without noise.
        """
        return self._spent().mechanism()

    def _spent(self) -> Spent:
        total = Spent()
        for sigma, rate, steps in _checked_history(self._history):
            if rate == 0.0:
                continue
            if sigma == 0.0:
                step = Spent(non_private=True)
            elif rate == 1.0:
                step = Spent({(Gaussian, (sigma,)): 1})
            else:
                step = Spent({(SubsampledGaussian, (sigma, rate)): 1})
            total = total.plus(step, steps)
        return total

    def get_epsilon(self, delta: float, **kwargs: Any) -> float:
        """Smallest ε known to hold at δ, an upper bound; ∞ without noise.

        Args:
            delta: δ in [0, 1].
            **kwargs: arguments of other accountants of Opacus (``alphas``, ``eps_error``, …), which
                are not needed.
        """
        del kwargs
        return self._spent().epsilon(delta, self.rtol)

    def get_delta(self, epsilon: float) -> float:
        """δ(ε), an upper bound."""
        return self._spent().delta(epsilon, self.rtol)

    def get_mu_and_regret(self, fpr_floor: float | None = None) -> MuAndRegret:
        """μ at FPRs down to the floor and the regret of reporting it, both upper bounds."""
        floor = self.fpr_floor if fpr_floor is None else fpr_floor
        return self._spent().mu_and_regret(floor, self.rtol)

    def get_advantage(self, **kwargs: Any) -> float:
        """Membership advantage max TPR − FPR, an upper bound; further arguments are not needed."""
        del kwargs
        return self._spent().advantage(self.rtol)

    @renamed_arguments(alpha="fpr")
    def get_beta(self, fpr: ArrayLike) -> Any:
        """Least FNR of any attack at an FPR, a lower bound; a float for a number, else an array."""
        return self._spent().beta(fpr, self.rtol)

    def get_tpr(self, fpr: ArrayLike) -> Any:
        """Largest TPR of any attack at an FPR, an upper bound; a float for a number, else an
        array.
        """
        return self._spent().tpr(fpr, self.rtol)

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """A function to attach to a ``DPOptimizer``: it counts a step at its noise multiplier and
        accumulated sample rate.
        """

        def hook(optimizer: Any) -> None:
            rate = sample_rate * optimizer.accumulated_iterations
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=rate)

        return hook

    def state_dict(self, destination: MutableMapping | None = None) -> MutableMapping:
        """The state, put into ``destination`` or a new dictionary."""
        state: MutableMapping = OrderedDict() if destination is None else destination
        state["history"] = copy.deepcopy(list(self._history))
        state["mechanism"] = self.mechanism()
        return state

    def load_state_dict(self, state_dict: Mapping) -> None:
        """Restore a state, replacing this one; those of Opacus' own accountants by their history.

        Args:
            state_dict: of this accountant, or of Opacus' "rdp", "prv" or "gdp", whose history holds
                the same (noise multiplier, sample rate, number of steps).

        Raises:
            ValueError: the state is empty, lacks a key, is of another mechanism, or its history is
                corrupted; this one stays as it is.
        """
        if not isinstance(state_dict, Mapping) or not state_dict:
            raise ValueError(
                f"state_dict must be a mapping with the keys {' and '.join(map(repr, _KEYS))}, got"
                f" {state_dict!r}"
            )
        for key in _KEYS:
            if key not in state_dict:
                raise ValueError(
                    f"state_dict must have the key {key!r}, got only {sorted(map(str, state_dict))}"
                )
        known = (self.mechanism(), *_SAME_HISTORY)
        if state_dict["mechanism"] not in known:
            raise ValueError(
                f"state_dict must be of mechanism {', '.join(map(repr, known))}, got"
                f" {state_dict['mechanism']!r}; where its history holds the same numbers, write"
                " accountant.history = state_dict['history']"
            )
        self._history = _checked_history(state_dict["history"])


def _checked_entry(entry: Any, place: str) -> tuple[float, float, int]:
    """One entry of a history, in plain numbers."""
    try:
        sigma, rate, steps = entry
    except (TypeError, ValueError):
        raise ValueError(
            f"{place} must be (noise_multiplier, sample_rate, num_steps), got {entry!r}"
        ) from None
    for name, value, valid, test in (
        ("noise_multiplier", sigma, "a finite number >= 0", lambda a: 0.0 <= a < math.inf),
        ("sample_rate", rate, "in [0, 1]", lambda a: 0.0 <= a <= 1.0 + ROUNDED_RATE),
        ("num_steps", steps, "a whole number >= 1", lambda a: a >= 1 and a == math.floor(a)),
    ):
        number = np.asarray(value)
        if number.shape != () or number.dtype.kind not in "iuf" or not test(float(number)):
            raise ValueError(f"{name} of {place} must be {valid}, got {value!r}")
    # (a sum of rates may exceed 1 by its rounding)
    return float(sigma), min(float(rate), 1.0), int(steps)


def _checked_history(history: Any) -> list[tuple[float, float, int]]:
    if isinstance(history, (str, bytes, Mapping)) or not isinstance(history, Iterable):
        raise ValueError(
            f"history must be a list of (noise_multiplier, sample_rate, num_steps), got {history!r}"
        )
    return [_checked_entry(entry, f"history[{i}]") for i, entry in enumerate(history)]


def register() -> None:
    """Make Opacus know this accountant as "jaxgdp"; to be called once, before ``PrivacyEngine``.

    From then on ``PrivacyEngine(accountant="jaxgdp")`` works, with ``make_private``,
    ``make_private_with_epsilon``, ``get_epsilon`` and checkpoints, and so does Opacus' own
    ``get_noise_multiplier`` with ``accountant="jaxgdp"``. Calling it again does nothing.

    Raises:
        ImportError: Opacus is not installed, or is too old to know other accountants.
    """
    try:
        from opacus.accountants import register_accountant
    except ImportError:
        raise ImportError(
            "Opacus 1.5 or later is needed to register an accountant with it: pip install opacus;"
            " without it, CertifiedAccountant counts steps by step() or history"
        ) from None
    register_accountant(CertifiedAccountant.mechanism(), CertifiedAccountant, force=True)


__getattr__ = renamed_names(__name__, GDPAccountant=CertifiedAccountant)
