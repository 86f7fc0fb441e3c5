"""Python values as TOML."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real

__all__ = ["document", "key", "override", "value"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def override(item: object) -> str:
    """The right side of `--set KEY=VALUE`: a string as it is, anything else as TOML."""
    return item if isinstance(item, str) else value(item)


def key(name: str) -> str:
    """A key, quoted if necessary."""
    return name if _BARE.fullmatch(name) else value(name)


def value(item: object) -> str:
    """A value in one line."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, Integral):
        return str(int(item))
    if isinstance(item, Real):
        if not math.isfinite(item):
            raise ValueError(f"{item} is not a number of a scenario")
        return repr(float(item))
    if hasattr(item, "tolist"):  # NumPy's
        return value(item.tolist())
    if isinstance(item, str):
        return json.dumps(item, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(item, Mapping):
        entries = ", ".join(f"{key(str(name))} = {value(entry)}" for name, entry in item.items())
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(item, Sequence):
        return f"[{', '.join(value(entry) for entry in item)}]"
    raise TypeError(f"a scenario has no values of type {type(item).__name__}")


def document(tables: Mapping[str, object]) -> str:
    """A document of keys; a value may be a dataclass, and None leaves a key out."""
    plain = {name: _plain(item) for name, item in tables.items() if item is not None}
    return "".join(_table((), plain))


def _plain(item: object) -> object:
    """Dataclasses as mappings, without keys that are None."""
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        names = (field.name for field in dataclasses.fields(item))
        pairs = ((name.removesuffix("_"), getattr(item, name)) for name in names)
        return {name: _plain(entry) for name, entry in pairs if entry is not None}
    if isinstance(item, Mapping):
        return {str(name): _plain(entry) for name, entry in item.items() if entry is not None}
    if isinstance(item, Sequence) and not isinstance(item, str):
        return [_plain(entry) for entry in item]
    return item


def _table(path: tuple[str, ...], table: Mapping[str, object]) -> Iterator[str]:
    """The lines of a table: its values, then the tables and lists of tables in it."""
    for name, item in table.items():
        if not _is_below(path, item):
            yield f"{key(name)} = {value(item)}\n"
    for name, item in table.items():
        if not _is_below(path, item):
            continue
        below = (*path, name)
        header = ".".join(key(part) for part in below)
        if isinstance(item, Mapping):
            yield f"\n[{header}]\n"
            yield from _table(below, item)
        elif isinstance(item, Sequence):
            for entry in item:
                yield f"\n[[{header}]]\n"
                yield from _table(below, entry)


def _is_below(path: tuple[str, ...], item: object) -> bool:
    """Whether a value has a header of its own: a table of the file, or a list of tables."""
    if isinstance(item, Mapping):
        return not path
    return isinstance(item, list) and bool(item) and all(isinstance(entry, Mapping) for entry in item)
