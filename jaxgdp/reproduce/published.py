"""Published numbers, read from a paper's data file."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import NamedTuple

RELATIONS = ("=", "≈", "<", ">", "words")


class Published(NamedTuple):
    """One number or statement of a paper.

    Attributes:
        name: unique name, such as "figure-4a-mu".
        item: the figure or table whose computation decides it, such as "figure-4".
        where: the place in the paper.
        quantity: what it is about.
        printed: the number as printed, or the statement in words.
        relation: one of ``RELATIONS``; see :mod:`jaxgdp.reproduce.verdict`.
    """

    name: str
    item: str
    where: str
    quantity: str
    printed: str
    relation: str


def read(paper: str) -> dict:
    """The data file of a paper as nested plain values.

    Args:
        paper: key of the paper, such as "gomez2025".

    Returns:
        Its tables, "paper" (citation) among them.

    Example:
        >>> read("gomez2025")["paper"]["identifier"]
        'arXiv:2503.10945'
    """
    file = resources.files(__package__ or __name__).joinpath(paper, "published.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def numbers(paper: str) -> list[Published]:
    """The numbers and statements that a paper's data file lists one by one, in its order."""
    keys = ("id", "item", "where", "quantity", "printed")
    listed = read(paper)["number"]
    return [Published(*(n[key] for key in keys), n.get("relation", "=")) for n in listed]
