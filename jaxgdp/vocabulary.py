"""The public vocabulary: names that people bring along, and the right ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def keywords_only(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """A function of keywords alone, whose refusal of a positional call contains the call to write.

    Raises:
        TypeError: (when called) an argument was given by position.

    Example:
        >>> @keywords_only
        ... def epsilon(*, delta, mu):
        ...     return delta * mu
        >>> epsilon(0.5, 1e-5)
        Traceback (most recent call last):
        ...
        TypeError: epsilon() takes keywords only: write epsilon(delta=…, mu=…)
    """
    name = function.__name__
    names = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]

    @functools.wraps(function)
    def wrapper(*args: _Given.args, **given: _Given.kwargs) -> _Found:
        if args:
            call = ", ".join(f"{argument}=…" for argument in names)
            raise TypeError(f"{name}() takes keywords only: write {name}({call})")
        return function(**given)  # type: ignore[call-arg]

    return wrapper


# names that people bring along from papers and other libraries → ours
OTHERS: dict[str, str] = {
    "sample_rate": "sampling_prob",
    "sampling_rate": "sampling_prob",
    "sampling_probability": "sampling_prob",
    "subsampling_rate": "sampling_prob",
    "q": "sampling_prob",
    "p": "sampling_prob",
    "sigma": "noise_multiplier",
    "noise": "noise_multiplier",
    "noise_scale": "noise_multiplier",
    "steps": "num_steps",
    "iterations": "num_steps",
    "num_iterations": "num_steps",
    "num_compositions": "num_steps",
    "T": "num_steps",
    "epochs": "num_epochs",
    "n_epochs": "num_epochs",
    "num_examples": "dataset_size",
    "num_samples": "dataset_size",
    "n": "dataset_size",
    "batchsize": "batch_size",
    "eps": "epsilon",
    "epsilons": "epsilon",
    "target_epsilon": "epsilon",
    "deltas": "delta",
    "target_delta": "delta",
    "alpha": "fpr",
    "fprs": "fpr",
    "d": "approximation",
    "priors": "prior",
    "floor": "fpr_floor",
    "tolerance": "rtol",
    "tol": "rtol",
    "relation": "adjacency",
    "neighboring_relation": "adjacency",
    "quantity": "quantities",
}
# arguments that are given elsewhere → where
_ELSEWHERE = {
    "noise_multiplier": "jaxgdp.dpsgd(noise_multiplier=…, …)",
    "sampling_prob": "jaxgdp.dpsgd(…, sampling_prob=…)",
    "num_steps": "jaxgdp.dpsgd(…, num_steps=…)",
    "batch_size": "jaxgdp.run(…, batch_size=…)",
    "dataset_size": "jaxgdp.run(…, dataset_size=…)",
    "num_epochs": "jaxgdp.run(…, num_epochs=…)",
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'epsilon'?"`` for a name that is close to a known one, else "".

    Example:
        >>> did_you_mean("epsilom", ("mu", "epsilon"))
        "; did you mean 'epsilon'?"
    """
    import difflib

    known = tuple(known)
    ours = OTHERS.get(name)
    close = [ours] if ours in known else difflib.get_close_matches(name, known, 1, 0.5)
    close = close or [other for other in known if name.lower() and other.startswith(name)][:1]
    return f"; did you mean {close[0]!r}?" if close else ""


def unknown_argument(function: str, name: str, known: Iterable[str]) -> TypeError:
    """The error for an argument that a function does not have, with the one to write.

    Example:
        >>> print(unknown_argument("dpsgd", "sigma", ("noise_multiplier", "num_steps")))
        dpsgd() got an unexpected keyword argument 'sigma': write noise_multiplier=…
    """
    known = tuple(known)
    ours = OTHERS.get(name, name)
    text = f"{function}() got an unexpected keyword argument {name!r}"
    if ours in known:
        return TypeError(f"{text}: write {ours}=…")
    if ours in _ELSEWHERE:
        return TypeError(f"{text}: write {_ELSEWHERE[ours]}")
    return TypeError(text + did_you_mean(name, known))


def explain_arguments(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """A function whose error names the right argument for one that it does not have.

    Example:
        >>> @explain_arguments
        ... def dpsgd(noise_multiplier, sampling_prob):
        ...     return noise_multiplier
        >>> dpsgd(1.0, sample_rate=0.5)
        Traceback (most recent call last):
        ...
        TypeError: dpsgd() got an unexpected keyword argument 'sample_rate': write sampling_prob=…
    """
    known = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def wrapper(*args: _Given.args, **given: _Given.kwargs) -> _Found:
        for name in given:
            if name not in known:
                raise unknown_argument(function.__name__, name, known)
        return function(*args, **given)

    return wrapper
