"""Entries as files: YAML, or JSON, which is YAML as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...numerics.optional import missing
from ...spec import read_json, read_text


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise missing("entries in YAML need pyyaml", "report") from None
    return yaml


def load(path: str | Path) -> Any:
    """Contents of a YAML or JSON file; dates stay text.

    Args:
        path: of the file; JSON if its name ends in .json.

    Raises:
        ValueError: it cannot be read or is malformed; names the file and, where known, the line.
        ImportError: pyyaml is missing where it is needed (the ``report`` extra).
    """
    if Path(path).suffix.lower() == ".json":
        return read_json(path)
    text, yaml = read_text(path), _yaml()

    class Loader(yaml.SafeLoader):
        """Dates are left as they are written."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        return yaml.load(text, Loader)  # a SafeLoader
    except RecursionError:
        raise ValueError(f"{path}: is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}"
        raise ValueError(f"{path}{where}: {getattr(error, 'problem', None) or error}") from None


def dump(entry: dict[str, Any]) -> str:
    """An entry as YAML.

    Raises:
        ImportError: pyyaml is missing (the ``report`` extra); ``json.dumps(entry)`` gives a file
            that is YAML, too.
    """
    yaml = _yaml()

    class Dumper(yaml.SafeDumper):
        """Text of several lines stands as it is."""

    def text(dumper, value):
        return dumper.represent_scalar(
            "tag:yaml.org,2002:str", value, style="|" if "\n" in value else None
        )

    Dumper.add_representer(str, text)
    return yaml.dump(
        json.loads(json.dumps(entry)), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100
    )
