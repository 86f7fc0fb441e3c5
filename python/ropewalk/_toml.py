"""Python values as TOML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

__all__ = ["key", "override", "value"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def override(item: object) -> str:
    """The right side of `--set KEY=VALUE`: a text as it is, anything else as TOML."""
    return item if isinstance(item, str) else value(item)


def key(name: str) -> str:
    """A key, quoted where it has to be."""
    return name if _BARE.fullmatch(name) else value(name)


def value(item: object) -> str:
    """A value in one line."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int):
        return str(int(item))
    if isinstance(item, float):
        if not math.isfinite(item):
            raise ValueError(f"{item} is no number of a scenario")
        return repr(float(item))
    if isinstance(item, str):
        return json.dumps(item, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(item, Mapping):
        entries = ", ".join(f"{key(str(name))} = {value(entry)}" for name, entry in item.items())
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(item, Sequence):
        return f"[{', '.join(value(entry) for entry in item)}]"
    raise TypeError(f"a scenario has no values of type {type(item).__name__}")
