"""The extension module. One block per file of `python/src`."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, final

from numpy.typing import NDArray

__version__: str

# learning.rs

MEASURES: list[str]
FEATURES: list[tuple[str, str, list[float], str]]
PACKET_FEATURES: tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]

_World: TypeAlias = tuple[int, list[tuple[str, str]], str | None]  # seed, cell, and the text of a drawn world

@final
class Record:
    """The record of an episode."""

    def results(self, scenario: Scenario) -> Results: ...

class Environments:
    """Learning environments of one configuration. Each array has one row per environment."""

    def __init__(self, config: str, count: int, threads: int) -> None: ...
    def set_config(self, config: str) -> None: ...
    def reset(self, seeds: Sequence[int | None], mask: Sequence[bool], observations: Any, measures: Any) -> None: ...
    def step(self, actions: Any, observations: Any, rewards: Any, truncated: Any, measures: Any) -> None: ...
    def awaits(self, index: int, learner: int) -> bool: ...
    def describe(self, index: int) -> str: ...
    def world(self, index: int) -> _World | None: ...
    def record(self, index: int) -> Record | None: ...
    def baseline(
        self, index: int, name: str | None, seed: int | None
    ) -> tuple[list[float], list[float], _World, Record]: ...
    @property
    def decides(self) -> str: ...
    @property
    def flows(self) -> list[str]: ...
    @property
    def learners(self) -> int: ...
    @property
    def action_size(self) -> int: ...
    @property
    def action_limit(self) -> float: ...
    @property
    def observation_range(self) -> list[list[float]]: ...
    @property
    def meaning(self) -> tuple[str, int, str, str, int]: ...
    @property
    def packet_hops(self) -> int: ...

# algorithm

@final
class PathUp:
    """The path can be used from now on."""
    @property
    def mss(self) -> int:
        """Payload of a full packet, bytes."""
    @property
    def initial_window(self) -> int:
        """Initial window, packets."""
    @property
    def rtt_ns(self) -> int | None:
        """RTT of the handshake, if there is one."""
    @property
    def tick_ns(self) -> int:
        """The host's timer tick."""
    @property
    def cwnd_clamp(self) -> int:
        """Maximum window, packets."""
    @property
    def reduction(self) -> Reduction:
        """How a window is reduced to the threshold."""
    @property
    def seed(self) -> int:
        """Seed for `random.Random`, drawn from the run's random stream."""

@final
class PathDown:
    """The path was removed."""

@final
class Ack:
    """An acknowledgement; after all other events that it causes. Counts are packets."""
    @property
    def acked(self) -> int:
        """Newly delivered, cumulatively or selectively."""
    @property
    def pkts_acked(self) -> int:
        """Removed from the head of the send queue or newly SACKed."""
    @property
    def lost(self) -> int:
        """Newly marked lost."""
    @property
    def marked(self) -> int:
        """Newly reported as CE-marked."""
    @property
    def sent(self) -> int:
        """Sent since the last acknowledgement, or since the episode began if that is later."""
    @property
    def prior_in_flight(self) -> int:
        """In flight before this acknowledgement."""
    @property
    def in_flight(self) -> int:
        """In flight now."""
    @property
    def until_departure_ns(self) -> int:
        """Time until the pacer lets the next packet leave; zero if it may leave now."""
    @property
    def rtt_ns(self) -> int | None:
        """RTT of the newest packet that was acknowledged and never retransmitted."""
    @property
    def srtt_ns(self) -> int | None:
        """Smoothed RTT (RFC 6298)."""
    @property
    def min_rtt_ns(self) -> int | None:
        """Minimum RTT in the connection's filter."""
    @property
    def one_way_delay_ns(self) -> int | None:
        """Delay from sender to receiver of the newest packet delivered."""
    @property
    def rate_sample(self) -> RateSample | None:
        """Delivery-rate sample, if this acknowledgement made a valid one."""
    @property
    def newest_delivered(self) -> SendState | None:
        """Send state of the newest packet delivered."""
    @property
    def newest_lost(self) -> SendState | None:
        """Send state of the newest packet marked lost."""
    @property
    def delivered(self) -> int:
        """Packets ever delivered on this path, including these."""
    @property
    def snd_una(self) -> int:
        """Cumulative acknowledgement number, packets."""
    @property
    def snd_nxt(self) -> int:
        """Number of the next new packet."""
    @property
    def una_advanced(self) -> bool:
        """Whether `snd_una` moved."""
    @property
    def is_predicted(self) -> bool:
        """Whether header prediction took it: it advances, with the same window, without SACK blocks and echoes."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the congestion window limited the last window of data."""
    @property
    def may_raise_cwnd(self) -> bool:
        """Whether this acknowledgement may raise the window."""
    @property
    def prior_ca_state(self) -> CaState:
        """The state before this acknowledgement."""
    @property
    def ca_state(self) -> CaState:
        """The state after this acknowledgement."""

