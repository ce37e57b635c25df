"""Ways to code a step of training by name, and the mechanism of each, beside those of samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..mechanisms import Composition, DrawnBatchSize, compose
from ..mechanisms.noise_on_means import NoiseOnMean
from ..samplers import Setting


class AsImplemented(NamedTuple):
    """One way to code a step on a Poisson batch.

    Attributes:
        name: in tables.
        title: a few words.
        reason: what it does to the guarantee, in words.
        make: a setting, with ``dataset_size``, → composition.
    """

    name: str
    title: str
    reason: str
    make: Callable[[Setting], Composition]


def _drawn_size(known: bool) -> Callable[[Setting], Composition]:
    def make(at: Setting) -> Composition:
        step = DrawnBatchSize(at.noise_multiplier, at.sampling_prob, at.dataset_size, known)
        return compose([(step, at.steps)])

    return make


def _means(micro_batches: bool) -> Callable[[Setting], Composition]:
    def make(at: Setting) -> Composition:
        given = at.noise_multiplier, at.sampling_prob, at.dataset_size, micro_batches
        return compose([(NoiseOnMean(*given), at.steps)])

    return make


_TOLD = "noise is added to the sum: the size is told, and nothing else"
WAYS = (
    AsImplemented(
        "drawn_size_zeroed", "divided by the drawn size, a record zeroed", _TOLD, _drawn_size(True)
    ),
    AsImplemented(
        "drawn_size_added",
        "divided by the drawn size, a record added or removed",
        _TOLD,
        _drawn_size(False),
    ),
    AsImplemented(
        "noise_on_drawn_mean",
        "noise of the expected size on a mean over the drawn size",
        "a record turns the mean by 2/k, and small batches have too little noise",
        _means(False),
    ),
    AsImplemented(
        "micro_batch_means",
        "means of micro-batches clipped in place of gradients",
        "one record turns a clipped mean around: twice the sensitivity at least",
        _means(True),
    ),
)
