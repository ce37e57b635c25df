"""How pipelines of grain and tf.data draw records, as far as public attributes tell.

Pipelines of grain have public ``parents``, and texts with their arguments. tf.data publishes
neither what a data set was made from nor the size of a shuffle buffer.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

# of one record each, or of what is read ahead: which batch a record is in stays the same
_HARMLESS = (
    "MapMapDataset", "MapIterDataset", "MapWithIndexMapDataset", "MapWithIndexIterDataset",
    "RandomMapMapDataset", "RandomMapIterDataset", "PrefetchIterDataset",
    "ThreadPrefetchIterDataset", "ProcessPrefetchIterDataset", "MultiprocessPrefetchIterDataset",
    "WithOptionsIterDataset", "_WithSeedMapDataset", "_WithSeedIterDataset",
)  # fmt: skip
_SOURCES = ("SourceMapDataset", "RangeMapDataset")
_SEED = (
    "the order follows from a seed of 32 bits, which has to be drawn anew for every run and kept"
    " secret: whoever can try all seeds may find the order"
)
_MOST = 1000  # stages of a pipeline that are followed


class Drawn(NamedTuple):
    """How a pipeline draws records.

    Attributes:
        sampler: "shuffled", "deterministic" or "unknown".
        dataset_size: records, None where it is not known.
        batch_size: records of a batch, None where it is not known.
        drop_last: whether a last batch of fewer records is dropped.
        caveats: what else has to hold, or why nothing is known, in words.
    """

    sampler: str
    dataset_size: int | None = None
    batch_size: int | None = None
    drop_last: bool = False
    caveats: tuple[str, ...] = ()


def _argument(text: str, name: str) -> str | None:
    found = re.search(rf"\b{name}=(\w+)", text)
    return None if found is None else found[1]


def _whole(text: str, name: str) -> int | None:
    value = _argument(text, name)
    return int(value) if value is not None and value.isdigit() else None


def _unknown(reason: str, size: int | None = None) -> Drawn:
    return Drawn("unknown", size, caveats=(reason,))


def of_grain(loader: Any) -> Drawn:
    """How a data set, a sampler or a loader of grain draws records.

    Args:
        loader: of grain. A ``DataLoader`` keeps its sampler to itself: give the sampler.

    Example:
        >>> kind = type("SequentialSampler", (), {"__repr__": lambda s: "S(num_records=9)"})
        >>> of_grain(kind()).sampler, of_grain(kind()).dataset_size
        ('deterministic', 9)
    """
    name, text = type(loader).__name__, repr(loader)
    if name == "DataLoader":
        return _unknown("its sampler is not public: describe the sampler that it was given")
    if name not in ("IndexSampler", "SequentialSampler"):
        return _of_stages(loader)
    size, shards = _whole(text, "num_records"), _whole(text, "shard_count")
    told = () if shards in (None, 1) else (f"each of {shards} devices has a part of the records",)
    if name == "SequentialSampler" or _argument(text, "shuffle") == "False":
        return Drawn("deterministic", size, caveats=told)
    if _argument(text, "shuffle") != "True":
        return _unknown("whether it shuffles cannot be read", size)
    if told:
        return Drawn("unknown", size, caveats=(*told, "which records a device has does not change"))
    return Drawn("shuffled", size, caveats=(_SEED,))


def _of_stages(last: Any) -> Drawn:
    """A chain of stages of grain, from the last one to the source."""
    batch, dropped, size, shuffled, repeated = None, False, None, False, False
    stage = last
    for _ in range(_MOST):
        name, text = type(stage).__name__, str(stage)
        if name in ("BatchMapDataset", "BatchIterDataset"):
            if shuffled:
                return _unknown("batches are shuffled, and not the records in them")
            if batch is not None:
                return _unknown("records are put into batches more than once")
            batch = _whole(text, "batch_size")
            dropped = _argument(text, "drop_remainder") == "True"
        elif name == "ShuffleMapDataset":
            shuffled, size = True, len(stage)
        elif name in ("RepeatMapDataset", "RepeatIterDataset"):
            if shuffled:
                return _unknown("several epochs are shuffled together: a record may repeat")
            repeated = True
        elif name in _SOURCES:
            size = len(stage) if size is None else size
            told = (_SEED,) if shuffled else ()
            if repeated and batch is not None and size % batch:
                told += ("batches run on from one epoch into the next",)
            return Drawn("shuffled" if shuffled else "deterministic", size, batch, dropped, told)
        elif name not in _HARMLESS:
            return _unknown(f"what its {name} does to batches is not known")
        parents: tuple[Any, ...] = tuple(getattr(stage, "parents", ()))
        if len(parents) != 1:
            return _unknown(f"its {name} has {len(parents)} sources")
        (stage,) = parents
    return _unknown("it has too many stages")


def of_tensorflow(loader: Any) -> Drawn:
    """How a data set of tf.data draws records: unknown, and what would have to be looked up.

    Example:
        >>> of_tensorflow(object()).sampler
        'unknown'
    """
    told = (
        f"tf.data does not publish what its {type(loader).__name__} was made from",
        "shuffled before batches are made, with a buffer at least as large as the data, anew in"
        " every epoch and before it is repeated, it is jaxgdp.Shuffled; with a smaller buffer"
        " nothing may be claimed",
    )
    return Drawn("unknown", caveats=told)


__all__ = ["Drawn", "of_grain", "of_tensorflow"]