@final
class RateSample:
    """A delivery-rate sample."""
    @property
    def delivered(self) -> int:
        """Packets delivered over `interval_ns`."""
    @property
    def interval_ns(self) -> int:
        """The longer of the send and the acknowledgement interval."""
    @property
    def prior_delivered(self) -> int:
        """Packets delivered when the newest packet of this acknowledgement was sent."""
    @property
    def app_limited(self) -> bool:
        """Whether the path was application-limited."""
    @property
    def ack_delayed(self) -> bool:
        """Whether the interval probably includes the wait for a delayed acknowledgement."""

@final
class SendState:
    """State of a path when a packet was last sent, and counts since then."""
    @property
    def tx_in_flight(self) -> int:
        """Packets in flight at that time, including this packet."""
    @property
    def lost(self) -> int:
        """Packets marked lost since then."""
    @property
    def marked(self) -> int:
        """Packets reported as CE-marked since then."""
    @property
    def app_limited(self) -> bool:
        """Whether the path was application-limited at that time."""

@final
class AckProgress:
    """The content of an acknowledgement, before the events that it may cause; only if it may cause one."""
    @property
    def acked(self) -> int:
        """Packets newly delivered."""
    @property
    def pkts_acked(self) -> int:
        """Packets removed from the head of the send queue or newly SACKed."""
    @property
    def marked(self) -> int:
        """Packets newly reported as CE-marked."""
    @property
    def in_flight(self) -> int:
        """Packets in flight, before any is found lost."""
    @property
    def rtt_ns(self) -> int | None:
        """RTT of the newest packet that was acknowledged and never retransmitted."""
    @property
    def one_way_delay_ns(self) -> int | None:
        """Delay from sender to receiver of the newest packet delivered; None if the two share no clock."""
    @property
    def snd_una(self) -> int:
        """Cumulative acknowledgement number, packets."""
    @property
    def snd_nxt(self) -> int:
        """Number of the next new packet."""
    @property
    def is_predicted(self) -> bool:
        """Whether header prediction took it: it advances, with the same window, without SACK blocks and echoes."""

@final
class Congestion:
    """Congestion: one event per episode."""
    @property
    def cause(self) -> Cause:
        """The sign of congestion."""
    @property
    def reduce_cwnd(self) -> bool:
        """False for a timeout within an episode in which the window was already reduced."""
    @property
    def in_flight(self) -> int:
        """Packets in flight without lost ones."""
    @property
    def by_timer(self) -> bool:
        """Whether a timer found it, not an acknowledgement."""

@final
class SpuriousLoss:
    """The latest reduction was spurious."""

@final
class Recovered:
    """An episode of `CWR` or `RECOVERY` is over."""
    @property
    def to_ssthresh(self) -> bool:
        """Whether the window is set to the threshold; false if the episode was undone."""

@final
class WindowRestart:
    """The application writes after an idle time of more than the RTO: the window restarts (RFC 2861)."""
    @property
    def idle_ns(self) -> int:
        """Time since the last packet was sent."""
    @property
    def rto_ns(self) -> int:
        """The retransmission timeout at that moment."""

