"""Algorithms for the tests, in a module that other processes can import."""

from __future__ import annotations

from ropewalk import register_controller, register_scheduler
from ropewalk.algorithm import (
    Ack,
    Choice,
    CongestionOps,
    Controller,
    CwndState,
    Decision,
    Number,
    PathController,
    PathEvent,
    PathUp,
    Pick,
    Scheduler,
    SchedulerView,
)


@register_controller
class PyReno(CongestionOps):
    """Reno, as the built-in one."""

    name = "py-reno"
    title = "Reno in Python"
    source = "RFC 5681"

    def cong_avoid(self, state: CwndState, acked: int, ack: Ack, now_ns: int) -> None:
        if state.in_slow_start:
            acked = state.slow_start(acked)
        if acked > 0:
            state.cong_avoid_ai(state.cwnd, acked)

    def ssthresh(self, state: CwndState, now_ns: int) -> float:
        return max(state.cwnd // 2, 2)


@register_controller
class FixedWindow(PathController):
    """A window that stays."""

    name = "py-fixed"
    title = "a fixed window"
    source = "a test"
    parameters = (
        Number("packets", "the window, packets", default=10, min=1, max=1000),
        Choice("pace", "pacing", ["off", "on"]),
    )

    def on_event(self, event: PathEvent, now_ns: int) -> Decision:
        return self.decision

    def __init__(self, parameters: dict[str, float | str]) -> None:
        packets = float(parameters["packets"])
        self.decision = Decision(packets, pacing_rate_bps=1e6 if parameters["pace"] == "on" else None)


@register_controller
class SharedWindow(Controller):
    """A window that the paths of a connection share equally."""

    name = "py-shared"
    title = "forty packets for all paths together"
    source = "a test"

    def __init__(self, parameters: object) -> None:
        self.paths: set[int] = set()

    def on_event(self, path: int, event: PathEvent, now_ns: int) -> Decision:
        if isinstance(event, PathUp):
            self.paths.add(path)
        return Decision(40 / len(self.paths))


@register_scheduler
class PyMinRtt(Scheduler):
    """As the built-in minrtt."""

    name = "py-minrtt"
    title = "least smoothed RTT"
    source = "a test"

    def pick(self, view: SchedulerView) -> Pick | None:
        if view.sendable_packets == 0:
            return None
        paths = view.paths_with_room()
        return Pick.next(min(paths, key=lambda item: item[1].srtt_ns)[0]) if paths else None
