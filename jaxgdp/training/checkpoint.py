"""Accounts on disk: JSON, or an array for checkpoints of arrays, restored exactly or refused.

The text holds a format name, a version, the settings as decimal numbers that read back to the same
float64, the counts, and a checksum of all that. Reading returns a new account or raises; nothing
that exists is changed, so nothing is half-applied.

Keep the account in the same checkpoint as the parameters and the optimiser's state. A run that
restarts from it repeats the steps after it, and :func:`jaxgdp.training.privatize` and a sampling
key folded with the step number repeat them with the same batches and the same noise: what is
released twice is identical, and counts once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from os import PathLike
from pathlib import Path

import jax
import numpy as np

from ..numerics.shapes import Array
from .accountant import Account, _pair, fingerprint

FORMAT, VERSION = "jaxgdp.training.account", 1
_KEYS = ("format", "version", "settings", "counts", "checksum")
_LARGEST = 2**24
_MOST = 2**31 - 1


def _checksum(settings: list[list[float]], counts: list[int]) -> str:
    text = json.dumps([FORMAT, VERSION, settings, counts], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def to_json(account: Account) -> str:
    """An account as JSON text.

    Args:
        account: with valid counts.

    Returns:
        Text that :func:`from_json` reads back exactly.

    Raises:
        ValueError: the counts are not valid (see :meth:`Account.checked_counts`).

    Example:
        >>> from jaxgdp.training import accountant
        >>> account = accountant.step(accountant.init([(1.1, 0.1)]), 0, count=7)
        >>> from_json(to_json(account)).num_steps
        7
    """
    counts = [int(count) for count in account.checked_counts()]
    settings = [list(pair) for pair in account.settings]
    content = {"format": FORMAT, "version": VERSION, "settings": settings, "counts": counts}
    return json.dumps(content | {"checksum": _checksum(settings, counts)}, indent=1)


def _foreign(content: object) -> str:
    """A description of a JSON value that is no account."""
    if not isinstance(content, dict):
        return f"a JSON {type(content).__name__}"
    if "format" in content:
        return f"format {content['format']!r}"
    if "history" in content and "mechanism" in content:
        return "a state dict of Opacus"
    return f"an object with the keys {', '.join(map(repr, list(content)[:6])) or 'none'}"


def from_json(text: str | bytes, source: str = "the checkpoint") -> Account:
    """The account that :func:`to_json` wrote.

    Args:
        text: str or bytes.
        source: what to call it in messages.

    Raises:
        ValueError: not JSON, of another format or version, incomplete, damaged, or with values out
            of range; names what it is.
    """
    if not isinstance(text, (str, bytes)):
        raise ValueError(f"{source} must be JSON text, got {type(text).__name__}")
    if len(text) > _LARGEST:
        raise ValueError(f"{source} must hold at most {_LARGEST} characters, got {len(text)}")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{source} must be an account as JSON, got text that is not JSON or is cut off: {error}"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{source} must have the format {FORMAT!r}, got {_foreign(content)}")
    if content.get("version") != VERSION or isinstance(content.get("version"), bool):
        raise ValueError(
            f"{source} must have version {VERSION}, got {content.get('version')!r}: written by"
            " another release"
        )
    if set(content) != set(_KEYS):
        raise ValueError(
            f"{source} must have exactly the keys {', '.join(_KEYS)}, got"
            f" {', '.join(map(repr, content))}"
        )
    settings, counts = content["settings"], content["counts"]
    lists = isinstance(settings, list) and isinstance(counts, list)
    if not lists or len(settings) != len(counts):
        raise ValueError(
            f"{source} must hold one count for each setting, got {settings!r} and {counts!r}"
        )
    if content["checksum"] != _checksum(settings, counts):
        raise ValueError(
            f"{source} is damaged: its checksum is not that of its settings and counts"
        )
    try:
        pairs = tuple(_pair(setting) for setting in settings)
    except ValueError as error:
        raise ValueError(f"{source} holds a setting that is out of range: {error}") from None
    if len(set(pairs)) < len(pairs):
        raise ValueError(f"{source} must hold different settings, got {settings!r}")
    for count in counts:
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MOST:
            raise ValueError(
                f"counts of {source} must be whole numbers in [0, {_MOST}], got {count!r}"
            )
    return Account(pairs, np.array([*counts, 0], np.int32), fingerprint(pairs))


def save(account: Account, path: str | PathLike[str]) -> None:
    """Write an account to a file, whole or not at all, also where the call is interrupted.

    Args:
        account: with valid counts.
        path: of the file.

    Raises:
        ValueError: the counts are not valid. OSError: the file cannot be written.
    """
    path, text = Path(path), to_json(account)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: str | PathLike[str]) -> Account:
    """Read an account from a file that :func:`save` wrote.

    Raises:
        ValueError: as :func:`from_json`, naming the file. OSError: the file cannot be read.
    """
    return from_json(Path(path).read_bytes(), str(path))


def to_array(account: Account) -> np.ndarray:
    """An account as one uint8 array, for checkpoints of arrays such as those of orbax.

    The settings are in it, so counts cannot come back beside the settings of another run, and as
    bytes no float64 becomes a float32 on the way.

    Args:
        account: with valid counts.

    Returns:
        One-dimensional uint8 array.

    Raises:
        ValueError: the counts are not valid.

    Example:
        >>> from jaxgdp.training import accountant
        >>> from_array(to_array(accountant.step(accountant.init([(1.1, 0.1)]), 0))).num_steps
        1
    """
    return np.frombuffer(to_json(account).encode(), np.uint8).copy()


def from_array(array: Array, source: str = "the checkpoint") -> Account:
    """The account that :func:`to_array` wrote.

    Args:
        array: one-dimensional uint8 array.
        source: what to call it in messages.

    Raises:
        ValueError: another kind of array, or as :func:`from_json`.
    """
    if not isinstance(array, (np.ndarray, jax.Array)) or array.dtype != np.uint8 or array.ndim != 1:
        kind = type(array).__name__
        if hasattr(array, "dtype"):
            kind = f"{array.dtype} array of shape {array.shape}"
        raise ValueError(
            f"{source} must hold an account as a one-dimensional uint8 array, got {kind}"
        )
    return from_json(np.asarray(array).tobytes(), source)
