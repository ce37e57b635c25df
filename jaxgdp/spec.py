"""Descriptions of a composed mechanism as a file, TOML or JSON, and back.

    title = "Five releases"            # all optional but the mechanisms
    neighbours = "one household more or less"
    adjacency = "add_remove"
    fpr_floor = 1e-10

    [[mechanism]]
    type = "Laplace"                   # any mechanism of this library, with its own fields
    scale = 2.0
    count = 4                          # default 1

    [[mechanism]]
    deployment = "census_2020_pl94_units"

In place of mechanisms a file may hold a run of DP-SGD, with the arguments of ``jaxgdp.run``:

    [run]
    noise_multiplier = 0.9
    dataset_size = 45000
    batch_size = 512
    num_epochs = 30
    sampler = "unknown"

Parts of a release may have a name, and a budget in place of the noise: ``rho`` of a Gaussian or
discrete Gaussian, or its share of the ``rho`` of the whole:

    rho = 1

    [[mechanism]]
    type = "DiscreteGaussian"
    name = "counties"
    share = "1/5"

Numbers may be written as fractions in quotes ("16384/50000"). Every error names the file, the line
or key, the value and what is valid."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import deployments, mechanisms, run_settings
from .deprecation import renamed_arguments
from .mechanisms.base import known_mechanisms
from .mechanisms.runs import BY_NAME, Runs
from .numerics.validation import floor_rate, open_unit, positive, probability, relative_width, whole
from .participation import Participation
from .vocabulary import did_you_mean

SETTINGS = ("adjacency", "fpr_floor", "rtol", "delta", "fpr", "approximation")
SEVERAL = ("delta", "fpr")  # settings that hold several numbers
_OLD = {"deltas": "delta"}  # keys of earlier versions, which files still have
_WORDS = ("title", "neighbours")
_KEYS = (*_WORDS, "deployment", "mechanism", "run", "rho", *SETTINGS)
_SOURCES = ("mechanism", "deployment", "run")  # exactly one of them
_ABOUT = ("type", "deployment", "count", "name", "share", "rho")  # keys of a part that are no field
_BUDGETED = ("Gaussian", "DiscreteGaussian")  # whose noise follows from a budget
_LARGEST_FILE = 16 * 2**20
_HEADER = re.compile(r"^\s*\[\[\s*\"?mechanism\"?\s*\]\]")


class Part(NamedTuple):
    """One entry of a file.

    Attributes:
        mechanism: of one use.
        count: of uses.
        name: of the part, or "".
        share: of the whole budget, or None.
        rho: ρ of all uses together where the file states it, else None.
    """

    mechanism: Any
    count: Any
    name: str = ""
    share: float | None = None
    rho: float | None = None


@dataclass(frozen=True)
class Spec:
    """A mechanism and how to report it; from :func:`read_spec` or its kin.

    Attributes:
        mechanism: the :class:`jaxgdp.Composition`.
        title: what it is, or "".
        neighbours: which data sets are neighbours, in words, or "".
        settings: those given of adjacency, fpr_floor, rtol, delta, fpr and approximation.
        content: the description itself, ready for JSON.
        source: file or other place it came from, for messages.
        run: the :class:`jaxgdp.Run` of a file that describes one, else None.
        parts: the entries of a file that lists mechanisms.
    """

    mechanism: mechanisms.Composition
    title: str
    neighbours: str
    settings: dict
    content: dict
    source: str
    run: run_settings.Run | None = None
    parts: tuple[Part, ...] = ()


# classes for another relation of neighbours, which methods build; reports name them
_OF_OTHER_RELATIONS = {
    "ReplacedInFixedSize": "fixed_size",
    "ZeroedInTruncated": "truncated_poisson",
}


def _suggest(word: Any, known: Iterable) -> str:
    return f"{did_you_mean(str(word), known) or ';'} "


class _Place:
    """The place of something in a file, as far as its text determines it."""

    def __init__(self, source: str, text: str = ""):
        self.source, self.lines = source, text.splitlines()
        self.headers = [i for i, line in enumerate(self.lines) if _HEADER.match(line)]

    def _find(self, key: Any, first: int, last: int):
        pattern = re.compile(rf"^\s*[\"']?{re.escape(str(key))}[\"']?\s*=")
        return next((i for i in range(first, last) if pattern.match(self.lines[i])), None)

    def at(self, entry: int | None = None, key: Any = None, number: int = 0) -> str:
        """``source, line 12`` for a key, or for the ``entry``-th mechanism and its key."""
        first, last, line = 0, self.headers[0] if self.headers else len(self.lines), None
        if entry is not None:
            if len(self.headers) != number:
                return self.source
            line = first = self.headers[entry]
            last = self.headers[entry + 1] if entry + 1 < number else len(self.lines)
        if key is not None:
            found = self._find(key, first, last)
            line = line if found is None else found
        return self.source if line is None else f"{self.source}, line {line + 1}"

    @contextlib.contextmanager
    def blamed(self, label: str = "", **place: Any) -> Iterator[None]:
        """Errors of what is done inside name the place (:meth:`at`) and the file."""
        try:
            yield
        except ValueError as error:
            raise ValueError(f"{self.at(**place)}: {label}{error}") from None


def _number(value: Any):
    """Numbers as they are, text such as "1/3" or "-inf" as numbers; lists by element."""
    if isinstance(value, list):
        return [_number(item) for item in value]
    if isinstance(value, str):
        top, slash, bottom = value.partition("/")
        try:
            return float(top) / float(bottom) if slash else float(top)
        except (ValueError, ZeroDivisionError):
            return value
    return value


def _field(name: str, value: Any, place: _Place) -> Any:
    """The value of a field: numbers, the mechanism of one run, or the law of their number."""
    if name == "mechanism" and isinstance(value, list):
        inner = _Place(place.source)
        parts = [_part(entry, inner, i, len(value), None) for i, entry in enumerate(value)]
        return mechanisms.compose([(part.mechanism, part.count) for part in parts])
    if name == "runs" and isinstance(value, dict):
        fields = {key: _number(each) for key, each in value.items() if key != "type"}
        law = value.get("type")
        if law not in BY_NAME:
            hint = _suggest(law, BY_NAME)
            raise ValueError(f"runs: unknown law {law!r}{hint}known are {', '.join(BY_NAME)}")
        return BY_NAME[law](**fields)
    return _number(value)


def _part(entry: Any, place: _Place, position: int, number: int, whole_rho: float | None) -> Part:
    """One element of ``mechanism``."""
    label = f"mechanism {position + 1}"
    where = lambda key=None: place.at(position, key, number)
    if not isinstance(entry, dict):
        raise ValueError(
            f"{where()}: {label} must be a table with a type and its fields, got {entry!r}"
        )
    fields = {name: value for name, value in entry.items() if name not in _ABOUT}
    if ("type" in entry) == ("deployment" in entry):
        raise ValueError(
            f"{where()}: {label} must have either a type or a deployment, got {sorted(entry)}"
        )
    with place.blamed(f"{label}: ", entry=position, key="count", number=number):
        count = whole("count", _number(entry.get("count", 1)))
    name = entry.get("name", "")
    if not isinstance(name, str):
        raise ValueError(f"{where('name')}: {label}: name must be text, got {name!r}")
    with place.blamed(f"{label}: ", entry=position, key="share", number=number):
        share = _one(probability, "share", entry.get("share"))
    with place.blamed(f"{label}: ", entry=position, key="rho", number=number):
        rho = _one(positive, "rho", entry.get("rho"))
    if "deployment" in entry:
        if fields:
            raise ValueError(
                f"{where(next(iter(fields)))}: {label}: a deployment has no field"
                f" {next(iter(fields))!r}"
            )
        with place.blamed(f"{label}: ", entry=position, key="deployment", number=number):
            return Part(deployments.mechanism(entry["deployment"]), count, name, share, rho)
    kind = _kind(entry["type"], where("type"), label)
    noise = kind.noise_scale
    if noise not in fields and kind.__name__ in _BUDGETED:
        if rho is None and share is not None and whole_rho is not None:
            rho = share * whole_rho
        if rho is not None:
            fields[noise] = _noise_of_budget(rho, count, fields.get("sensitivity", 1))
    elif "rho" in entry:
        raise ValueError(
            f"{where('rho')}: {label} ({kind.__name__}): rho is for {' and '.join(_BUDGETED)}, in"
            f" place of their noise; give rho or {noise or 'its fields'}, not both"
        )
    return Part(_made(kind, fields, place, where, label), count, name, share, rho)


def _one(check: Callable[[str, Any], Any], name: str, value: Any) -> float | None:
    """One number that passes a check, or None where there is none."""
    if value is None:
        return None
    found = check(name, _number(value))
    if np.ndim(found):
        raise ValueError(f"{name} must be one number, got {value!r}")
    return float(found)


def _noise_of_budget(rho: float, count: Any, sensitivity: Any) -> Any:
    """σ = s·√(k/(2ρ)) of k uses that cost ρ together, rounded down: less noise is the safe side."""
    sigma = np.asarray(_number(sensitivity), float) * np.sqrt(count / (2.0 * rho))
    return (sigma * (1.0 - 4.0 * np.finfo(float).eps)).tolist()


def _kind(name: Any, where: str, label: str) -> type[mechanisms.Mechanism]:
    known = known_mechanisms()
    if isinstance(name, str) and name in _OF_OTHER_RELATIONS:
        module = importlib.import_module(f".{_OF_OTHER_RELATIONS[name]}", mechanisms.__name__)
        return getattr(module, name)
    if not isinstance(name, str) or name not in known:
        hint = _suggest(name, known)
        raise ValueError(
            f"{where}: {label}: unknown mechanism {name!r}{hint}known are {', '.join(known)}"
        )
    return known[name]


def _made(
    kind: type[mechanisms.Mechanism],
    fields: dict[str, Any],
    place: _Place,
    where: Callable[..., str],
    label: str,
) -> mechanisms.Mechanism:
    """A mechanism from the fields of an entry."""
    name, own = kind.__name__, kind.given_fields()
    for key in fields:
        if key not in own:
            hint = _suggest(key, (*own, *_ABOUT))
            raise ValueError(
                f"{where(key)}: {label} ({name}): unknown field {key!r}{hint}its fields are"
                f" {', '.join(own)}, and count, name, share, rho"
            )
    missing = dataclasses.MISSING
    for key, field in own.items():
        if key not in fields and field.default is missing and field.default_factory is missing:
            budget = ", or rho, or a share of the whole rho" if name in _BUDGETED else ""
            raise ValueError(f"{where()}: {label} ({name}) needs the field {key!r}{budget}")
    try:
        return kind(**{key: _field(key, value, place) for key, value in fields.items()})
    except (ValueError, TypeError) as error:
        culprit = next((key for key in fields if str(error).startswith(f"{key} ")), None)
        raise ValueError(f"{where(culprit)}: {label} ({name}): {error}") from None


def _run(table: Any, place: _Place) -> run_settings.Run:
    """The run of a file."""
    if not isinstance(table, dict):
        raise ValueError(f"{place.at(key='run')}: run must be a table of keys, got {table!r}")
    known = run_settings.FIELDS
    for key in table:
        if key not in known:
            hint = _suggest(key, known)
            raise ValueError(
                f"{place.source}: run: unknown key {key!r}{hint}known are {', '.join(known)}"
            )
    for key in known[:3]:
        if key not in table:
            raise ValueError(f"{place.source}: run needs the key {key!r}")
    try:
        given: dict[str, Any] = {k: v if k == "sampler" else _number(v) for k, v in table.items()}
        return run_settings.run(**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{place.source}: run: {error}") from None


def _settings(data: dict, place: _Place) -> dict:
    found = {name: data[name] for name in SETTINGS if name in data}
    tests = dict.fromkeys(("delta", "fpr", "approximation"), open_unit)
    tests |= {"fpr_floor": floor_rate, "rtol": relative_width}
    for name, value in found.items():
        if name == "adjacency":
            if not isinstance(value, str):
                raise ValueError(f"{place.at(key=name)}: adjacency must be text, got {value!r}")
            continue
        with place.blamed(key=name):
            checked = tests[name](name, _number(value))
        if name not in SEVERAL and checked.ndim:
            raise ValueError(f"{place.at(key=name)}: {name} must be one number, got {value!r}")
        found[name] = np.reshape(checked, -1).tolist() if name in SEVERAL else float(checked)
    return found


def renamed(data: dict) -> dict:
    """A description whose keys had the names of earlier versions, which stored files still have."""
    return {_OLD.get(key, key): value for key, value in data.items()}


def _build(data: Any, place: _Place) -> Spec:
    if not isinstance(data, dict):
        raise ValueError(f"{place.source}: must hold a table of keys, got {type(data).__name__}")
    data = renamed(data)
    for key in data:
        if key not in _KEYS:
            hint = _suggest(key, _KEYS)
            raise ValueError(
                f"{place.at(key=key)}: unknown key {key!r}{hint}known are {', '.join(_KEYS)}"
            )
    if sum(key in data for key in _SOURCES) != 1:
        raise ValueError(
            f"{place.source}: must have mechanisms ([[mechanism]] in TOML), a deployment or a run"
            " ([run] in TOML), and only one of these"
        )
    for key in _WORDS:
        if not isinstance(data.get(key, ""), str):
            raise ValueError(f"{place.at(key=key)}: {key} must be text, got {data[key]!r}")
    title, neighbours = (data.get(key, "") for key in _WORDS)
    run, parts = None, ()
    if "deployment" in data:
        with place.blamed(key="deployment"):
            deployment = deployments.about(data["deployment"])
        mechanism = deployment.mechanism()
        title, neighbours = title or deployment.title, neighbours or deployment.neighbours
    elif "run" in data:
        run = _run(data["run"], place)
        # (where there are two, whoever needs one is told so)
        mechanism: Any = run if len(run.cases) > 1 else run.mechanism
    else:
        parts = _parts(data, place)
        with place.blamed():
            mechanism = mechanisms.compose([(part.mechanism, part.count) for part in parts])
    settings = _settings(data, place)
    return Spec(mechanism, title, neighbours, settings, data, place.source, run, parts)


def _parts(data: dict, place: _Place) -> tuple[Part, ...]:
    """The entries of a file, whose shares of a budget are at most the whole."""
    entries = data["mechanism"]
    if not isinstance(entries, list) or not entries:
        raise ValueError(
            f"{place.at(key='mechanism')}: mechanism must be a list of at least one table, got"
            f" {entries!r}"
        )
    with place.blamed(key="rho"):
        whole_rho = _one(positive, "rho", data.get("rho"))
    number = len(entries)
    parts = tuple(_part(entry, place, i, number, whole_rho) for i, entry in enumerate(entries))
    total = math.fsum(part.share for part in parts if part.share is not None)
    if total > 1.0 + 1e-9:
        raise ValueError(
            f"{place.source}: shares of the parts must sum to at most 1, got {total:g}"
        )
    if whole_rho is not None and all(part.rho is None for part in parts):
        raise ValueError(
            f"{place.at(key='rho')}: rho is the budget of the whole: give parts a share of it"
        )
    return parts


def from_dict(data: dict, source: str = "specification") -> Spec:
    """A description that is already a dictionary, as read from TOML or JSON.

    Args:
        data: keys as in a file.
        source: how messages call it.

    Raises:
        ValueError: anything unknown, missing or out of range; names the key.

    Example:
        >>> part = {"type": "Gaussian", "noise_multiplier": 2.0, "count": 4}
        >>> from_dict({"mechanism": [part]}).mechanism.shape
        ()
    """
    return _build(data, _Place(source))


def from_deployment(name: str) -> Spec:
    """A shipped deployment by name.

    Raises:
        ValueError: there is none of that name.

    Example:
        >>> from_deployment("de_et_al_2022_table4_epsilon_8").mechanism.shape
        ()
    """
    return from_dict({"deployment": name}, "deployment")


def _no_twins(pairs: list[tuple[str, Any]]):
    keys = [key for key, _ in pairs]
    twins = {key for key in keys if keys.count(key) > 1}
    if twins:
        raise ValueError(f"key {sorted(twins)[0]!r} appears twice in one table")
    return dict(pairs)


def read_text(path: str | Path) -> str:
    """Text of a UTF-8 file of sensible size.

    Raises:
        ValueError: it cannot be read; names the file.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError(f"{path}: file is larger than {_LARGEST_FILE} bytes")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None


