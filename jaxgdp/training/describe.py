"""Which sampler a data loader has, and what may be claimed of batches that it draws.

Loaders are told by the names and public attributes of their classes: no framework is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .pipelines import Drawn, of_grain, of_tensorflow

POISSON_CLASSES = ("UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler")
_SHUFFLED = (
    "each record is in one batch an epoch, at a secret position: account for it with"
    " jaxgdp.Shuffled; the numbers of Poisson sampling are not proven for it, and are too small"
)
_POISSON = (
    "each step takes every record with one probability, independently: account for it with"
    " jaxgdp.dpsgd"
)
_IN_ORDER = (
    "each record is in a batch that everybody knows: account for it with jaxgdp.Deterministic"
)
_UNKNOWN = (
    "how batches are drawn is not known, and no amplification by sampling may be claimed: account"
    " for every step with sampling_prob = 1"
)


@dataclass(frozen=True)
class LoaderDescription:
    """What a loader does; build it with :func:`describe`.

    Attributes:
        sampler: a name of ``jaxgdp.samplers``: "poisson", "shuffled" or "deterministic"; "unknown"
            where it is none of these, or cannot be told.
        claim: what may be claimed, in words.
        dataset_size: records, None where it is not known.
        batch_size: records of a batch, expected ones for Poisson sampling, None where not known.
        sampling_prob: of Poisson sampling, else None.
        caveats: what else has to hold, or changes the guarantee, in words.
    """

    sampler: str
    claim: str
    dataset_size: int | None = None
    batch_size: int | None = None
    sampling_prob: float | None = None
    caveats: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join([f"{self.sampler}: {self.claim}", *self.caveats])


def _size(value: Any) -> int | None:
    try:
        return int(len(value))
    except (TypeError, NotImplementedError):
        return None


def _is(value: Any, *names: str) -> bool:
    """Whether a value is of a class of that name, or of one derived from it."""
    return any(kind.__name__ in names for kind in type(value).__mro__)


def _last_batch(drop_last: Any, size: int | None, batch: int | None) -> tuple[str, ...]:
    """What a last batch of another size means."""
    if size is None or batch is None or size % batch == 0:
        return ()
    if drop_last:
        return (
            f"the last {size % batch} records of an epoch are dropped: other ones in each epoch if"
            " it is shuffled, which no bracket relies on; in a fixed order always the same",
        )
    return (
        f"the last batch of an epoch has {size % batch} records: divide by {batch} all the same, as"
        " a mean over fewer records needs more noise",
    )


def _of_sampler(sampler: Any, size: int | None) -> tuple[str, str, tuple[str, ...]]:
    """(sampler, claim, caveats) of what draws single records."""
    if _is(sampler, "WeightedRandomSampler"):
        return "unknown", _UNKNOWN, ("records are drawn with weights, some more often than others",)
    if _is(sampler, "RandomSampler"):
        if getattr(sampler, "replacement", False):
            told = "records are drawn with replacement: one may be in a batch more than once"
            return "unknown", _UNKNOWN, (told,)
        number = getattr(sampler, "num_samples", size)
        if size is not None and number is not None and number > size:
            return "unknown", _UNKNOWN, ("an epoch goes through the data more than once",)
        return "shuffled", _SHUFFLED, ()
    if _is(sampler, "DistributedSampler"):
        told = ("each device has a part of the batch; ends of an epoch may repeat records",)
        if getattr(sampler, "shuffle", False):
            return "shuffled", _SHUFFLED, told
        return "deterministic", _IN_ORDER, told
    if _is(sampler, "SequentialSampler"):
        return "deterministic", _IN_ORDER, ()
    return "unknown", _UNKNOWN, (f"its sampler is a {type(sampler).__name__}",)


def _poisson(drawn: Any, size: int | None) -> LoaderDescription:
    rate = getattr(drawn, "sample_rate", None)
    caveats = (
        "divide by the expected number of records, not by the number drawn",
        "an empty batch has to take a step with noise alone",
    )
    if rate is None:
        return LoaderDescription("unknown", _UNKNOWN, size, caveats=("its rate cannot be read",))
    rate = float(rate)
    batch = None if size is None else round(rate * size)
    return LoaderDescription("poisson", _POISSON, size, batch, rate, caveats)


def _torch(loader: Any) -> LoaderDescription:
    size = _size(getattr(loader, "dataset", None))
    drawn = getattr(loader, "batch_sampler", None)
    for each in (drawn, getattr(loader, "sampler", None)):
        if each is not None and _is(each, *POISSON_CLASSES):
            return _poisson(each, size)
    batch = getattr(loader, "batch_size", None)
    if drawn is not None and not _is(drawn, "BatchSampler"):
        told = (f"its batches come from a {type(drawn).__name__}",)
        return LoaderDescription("unknown", _UNKNOWN, size, caveats=told)
    inner = getattr(drawn, "sampler", None) or getattr(loader, "sampler", None)
    if drawn is not None and batch is None:
        batch = getattr(drawn, "batch_size", None)
    sampler, claim, caveats = _of_sampler(inner, size)
    drop_last = getattr(loader, "drop_last", False) or getattr(drawn, "drop_last", False)
    last = _last_batch(drop_last, size, batch) if sampler != "unknown" else ()
    return LoaderDescription(sampler, claim, size, batch, caveats=(*caveats, *last))


def _own(loader: Any) -> LoaderDescription | None:
    """Samplers of this package."""
    if _is(loader, "PoissonSampler"):
        rate, size = getattr(loader, "sampling_prob", None), getattr(loader, "dataset_size", None)
        if rate is not None:
            return LoaderDescription("poisson", _POISSON, size, None, float(rate))
    if _is(loader, "ShuffleSampler"):
        return LoaderDescription("shuffled", _SHUFFLED, getattr(loader, "dataset_size", None))
    return None


def _pipeline(drawn: Drawn) -> LoaderDescription:
    claims = {"shuffled": _SHUFFLED, "deterministic": _IN_ORDER, "unknown": _UNKNOWN}
    size, batch = drawn.dataset_size, drawn.batch_size
    last = () if drawn.sampler == "unknown" else _last_batch(drawn.drop_last, size, batch)
    told = (*drawn.caveats, *last)
    return LoaderDescription(drawn.sampler, claims[drawn.sampler], size, batch, caveats=told)


_PIPELINES = {"grain": of_grain, "tensorflow": of_tensorflow}


def describe(loader: Any) -> LoaderDescription:
    """Which sampler a data loader has, and what may be claimed of it.

    Args:
        loader: a data loader of torch or of Opacus, a data set or a sampler of grain, a data set of
            TensorFlow; anything else is "unknown", which is safe.

    Returns:
        A :class:`LoaderDescription`. What cannot be read from public attributes is "unknown".

    Example:
        >>> print(describe([[1, 2], [3, 4]]).sampler)
        unknown
    """
    own = _own(loader)
    if own is not None:
        return own
    if hasattr(loader, "batch_sampler") or (
        hasattr(loader, "sampler") and hasattr(loader, "dataset")
    ):
        return _torch(loader)
    module = type(loader).__module__.partition(".")[0]
    if module in _PIPELINES:
        return _pipeline(_PIPELINES[module](loader))
    return LoaderDescription("unknown", _UNKNOWN, caveats=(f"it is a {type(loader).__name__}",))