@final
class IdleRestart:
    """A packet is sent and nothing is in flight."""
    @property
    def idle_ns(self) -> int:
        """Time since the last packet was sent."""
    @property
    def rto_ns(self) -> int:
        """The retransmission timeout at that moment."""
    @property
    def app_limited(self) -> bool:
        """Whether the application had nothing to send."""

@final
class ApplicationLimited:
    """The application left the window unused for a whole retransmission timeout (RFC 2861)."""
    @property
    def cwnd_used(self) -> int:
        """Maximum number of packets in flight during that time."""

@final
class Penalise:
    """The path blocks the others of its connection: halve its window."""

@final
class MssChanged:
    """The payload of a full packet changed."""
    @property
    def mss(self) -> int:
        """Bytes."""

@final
class Cause:
    """A sign of congestion."""

    LOSS: Cause
    TIMEOUT: Cause
    ECN_MARK: Cause
    LOCAL_DROP: Cause
    TLP_RECOVERY: Cause
    REQUESTED: Cause
    def __int__(self) -> int: ...
    def __lt__(self, other: Cause) -> bool: ...
    def __le__(self, other: Cause) -> bool: ...
    def __gt__(self, other: Cause) -> bool: ...
    def __ge__(self, other: Cause) -> bool: ...

@final
class CaState:
    """Congestion state of a sender, in the order of Linux `enum tcp_ca_state`."""

    OPEN: CaState
    DISORDER: CaState
    CWR: CaState
    RECOVERY: CaState
    LOSS: CaState
    def __int__(self) -> int: ...
    def __lt__(self, other: CaState) -> bool: ...
    def __le__(self, other: CaState) -> bool: ...
    def __gt__(self, other: CaState) -> bool: ...
    def __ge__(self, other: CaState) -> bool: ...

@final
class Reduction:
    """How a window is reduced to the threshold."""

    PROPORTIONAL: Reduction
    HALVING: Reduction
    def __int__(self) -> int: ...
    def __lt__(self, other: Reduction) -> bool: ...
    def __le__(self, other: Reduction) -> bool: ...
    def __gt__(self, other: Reduction) -> bool: ...
    def __ge__(self, other: Reduction) -> bool: ...

@final
class Decision:
    """The limits that a controller sets for a path. Windows are whole packets: fractions are cut off.

    Raises `ValueError` for a window below one packet, for a rate that is not above zero, and for NaN.
    """

    def __new__(cls, cwnd: float, ssthresh: float = ..., pacing_rate_bps: float | None = None) -> Decision: ...
    @property
    def cwnd(self) -> int:
        """Congestion window: packets that may be in flight."""
    @property
    def ssthresh(self) -> float:
        """Slow-start threshold, packets; infinite before the first congestion."""
    @property
    def pacing_rate_bps(self) -> int | None:
        """Pacing rate; `None` for an algorithm that is clocked by acknowledgements."""

@final
class CwndState:
    """A path's congestion window and related state, as in Linux's `tcp_sock`. Windows are in packets."""

    cwnd: int
    """Congestion window."""
    ssthresh: float
    """Slow-start threshold; infinite before the first congestion."""
    cwnd_cnt: int
    """Packets acknowledged that have not raised the window yet."""
    @property
    def cwnd_clamp(self) -> int:
        """Maximum window."""
    @property
    def prior_cwnd(self) -> int:
        """The window before the latest reduction."""
    @property
    def mss(self) -> int:
        """Payload of a full packet, bytes."""
    @property
    def tick_ns(self) -> int:
        """The host's timer tick."""
    @property
    def ca_state(self) -> CaState:
        """The sender's congestion state."""
    @property
    def in_slow_start(self) -> bool:
        """Whether the window is below the threshold."""
    def slow_start(self, acked: int) -> int:
        """Grow by the packets acknowledged up to the threshold (Linux `tcp_slow_start`); returns those left over."""
    def cong_avoid_ai(self, w: int, acked: int) -> None:
        """Add a packet per `w` packets acknowledged (Linux `tcp_cong_avoid_ai`)."""

