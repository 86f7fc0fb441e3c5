"""What environments take from their callers: checked, and converted where that is harmless.

In a tunnel a policy that fails is replaced by CUBIC. In training that would be silent, so that an environment raises.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..errors import ActionError, ConfigError
from .worlds import Keys

__all__ = [
    "RENDER_MODES",
    "actions_of",
    "check_names",
    "count_of",
    "options_of",
    "render_mode_of",
    "seed_of",
    "suggestion",
]

RENDER_MODES = ["ansi", "rgb_array"]


def actions_of(actions: Any, space: spaces.Space[Any], name: str = "the action") -> NDArray[np.float32]:
    """Actions of a space, as numbers. Whether they are finite is checked where they are carried out."""
    shape = space.shape or ()
    try:
        array = np.asarray(actions)
    except ValueError:
        raise ActionError(f"{name} has rows of different lengths; it has to have the shape {shape}") from None
    count = _choices(space)
    kind = "numbers" if count is None else "whole numbers"
    if array.dtype.kind not in ("fiu" if count is None else "iu"):
        raise ActionError(f"{name} has the type {array.dtype}; it has to be {kind} of the shape {shape}")
    if array.shape != shape:
        raise ActionError(f"{name} has the shape {array.shape}; it has to be {shape}")
    if count is not None and array.size and not 0 <= array.min() <= array.max() < count:
        raise ActionError(f"{name} is {array.tolist()}; a path is chosen by its place, 0 to {count - 1}")
    with np.errstate(over="ignore"):  # infinite, and refused as such
        return np.ascontiguousarray(array, dtype=np.float32).reshape(shape)


def _choices(space: spaces.Space[Any]) -> int | None:
    """The number of choices of a discrete space."""
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.flat[0])
    return int(space.n) if isinstance(space, spaces.Discrete) else None


def check_names(keys: Mapping[str, Any], known: Collection[str] = tuple(Keys.__annotations__)) -> None:
    """Raises the `TypeError` of Python for keywords that an environment does not have: TorchRL tries some out."""
    for name in keys:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; {suggestion(name, known)}")


def seed_of(seed: Any) -> int | None:
    """A seed of an episode: a whole number of 64 bits, or None."""
    if seed is None:
        return None
    try:
        number = operator.index(seed)
    except TypeError:
        raise ValueError(f"seed: a whole number is expected, not {seed!r}") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"seed: {number} is not from 0 to 2**64 - 1")
    return number


def count_of(key: str, count: Any) -> int:
    """A number of environments or threads."""
    try:
        number = operator.index(count)
    except TypeError:
        raise ConfigError(f"{key}: a whole number is expected, not {count!r}") from None
    if number < 1:
        raise ConfigError(f"{key}: {number}; at least 1")
    return number


def render_mode_of(mode: str | None) -> str | None:
    """A known render mode, or None."""
    if mode not in (None, *RENDER_MODES):
        raise ValueError(f"render_mode: {mode!r} is none of None, 'ansi' and 'rgb_array'")
    return mode


def options_of(options: Mapping[str, Any] | None, known: Sequence[str]) -> dict[str, Any]:
    """The options of a reset, of those that an environment has."""
    if not isinstance(options, (Mapping, type(None))):
        raise ConfigError(f"options: a dictionary is expected, not {type(options).__name__}")
    for name in options or {}:
        if name not in known:
            raise ConfigError(f"options: no option is called {name!r}; {suggestion(name, known)}")
    return dict(options or {})


def suggestion(name: object, known: Collection[str]) -> str:
    """Help for an unknown word."""
    nearest = difflib.get_close_matches(str(name), known, 1)
    return f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(known)}"
