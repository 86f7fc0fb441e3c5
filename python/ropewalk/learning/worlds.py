"""The ranges from which worlds are drawn: plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict

from .._native import FEATURES, PACKET_FEATURES
from ..errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MULTIPATH",
    "SINGLE_PATH",
    "Feature",
    "Keys",
    "PathRanges",
    "PolicyKeys",
    "Rivals",
    "config",
    "features",
    "narrow",
    "packet_features",
]

Range: TypeAlias = "float | Sequence[float] | NDArray[Any]"
Reward: TypeAlias = 'Literal["aurora", "orca", "sage", "sage_friendliness"] | Mapping[str, float]'
Trace: TypeAlias = "str | PathLike[str] | Sequence[int] | NDArray[Any]"


class _Link(TypedDict):
    rtt_ms: Range
    """Round-trip time without queues, ms: `[min, max]`, uniform on a logarithmic scale, or one number."""


class PathRanges(_Link, total=False):
    """Ranges of one path: a link with a drop-tail queue. It has `rate_mbps` or `traces`."""

    rate_mbps: Range
    """Rate of the link, Mbit/s; uniform on a logarithmic scale."""
    loss: Range
    """Probability that a packet of data is lost; uniform. Default: none."""
    queue_bdp: Range
    """Queue, in bandwidth-delay products; uniform, at least four packets. Default: 1."""
    queue_packets: Range
    """Queue in packets instead, uniform on a logarithmic scale, at least four."""
    queue_ms: Range
    """Queue in ms at the link's rate instead; uniform, at least four packets."""
    traces: Sequence[Trace]
    """Files of traces, or mahimahi's lists of milliseconds: one is drawn for the direction of the data instead of a
    rate."""
    trace_offset_s: Range
    """Offset in the trace at which an episode begins, seconds; uniform. Default: anywhere."""


class Rivals(TypedDict, total=False):
    """Flows of classical algorithms next to the learning ones. Each draws its algorithm, path and start."""

    count: int | Sequence[int]
    """Their number, or `[min, max]`. Default: none."""
    algorithms: Sequence[str]
    """Names as in `ropewalk list algorithms`. Default: CUBIC."""
    start_s: Range
    """Start, seconds. Default: 0."""


class PolicyKeys(TypedDict, total=False):
    """What a policy sees, what its answers change, and what it is to maximise."""

    observation: str | Sequence[str]
    """A preset (`aurora`, `orca`, `sage`) or names of `features()`. Default: `aurora`. None with `decides="packet"`."""
    history: int
    """Number of intervals in an observation. Default: 10 for `aurora`, otherwise 1."""
    action: str
    """`rate_change(delta)`, `rate(min, max)`, `window_change(exponent)` or `cubic_steering(exponent)`. Default:
    `rate_change`."""
    interval: str
    """Time between decisions: `10ms`, the default, another time, or `rtt`."""
    reward: Reward
    """A preset, or weights of features. Default: `aurora`; `sage_friendliness` for `parallel_env`."""


class Keys(PolicyKeys, total=False):
    """What all environments with drawn worlds have in common."""

    rivals: Rivals
    """The ranges from which flows next to the learning ones are drawn. Default: none."""
    duration_s: float
    """Length of an episode, seconds. Default: 10."""


class Feature(NamedTuple):
    """A number that a policy can observe, of each path and interval."""

    name: str
    """As `observation` and `reward` take it."""
    unit: str
    """Its unit; empty for ratios, states and actions."""
    low: float
    """The smallest value that it can have; minus infinity if there is none."""
    high: float
    """The largest value that it can have; infinity if there is none."""
    description: str
    """What it is, with its source."""


_PATH: PathRanges = {"rate_mbps": [2, 50], "rtt_ms": [10, 100], "queue_bdp": [0.5, 4]}
SINGLE_PATH: Sequence[PathRanges] = (_PATH,)
MULTIPATH: Sequence[PathRanges] = (_PATH, _PATH)


def features() -> list[Feature]:
    """The features that `observation` may name; `reward` takes those of an interval, without the windows at the end."""
    return [Feature(name, unit, low, high, description) for name, unit, (low, high), description in FEATURES]


def packet_features() -> tuple[list[Feature], list[Feature]]:
    """What is observed with `decides="packet"`: numbers of each path, and after all paths those of the connection."""

    def listed(rows: list[tuple[str, str, str]]) -> list[Feature]:
        return [Feature(name, unit, 0.0, math.inf if unit else 1.0, text) for name, unit, text in rows]

    of_path, of_connection = PACKET_FEATURES
    return listed(of_path), listed(of_connection)


def config(keys: Mapping[str, Any]) -> str:
    """The configuration of the native environments: JSON. Keys that are None take their defaults."""
    plain = {key: _plain(key, value) for key, value in keys.items() if value is not None}
    if isinstance(plain.get("observation"), list):
        plain["observation"] = ",".join(map(str, plain["observation"]))
    return json.dumps(plain)


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

    The middle of rate, RTT and packets is the geometric one.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"a share of {share}; it has to be from 0 to 1")
    return [_narrowed(path, share) for path in paths]


def _narrowed(path: PathRanges, share: float) -> PathRanges:
    narrowed: dict[str, Any] = dict(path)
    for key in ("rate_mbps", "rtt_ms", "loss", "queue_bdp", "queue_packets", "queue_ms"):
        if key not in narrowed:
            continue
        bounds = narrowed[key]
        least, greatest = (bounds, bounds) if isinstance(bounds, (int, float)) else bounds
        if key in ("rate_mbps", "rtt_ms", "queue_packets"):
            middle, factor = math.sqrt(least * greatest), math.sqrt(greatest / least) ** share
            narrowed[key] = [middle / factor, middle * factor]
        else:
            middle, half = (least + greatest) / 2, (greatest - least) / 2 * share
            narrowed[key] = [middle - half, middle + half]
    return narrowed  # type: ignore[return-value]
