"""Arguments that many functions and commands share: meaning, default and range of each, written
once. Docstrings, the help of the command line and messages of errors read them here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from . import options
from .adjacency import Adjacency

_PLACE = re.compile(r"^( *)\{(\w+(?:, \w+)*)\}$", re.M)
_WIDTH = 100
_LETTERS = {
    "μ": "mu",
    "Δ": "Delta",
    "ε": "epsilon",
    "δ": "delta",
    "α": "alpha",
    "σ": "sigma",
    "ρ": "rho",
}
_SIGNS = {"≥": ">=", "≤": "<="}
_NAMES = str.maketrans(_LETTERS | _SIGNS | {"½": "1/2", "−": "-", "“": '"', "”": '"', "–": "-"})
_BACK = {name: letter for letter, name in (_LETTERS | _SIGNS).items()}


class Range(NamedTuple):
    """The range of an argument: in words, and as a test of a number or an array."""

    words: str
    holds: Callable[[Any], Any]


def _is_whole(a: Any) -> Any:
    import numpy as np  # (here: the command line's help does without)

    return (a >= 1.0) & (a == np.floor(a)) & (a <= 2.0**53)


POSITIVE = Range("a finite number > 0", lambda a: a > 0.0)
PROBABILITY = Range("in (0, 1]", lambda a: (a > 0.0) & (a <= 1.0))
OPEN_UNIT = Range("in (0, 1)", lambda a: (a > 0.0) & (a < 1.0))
RELATIVE_WIDTH = Range("in [1e-8, 1)", lambda a: (a >= 1e-8) & (a < 1.0))
FLOOR_RATE = Range("in [1e-300, 0.5)", lambda a: (a >= 1e-300) & (a < 0.5))
WHOLE = Range("a whole number >= 1", _is_whole)


class Argument(NamedTuple):
    """The meaning of an argument.

    Attributes:
        meaning: a phrase; for the argument of a quantity, the noun before "of that quantity".
        default: the value where nothing is given; None where there is none.
        range: valid values; None where the function that takes it decides.
    """

    meaning: str
    default: Any = None
    range: Range | None = None

    def __str__(self) -> str:
        return self.meaning if self.range is None else f"{self.meaning}, {self.range.words}"


# ways to draw the batches of a run (``jaxgdp.run``)
SAMPLERS = (
    "poisson", "opacus", "shuffled", "random_allocation", "deterministic", "fixed_size", "unknown",
)  # fmt: skip
_RELATIONS = ", ".join(each.value for each in Adjacency)
ARGUMENTS: dict[str, Argument] = {
    "noise_multiplier": Argument(
        "standard deviation of the noise over the clipping norm", None, POSITIVE
    ),
    "sampling_prob": Argument("probability that a record is in a batch", 1, PROBABILITY),
    "num_steps": Argument("number of steps", None, WHOLE),
    "records_per_user": Argument("most records of one user: neighbours differ in a user", 1, WHOLE),
    "num_epochs": Argument("number of epochs", 1, WHOLE),
    "dataset_size": Argument("number of records", None, WHOLE),
    "batch_size": Argument("(expected) number of records in a batch", None, WHOLE),
    "truncated_batch_size": Argument(
        "largest number of records in a batch of truncated_poisson", None, WHOLE
    ),
    "rtol": Argument(
        "relative width asked of every bracket (of the regret: a width of rtol/10)",
        options.RTOL,
        RELATIVE_WIDTH,
    ),
    "fpr_floor": Argument("smallest FPR at which μ must hold", options.FPR_FLOOR, FLOOR_RATE),
    "adjacency": Argument(f"neighbouring relation: {_RELATIONS}", options.ADJACENCY),
    "delta": Argument("δ", options.DELTA, OPEN_UNIT),
    "epsilon": Argument("ε (in nats)", options.EPSILON),
    "fpr": Argument("FPR", options.FPR, OPEN_UNIT),
    "approximation": Argument("probability d that is set aside", options.APPROXIMATION, OPEN_UNIT),
    "prior": Argument("prior probability that the record is absent", options.PRIOR, OPEN_UNIT),
    "baseline": Argument("success of the best attack that ignores the output", None, OPEN_UNIT),
    "executor": Argument(
        "what computes: eager (NumPy), compiled (JAX), product (JAX without an FFT) or float32"
        " (devices without 64 bits)"
    ),
}


def spelled_out(text: str) -> str:
    """The text with Greek letters and signs by name, for terminals that may lack them.

    Example:
        >>> spelled_out("μ ≥ 0")
        'mu >= 0'
    """
    return text.translate(_NAMES)


def greek(text: str) -> str:
    """The text with names of Greek letters and signs replaced by these.

    Example:
        >>> greek("mu, FPR and FNR >= 1e-10")
        'μ, FPR and FNR ≥ 1e-10'
    """
    names = "|".join(_LETTERS.values())
    return re.sub(rf"\b({names})\b|[<>]=", lambda found: _BACK[found.group()], text)


def of(noun: str, names: str) -> str:
    """A noun and whose it is.

    Example:
        >>> of("FPR", "tpr and beta"), of("prior probability", "bayes_risk")
        ('FPR of tpr and beta', 'prior probability, of bayes_risk')
    """
    return f"{noun}{',' if ' ' in noun else ''} of {names}"


def sentence(phrase: str) -> str:
    """A phrase as a sentence without Greek letters.

    Example:
        >>> sentence("δ of epsilon")
        'Delta of epsilon.'
    """
    text = spelled_out(phrase)
    return f"{text[:1].upper()}{text[1:]}."


def shown(value: Any) -> str:
    """A default as people write it.

    Example:
        >>> shown(1e-10), shown(1), shown((0.001, 1e-05))
        ('1e-10', '1', '1e-3,1e-5')
    """
    if isinstance(value, (tuple, list)):
        return ",".join(map(shown, value))
    text = f"{value:g}" if isinstance(value, float) else str(value)
    text = re.sub(r"^0\.(0*)1$", lambda found: f"1e-{len(found[1]) + 1}", text)
    return text.replace("e-0", "e-") if text != "1e-1" else "0.1"


def filled(text: str, more: Mapping[str, str] | None = None) -> str:
    """A docstring with every line ``{rtol, fpr_floor}`` replaced by their meanings, a line each.

    Args:
        text: the docstring.
        more: name → meaning, of those that mean something special.

    Example:
        >>> print(filled("Args:\\n    {fpr_floor}"))
        Args:
            fpr_floor: smallest FPR at which μ must hold, in [1e-300, 0.5); default 1e-10.
    """

    def lines(found: re.Match[str]) -> str:
        indent, names = found[1], found[2].split(", ")
        entries = [
            textwrap.fill(
                f"{name}: {_entry(name, (more or {}).get(name))}.",
                _WIDTH,
                initial_indent=indent,
                subsequent_indent=indent + "    ",
                break_on_hyphens=False,
            )
            for name in names
        ]
        return "\n".join(entries)

    return _PLACE.sub(lines, text)


def _entry(name: str, meaning: str | None) -> str:
    argument = ARGUMENTS[name]
    argument = argument._replace(meaning=meaning or argument.meaning)
    default = "" if argument.default is None else f"; default {shown(argument.default)}"
    return f"{argument}{default}"