@final
class PathView:
    """State of a path."""
    @property
    def has_room(self) -> bool:
        """Whether the path takes a packet now."""
    @property
    def active(self) -> bool:
        """Whether the path is established, and neither failed nor stale."""
    @property
    def backup(self) -> bool:
        """Whether the path is used only while no regular path is active."""
    @property
    def srtt_ns(self) -> int:
        """Smoothed round-trip time; zero before the first sample."""
    @property
    def rttvar_ns(self) -> int:
        """Mean deviation of the round-trip time."""
    @property
    def cwnd(self) -> int:
        """Congestion window, packets."""
    @property
    def ssthresh(self) -> int:
        """Slow-start threshold, packets."""
    @property
    def in_flight(self) -> int:
        """Packets in flight."""
    @property
    def queued(self) -> int:
        """Packets assigned to the path that have not been sent yet."""
    @property
    def pacing_rate_bps(self) -> int:
        """Pacing rate."""
    @property
    def delivery_rate_bps(self) -> int:
        """Maximum delivery rate of the latest ten round trips; zero before the first sample."""
    @property
    def phantom_queue_delay_ns(self) -> int | None:
        """Delay of a phantom queue; `None` if it is not counted."""
    @property
    def buffered_packets(self) -> int:
        """Packets in the path's send buffer: in flight, and not sent yet."""
    @property
    def cwnd_space(self) -> int:
        """Packets that the congestion window allows beyond the buffered ones."""

@final
class SchedulerView:
    """State of the paths and of the data to send."""
    @property
    def now_ns(self) -> int:
        """The current time."""
    @property
    def packet_bytes(self) -> int:
        """Bytes of the next packet."""
    @property
    def paths(self) -> list[PathView]:
        """All paths; a path's number is its position."""
    @property
    def snd_nxt(self) -> int:
        """Sequence number of the oldest packet that has not been sent on any path."""
    @property
    def snd_una(self) -> int:
        """Sequence number of the oldest packet that is not acknowledged as a whole."""
    @property
    def unsent_packets(self) -> int:
        """Packets that wait to be sent for the first time; 2**64 - 1 if the source never ends."""
    @property
    def rwnd_left_packets(self) -> int:
        """Packets that the receive window still allows."""
    @property
    def rwnd_stalls(self) -> int:
        """Times that the receive window was full because of a slow path."""
    @property
    def sendable_packets(self) -> int:
        """New packets that may be sent now."""
    def usable_paths(self) -> list[tuple[int, PathView]]:
        """Paths that a packet may wait for: active ones, backups only while no other path is active."""
    def paths_with_room(self) -> list[tuple[int, PathView]]:
        """The usable paths that have room for a packet."""

@final
class Pick:
    """The next packet to send, and its path."""

    @staticmethod
    def next(path: int) -> Pick:
        """The oldest packet that has not been sent on any path."""
    @staticmethod
    def oldest_unacked(path: int) -> Pick:
        """The oldest packet that is not acknowledged and that this path has not carried."""
    @staticmethod
    def skip_ahead(path: int, packets: int) -> Pick:
        """As `next`, after skipping this many unsent packets."""
    @property
    def path(self) -> int: ...

@final
class Violation:
    """A rule that a class breaks. `str()` shows the whole report."""
    @property
    def rule(self) -> str:
        """The rule, in a few words."""
    @property
    def message(self) -> str:
        """What happened instead."""
    @property
    def steps(self) -> list[str]:
        """The steps that lead there, in order."""

def register_controller(cls: type, facts: dict[str, object], more: dict[str, object]) -> None: ...
def register_scheduler(cls: type, facts: dict[str, object], more: dict[str, object]) -> None: ...
def check_controller(cls: type, facts: dict[str, object], more: dict[str, object]) -> list[Violation]: ...
def check_scheduler(cls: type, facts: dict[str, object], more: dict[str, object]) -> list[Violation]: ...
def controllers() -> list[str]:
    """The names of all congestion controllers: the built-in ones, then the registered ones."""

