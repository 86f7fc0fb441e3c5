"""Congestion controllers and schedulers in Python. docs/how-to/write-an-algorithm.md shows one.

The events, their fields and the decision are those of the built-in algorithms. Windows are packets; a time is an
integer of nanoseconds and ends in `_ns`, a rate is bits per second and ends in `_bps`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from . import _code, _native
from ._native import (
    Ack,
    AckProgress,
    ApplicationLimited,
    CaState,
    Cause,
    Congestion,
    CwndState,
    Decision,
    IdleRestart,
    MssChanged,
    PathDown,
    PathUp,
    PathView,
    Penalise,
    Pick,
    RateSample,
    Recovered,
    Reduction,
    SchedulerView,
    SendState,
    SpuriousLoss,
    Violation,
    WindowRestart,
    controllers,
    schedulers,
)

__all__ = [
    "Ack",
    "AckProgress",
    "ApplicationLimited",
    "CaState",
    "Cause",
    "Choice",
    "Congestion",
    "CongestionOps",
    "Controller",
    "CwndState",
    "Decision",
    "IdleRestart",
    "MssChanged",
    "Number",
    "PathController",
    "PathDown",
    "PathEvent",
    "PathUp",
    "PathView",
    "Penalise",
    "Pick",
    "RateSample",
    "Recovered",
    "Reduction",
    "Scheduler",
    "SchedulerView",
    "SendState",
    "SpuriousLoss",
    "Violation",
    "WindowRestart",
    "check_controller",
    "check_scheduler",
    "controllers",
    "register_controller",
    "register_scheduler",
    "schedulers",
]

PathEvent: TypeAlias = (
    PathUp
    | PathDown
    | AckProgress
    | Ack
    | Congestion
    | SpuriousLoss
    | Recovered
    | WindowRestart
    | IdleRestart
    | ApplicationLimited
    | Penalise
    | MssChanged
)
"""What a sender reports of a path to its controller."""


@dataclass(frozen=True)
class Number:
    """A parameter that is a number from `min` to `max`."""

    name: str
    description: str
    default: float
    min: float
    max: float


@dataclass(frozen=True)
class Choice:
    """A parameter that is one of `choices`; the first is the default."""

    name: str
    description: str
    choices: Sequence[str]


class _Registered(ABC):
    """The declarations of controllers and schedulers."""

    name: ClassVar[str]
    """The name in scenarios: lower-case letters, digits, `-` and `_`."""
    title: ClassVar[str]
    """A description in one line."""
    source: ClassVar[str]
    """RFC, paper, or author of the idea."""
    aliases: ClassVar[Sequence[str]] = ()
    """Other names."""
    parameters: ClassVar[Sequence[Number | Choice]] = ()
    """The parameters that a scenario may set."""


class _Controlling(_Registered):
    """The declarations of controllers."""

    ecn: ClassVar[Literal["classic", "per-packet"]] = "classic"
    """ECN feedback: RFC 3168, or an echo of each packet's mark (RFC 8257)."""
    min_cwnd: ClassVar[int] = 2
    """The minimum window outside a reduction, packets."""
    deviations: ClassVar[Mapping[str, str]] = {}
    """Rules of `check_controller` that it breaks, each with the reason: `raises-unfilled-cwnd`,
    `keeps-cwnd-on-undo`, `sets-cwnd-on-recovered`, `reduces-on-loss-after-mark`."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        """`parameters` has a value for each declared parameter."""


class CongestionOps(_Controlling):
    """A window-based algorithm, one instance per path: the operations of Linux's `tcp_congestion_ops`.

    Proportional rate reduction, one reduction per window, undo and the restart after idling are supplied. Further
    operations are called if a class has them: `init(state, path, now_ns)` when the path comes up,
    `pkts_acked(state, progress, now_ns)` for every acknowledgement before it ends a reduction or begins one,
    `on_ack(state, ack, now_ns)` after that, `set_state(state, next, now_ns)` before the congestion state changes,
    `undo_cwnd(state)`, which returns the window after a loss that proved spurious.
    """

    @abstractmethod
    def cong_avoid(self, state: CwndState, acked: int, ack: Ack, now_ns: int) -> None:
        """`acked` packets were delivered and the window may grow: set `state.cwnd`, in slow start too."""

    @abstractmethod
    def ssthresh(self, state: CwndState, now_ns: int) -> float:
        """The slow-start threshold after congestion, packets."""


class PathController(_Controlling):
    """A controller of one path, with one instance per path, which decides everything itself."""

    @abstractmethod
    def on_event(self, event: PathEvent, now_ns: int) -> Decision:
        """Handle an event. The first one of a path is `PathUp`."""


class Controller(_Controlling):
    """A controller of all paths of a connection, which it couples."""

    single_path: ClassVar[str | None] = None
    """The single-path algorithm that it equals on a single path, for `check_controller`."""

    @abstractmethod
    def on_event(self, path: int, event: PathEvent, now_ns: int) -> Decision:
        """Handle an event of `path` and return the decision for it. The first event of a path is `PathUp`."""


class Scheduler(_Registered):
    """A packet scheduler: which path carries the next packet."""

    needs: ClassVar[Literal["measurements", "nothing"]] = "measurements"
    """Whether it uses more than the list of paths with room."""
    fill: ClassVar[Literal["cwnd", "send-buffer"]] = "cwnd"
    """The place where packets wait: the connection, until a window has room, or the path."""

    def __init__(self, parameters: Mapping[str, Any], weights: Sequence[int], first: int) -> None:
        """`weights` of the paths, if there are any; `first` is the position in its cycle at which it starts."""

    @abstractmethod
    def pick(self, view: SchedulerView) -> Pick | None:
        """The next packet and its path, of `view.paths_with_room()`; `None` to wait."""


C = TypeVar("C", bound=type[CongestionOps] | type[PathController] | type[Controller])
S = TypeVar("S", bound=type[Scheduler])

_registered: dict[str, type[_Registered]] = {}
"""The classes that were registered here, by name."""


def register_controller(cls: C) -> C:
    """Register a controller class, as a decorator too: scenarios may then name it. A class of the same name that was
    registered before is replaced; built-in ones cannot be. Raises `ValueError`."""
    _native.register_controller(cls, _facts(cls), _controller_facts(cls))
    _registered[cls.name] = cls
    return cls


def register_scheduler(cls: S) -> S:
    """Register a scheduler class, as `register_controller` does a controller class."""
    _native.register_scheduler(cls, _facts(cls), _scheduler_facts(cls))
    _registered[cls.name] = cls
    return cls


def check_controller(cls: type[CongestionOps] | type[PathController] | type[Controller]) -> list[Violation]:
    """The rules of congestion control that a class breaks, each with the steps that show it: those that the built-in
    algorithms are tested with. The class need not be registered."""
    return _native.check_controller(cls, _facts(cls), _controller_facts(cls))


def check_scheduler(cls: type[Scheduler]) -> list[Violation]:
    """The rules of packet schedulers that a class breaks, as `check_controller`."""
    return _native.check_scheduler(cls, _facts(cls), _scheduler_facts(cls))


def register_again(classes: Sequence[type[_Registered]]) -> None:
    """Register classes that a process which unpickles a scenario does not know."""
    for cls in classes:
        if _registered.get(cls.name) is not cls:
            if issubclass(cls, Scheduler):
                register_scheduler(cls)
            else:
                register_controller(cls)  # type: ignore[type-var]


def named_in(texts: Sequence[str]) -> list[type[_Registered]]:
    """The classes that were registered here and whose names occur in one of the texts of a scenario."""

    def is_named(cls: type[_Registered]) -> bool:
        return any(name in text for name in (cls.name, *cls.aliases) for text in texts)

    return [cls for cls in _registered.values() if is_named(cls)]


def _facts(cls: type[_Registered]) -> dict[str, object]:
    for fact in ("name", "title", "source"):
        if not isinstance(getattr(cls, fact, None), str):
            raise TypeError(f"{cls.__name__} needs a class attribute `{fact}` with a text")
    # A class that another process has sent by value has no source here.
    if "_code_version" not in vars(cls):
        cls._code_version = _code.version(cls)  # type: ignore[attr-defined]
    return {
        "name": cls.name,
        "aliases": list(cls.aliases),
        "title": cls.title,
        "source": cls.source,
        "parameters": [_parameter(parameter) for parameter in cls.parameters],
        "code_version": vars(cls)["_code_version"],
    }


def _parameter(parameter: Number | Choice) -> tuple[str, str, tuple[float, float, float] | None, list[str]]:
    if isinstance(parameter, Number):
        return parameter.name, parameter.description, (parameter.default, parameter.min, parameter.max), []
    return parameter.name, parameter.description, None, list(parameter.choices)


def _controller_facts(cls: type[_Controlling]) -> dict[str, object]:
    kinds = {CongestionOps: "window", PathController: "path", Controller: "group"}
    kind = next((kind for base, kind in kinds.items() if issubclass(cls, base)), None)
    if kind is None:
        raise TypeError(f"{cls.__name__} is not a CongestionOps, PathController or Controller")
    return {
        "kind": kind,
        "per_packet_ecn": {"classic": False, "per-packet": True}[cls.ecn],
        "min_cwnd": cls.min_cwnd,
        "deviations": list(cls.deviations.items()),
        "single_path": getattr(cls, "single_path", None),
    }


def _scheduler_facts(cls: type[Scheduler]) -> dict[str, object]:
    if not issubclass(cls, Scheduler):
        raise TypeError(f"{cls.__name__} is not a Scheduler")
    return {
        "needs_measurements": {"nothing": False, "measurements": True}[cls.needs],
        "fills_send_buffer": {"cwnd": False, "send-buffer": True}[cls.fill],
    }