def read_json(path: str | Path):
    """Contents of a JSON file.

    Raises:
        ValueError: it cannot be read or is malformed; names the file, line and column.
    """
    try:
        return json.loads(read_text(path), object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}, line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise ValueError(f"{path}: is nested too deeply") from None
    except ValueError as error:
        raise ValueError(
            str(error) if str(error).startswith(str(path)) else f"{path}: {error}"
        ) from None


def read_spec(path: str | Path) -> Spec:
    """Description of a mechanism from a file: JSON if its name ends in .json, else TOML.

    Raises:
        ValueError: it cannot be read, is malformed, or describes no valid mechanism; names the file
            and the line or key.
    """
    if Path(path).suffix.lower() == ".json":
        return _build(read_json(path), _Place(str(path)))
    text = read_text(path)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"{path}: is nested too deeply") from None
    except ValueError as error:  # says "(at line …, column …)"
        raise ValueError(f"{path}: {error}") from None
    return _build(data, _Place(str(path), text))


def _plain(value: Any):
    """Numbers of any shape as JSON values: whole floats stay floats, infinities become text."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _stored(value: Any) -> Any:
    """A field as JSON values."""
    if isinstance(value, mechanisms.Composition):
        return _entries(value)
    if isinstance(value, Runs):
        own = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}  # type: ignore[arg-type]
        return {"type": type(value).__name__, **{key: _stored(each) for key, each in own.items()}}
    if isinstance(value, str | Participation):
        return str(value)
    return _plain(np.asarray(value).tolist())


def _entries(composition: mechanisms.Composition) -> list[dict[str, Any]]:
    """The parts of a composition."""
    entries = []
    for part, count in zip(composition.mechanisms, composition.counts, strict=True):
        fields = {name: _stored(value) for name, value in part.given().items()}
        times = np.asarray(count).astype(int).tolist()
        entries.append({"type": type(part).__name__, **fields, "count": times})
    return entries


@renamed_arguments(deltas="delta")
def to_dict(mechanism: mechanisms.Mechanism | mechanisms.Composition, **settings: Any) -> dict:
    """The description of a mechanism, the inverse of :func:`from_dict`.

    Args:
        mechanism: a mechanism or composition, batched or not.
        settings: title, neighbours, adjacency, fpr_floor, rtol, delta, fpr,
            approximation.

    Returns:
        A dictionary ready for JSON or :func:`to_toml`.

    Example:
        >>> to_dict(mechanisms.Gaussian(2.0))
        {'mechanism': [{'type': 'Gaussian', 'noise_multiplier': 2.0, 'count': 1}]}
    """
    composition = mechanisms.as_composition(mechanism)
    entries = _entries(composition)
    unknown = set(settings) - {*_WORDS, *SETTINGS}
    if unknown:
        raise ValueError(
            f"setting must be one of {', '.join((*_WORDS, *SETTINGS))}, got {sorted(unknown)[0]!r}"
        )
    plain = {
        name: _plain(np.asarray(v).tolist() if name in SEVERAL else v)
        for name, v in settings.items()
    }
    return {**plain, "mechanism": entries}


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml_value(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def to_toml(data: dict) -> str:
    """TOML text of a description.

    Args:
        data: as from :func:`to_dict`.

    Returns:
        Text that :func:`read_spec` reads back to the same mechanism.

    Example:
        >>> print(to_toml({"mechanism": [{"type": "Laplace", "scale": 2.0, "count": 3}]}))
        [[mechanism]]
        type = "Laplace"
        scale = 2.0
        count = 3
    """
    line = lambda key, value: f"{key} = {_toml_value(value)}"
    table = lambda header, rows: "\n".join([header, *(line(*row) for row in rows.items())])
    head = [line(key, value) for key, value in data.items() if key not in ("mechanism", "run")]
    tables = [table("[run]", data["run"])] if "run" in data else []
    tables += [table("[[mechanism]]", entry) for entry in data.get("mechanism", [])]
    return "\n\n".join(["\n".join(head)] * bool(head) + tables)
