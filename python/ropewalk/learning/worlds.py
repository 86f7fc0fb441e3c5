"""The ranges from which worlds are drawn: plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from .._native import FEATURES
from ..errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MULTIPATH", "SINGLE_PATH", "PathRanges", "Rivals", "config", "feature_names", "narrow"]

Range: TypeAlias = "Sequence[float] | NDArray[Any]"
Trace: TypeAlias = "str | PathLike[str] | Sequence[int] | NDArray[Any]"


class _Link(TypedDict):
    rtt_ms: Range
    """Round-trip time without queues, ms: `[min, max]`, uniform on a logarithmic scale."""


class PathRanges(_Link, total=False):
    """Ranges of one path: a link with a drop-tail queue. It has `rate_mbps` or `traces`."""

    rate_mbps: Range
    """Rate of the link, Mbit/s; uniform on a logarithmic scale."""
    loss: Range
    """Probability that a packet of data is lost; uniform. Default: none."""
    queue_bdp: Range
    """Queue, in bandwidth-delay products; uniform, at least four packets. Default: 1."""
    traces: Sequence[Trace]
    """Files of traces, or mahimahi's lists of milliseconds: one is drawn for the direction of the data instead of a
    rate."""
    trace_offset_s: Range
    """Offset in the trace at which an episode begins, seconds; uniform. Default: anywhere."""


class Rivals(TypedDict, total=False):
    """Flows of classical algorithms next to the learning ones. Each draws its algorithm, path and start."""

    count: Sequence[int]
    """Their number, `[min, max]`. Default: none."""
    algorithms: Sequence[str]
    """Names as in `ropewalk list algorithms`. Default: CUBIC."""
    start_s: Range
    """Start, seconds. Default: 0."""


_PATH: PathRanges = {"rate_mbps": [2, 50], "rtt_ms": [10, 100], "queue_bdp": [0.5, 4]}
SINGLE_PATH: Sequence[PathRanges] = (_PATH,)
MULTIPATH: Sequence[PathRanges] = (_PATH, _PATH)


def feature_names() -> list[str]:
    """The features that `observation` and `reward` may name."""
    return list(FEATURES)


def config(**keys: Any) -> str:
    """The configuration of the native environments: JSON. Keys that are None take their defaults."""
    return json.dumps({key: _plain(key, value) for key, value in keys.items() if value is not None})


def _plain(key: str, value: Any) -> Any:
    """A value as JSON, including NumPy's arrays and numbers, tuples and file paths."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        if not math.isfinite(value):
            raise ConfigError(f"{key}: {value} is not a finite number")
        return float(value)
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(f"{key}.{name}", one) for name, one in value.items()}
    if hasattr(value, "tolist"):  # an array
        return _plain(key, value.tolist())
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [_plain(f"{key}[{index}]", one) for index, one in enumerate(value)]
    raise ConfigError(f"{key}: numbers, texts, lists and tables are expected, not {type(value).__name__}")


def narrow(paths: Sequence[PathRanges], share: float) -> list[PathRanges]:
    """The ranges narrowed around their middles to a share of their width, for curricula: 0 leaves the middles, 1 all.

    The middle of rate and RTT is the geometric one.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"a share of {share}; it has to be from 0 to 1")
    return [_narrowed(path, share) for path in paths]


def _narrowed(path: PathRanges, share: float) -> PathRanges:
    narrowed: dict[str, Any] = dict(path)
    for key in ("rate_mbps", "rtt_ms", "loss", "queue_bdp"):
        if key not in narrowed:
            continue
        least, greatest = narrowed[key]
        if key in ("rate_mbps", "rtt_ms"):
            middle, factor = math.sqrt(least * greatest), math.sqrt(greatest / least) ** share
            narrowed[key] = [middle / factor, middle * factor]
        else:
            middle, half = (least + greatest) / 2, (greatest - least) / 2 * share
            narrowed[key] = [middle - half, middle + half]
    return narrowed  # type: ignore[return-value]


def with_options(keys: Mapping[str, Any], options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The configuration's keys with the `paths` and `rivals` of a reset's options; None if it has neither."""
    changes = {key: value for key, value in (options or {}).items() if key in ("paths", "rivals")}
    return {**keys, **changes} if changes else None