def schedulers() -> list[str]:
    """The names of all schedulers: the built-in ones, then the registered ones."""

# policy.rs

class Policy:
    """A policy read from an ONNX file."""

    def __init__(self, path: str | PathLike[str]) -> None: ...
    def act(self, observation: Sequence[float] | Sequence[Sequence[float]] | NDArray[Any]) -> list[float]:
        """The action for an observation of n numbers, or of one row of n: the bits that the simulator and the tunnel
        get. A recurrent policy goes on from its last decision."""
    def reset(self) -> None:
        """Forgets the state of a recurrent policy, for another connection."""
    @property
    def notes(self) -> list[str]:
        """Notes on the file for the user, one sentence each, such as that its 64-bit floats were rounded."""
    @property
    def observation_size(self) -> int: ...
    @property
    def action_size(self) -> int: ...
    @property
    def metadata(self) -> dict[str, str]: ...

# scenario.rs

class Scenario:
    @staticmethod
    def parse(origin: str, text: str, base: str, sets: list[str], quick: bool) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def cells(self) -> list[list[tuple[str, str]]]: ...
    @property
    def effective_text(self) -> str | None: ...
    @property
    def is_short(self) -> bool: ...
    @property
    def hash(self) -> str: ...

def built_in() -> list[tuple[str, str, str]]: ...
def read_scenario(path: Path) -> str: ...
def schema() -> str: ...

# run.rs

def with_stored_seeds(scenario: Scenario, out: Path) -> list[int] | None: ...
def run(
    scenario: Scenario,
    jobs: int | None,
    out: Path | None,
    progress: Callable[[int, int], None] | None,
    command: list[str],
) -> tuple[Results, BaseException | None]: ...

# shard.rs

class Gather:
    def __init__(self, scenario: Scenario, dir: Path, command: list[str]) -> None: ...
    def divide(self, count: int) -> list[list[tuple[int, int]]]: ...
    def add(self, dir: Path) -> int: ...
    def progress(self) -> tuple[int, int]: ...
    def finish(self) -> Results: ...

def run_shard(
    scenario: Scenario,
    shard: tuple[int, int],
    keys: list[tuple[int, int]],
    jobs: int,
    dir: Path,
    command: list[str],
) -> BaseException | None: ...

# results.rs

class Results:
    @staticmethod
    def open(dir: Path) -> Results: ...
    @property
    def manifest(self) -> str: ...
    def __len__(self) -> int: ...
    def table(self, name: str) -> Table: ...
    def page(self) -> str: ...
    def html_tables(self) -> str: ...
    def text(self, width: int) -> str: ...
    def estimates(
        self, value: str, flow: str | None, only: dict[str, list[str]], by_flow: bool
    ) -> list[tuple[dict[str, str], float, float | None, int]]: ...
    def save(self, dir: Path) -> None: ...

# table.rs

class Table:
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def to_dict(self, rows: int | None = None) -> dict[str, list[Any]]: ...

# colour.rs

def looks(names: list[str]) -> list[tuple[tuple[str, str], list[float], str]]: ...
def path_colour(index: int) -> tuple[str, str]: ...

# calibration.rs

def fit(to: list[Path], choices: Mapping[str, object]) -> str: ...
def write_fit(document: str, folder: Path) -> Path: ...
def fit_text(document: str) -> str: ...

# quantity.rs

def quantity(text: str) -> tuple[float, str]: ...
def value_label(value: str) -> str: ...

# trace.rs

def trace_run(
    scenario: Scenario, cell: list[str], seed: int, files: dict[str, Path | str | bool | None]
) -> tuple[list[tuple[str, str]], str]: ...
def trace_events(scenario: Scenario, cell: list[str], seed: int) -> Table: ...
def capture_events(path: Path, at: str | None) -> Table: ...
