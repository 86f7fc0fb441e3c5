//! An experiment as resolved, plain data: what a driver needs to run one cell of a sweep once.
//!
//! Names are resolved to indices, and quantities have types.

mod application;
mod capacity;
mod tunnel;
mod variation;

pub use application::{Application, Distribution, Playback, Requests, Video};
pub use machine::{NEEDS_CONGESTION, OFF, TunnelOptions};
pub use params::AlgorithmChoice;
pub use transport::mptcp::{MptcpStack, SendBufferRule};
pub use transport::tcp::sender::LossRecovery;
pub use tunnel::{Device, Nuisances, Relay, Resequence, Ropewalk, Tunnel, WakeUp};
pub use variation::{Handover, RateWalk, standard_normal};

use link::{LossModel, PipeConfig};
use units::{Instant, Rate, Span};

/// One experiment, ready to run with any seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Short name, from the file.
    pub name: String,
    /// The length of a run.
    pub duration: Span,
    /// Interval of the time series, if the scenario asks for them.
    pub sample: Option<Span>,
    /// Links, each with two directions.
    pub links: Vec<Link>,
    /// Paths from the sending side to the receiving side: chains of links.
    pub paths: Vec<Path>,
    /// The tunnel that stripes flows over its paths, if there is one.
    pub tunnel: Option<Tunnel>,
    /// Traffic.
    pub flows: Vec<Flow>,
    /// Changes of links, in order of time.
    pub events: Vec<Change>,
}

/// A full-duplex link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name, unique.
    pub name: String,
    /// From the sending to the receiving side.
    pub forward: PipeConfig,
    /// From the receiving to the sending side.
    pub reverse: PipeConfig,
    /// Handovers, which change the delay of both directions.
    pub handover: Option<Handover>,
    /// Random walks of the rates of both directions, which start at the rates of `forward` and `reverse`.
    pub rate_walks: [Option<RateWalk>; 2],
    /// Whether each direction begins anywhere in its trace. One draw serves both, which may be recorded together.
    pub random_trace_offset: [bool; 2],
}

impl Link {
    /// A link that changes only at events of its experiment.
    #[must_use]
    pub fn new(name: String, forward: PipeConfig, reverse: PipeConfig) -> Self {
        Self { name, forward, reverse, handover: None, rate_walks: [None; 2], random_trace_offset: [false; 2] }
    }
}

/// A chain of links from the sending to the receiving side.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Name, unique.
    pub name: String,
    /// Indices into [`Experiment::links`], in the order data packets cross them.
    pub links: Vec<usize>,
    /// The first of the links that data packets cross from their far end to their near end, and so all that follow it: in
    /// a tree, where the path turns down. The number of links, if there is none.
    pub turn: usize,
    /// Largest packet, bytes, IP header included.
    pub mtu: u32,
}

/// One source of traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Name, unique.
    pub name: String,
    /// The name without the copy's number, if the flow is one of several alike.
    pub copy_of: Option<String>,
    /// The route of its packets.
    pub route: Route,
    /// The earliest start.
    pub start: Instant,
    /// The maximum random delay of its start.
    pub start_within: Span,
    /// The instant at which its source stops, if before the end of the run.
    pub stop: Option<Instant>,
    /// Whether its data goes from the far end of the paths to the near end.
    pub reverse: bool,
    /// The kind of the flow.
    pub kind: FlowKind,
}

/// The route of a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Over one path (index into [`Experiment::paths`]).
    Path(usize),
    /// Into the tunnel.
    Tunnel,
    /// Over several paths: those of the connection's subflows.
    Subflows,
}

/// The kind of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowKind {
    /// A TCP connection.
    Tcp {
        /// The congestion control.
        congestion: AlgorithmChoice,
        /// The application.
        application: Application,
        /// Bytes to send, or as much as possible.
        size: Option<u64>,
        /// Settings of the two hosts.
        host: Box<Host>,
        /// The connection's subflows, if it is an MPTCP or multipath QUIC connection.
        multipath: Option<Box<Multipath>>,
    },
    /// UDP at a constant rate.
    ConstantRate {
        /// Rate of the datagrams with their IP and UDP headers.
        rate: Rate,
        /// Bytes of one datagram with its IP and UDP headers.
        packet: u32,
    },
    /// A connection of a stack that the program hosts.
    Hosted(Box<Hosted>),
}

/// The configuration of a connection of a hosted stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Hosted {
    /// The stack.
    pub stack: AlgorithmChoice,
    /// The congestion control; none for the stack's default.
    pub congestion: Option<AlgorithmChoice>,
    /// Bytes to send, or as much as possible.
    pub size: Option<u64>,
    /// The rate at which the application writes; none for as fast as possible.
    pub rate: Option<Rate>,
    /// The client's requests, instead of a transfer.
    pub requests: Option<HostedRequests>,
    /// The paths of the connection. The first one opens it.
    pub subflows: Vec<Subflow>,
    /// Bytes of an IP header: 20, or 40 for IPv6.
    pub ip_header: u32,
}

/// Requests on the streams of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostedRequests {
    /// Sizes and pauses.
    pub requests: Requests,
    /// The number of requests that are under way at once.
    pub streams: u32,
}

/// The configuration of a connection over several paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Multipath {
    /// Its subflows, in QUIC its paths; the first opens the connection, the others join it.
    pub subflows: Vec<Subflow>,
    /// The scheduler, which picks the subflow of each packet.
    pub scheduler: AlgorithmChoice,
    /// One weight per subflow, for schedulers that have weights; empty if none are given.
    pub weights: Vec<u32>,
    /// The protocol.
    pub transport: MultipathTransport,
}

/// The protocol of a connection over several paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipathTransport {
    /// MPTCP (RFC 8684).
    Mptcp(Mptcp),
    /// Multipath QUIC (draft-ietf-quic-multipath-21).
    Quic(Quic),
}

/// Settings of an MPTCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mptcp {
    /// The stack whose rules for reinjection the sender follows.
    pub stack: MptcpStack,
    /// While the receive window or the send buffer is full: send the oldest data again on a faster subflow.
    pub opportunistic_retransmission: bool,
    /// In that case, also halve the congestion window of the subflow that has the data.
    pub penalisation: bool,
    /// Bytes of the DSS option on a data segment; the payload of a full segment is that much smaller.
    pub dss_option_bytes: u32,
}

/// Settings of a multipath QUIC connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quic {
    /// Streams, over which the data is spread evenly.
    pub streams: u32,
    /// Whether the thresholds of loss detection grow to the reordering that a path shows.
    pub adaptive_loss_thresholds: bool,
    /// Whether a reduction of the window is undone once all the losses that it answered have arrived.
    pub undo: bool,
}

impl Default for Quic {
    fn default() -> Self {
        Self { streams: 1, adaptive_loss_thresholds: true, undo: true }
    }
}

impl Multipath {
    /// Settings of MPTCP, if that is the protocol.
    #[must_use]
    pub fn mptcp(&self) -> Option<&Mptcp> {
        match &self.transport {
            MultipathTransport::Mptcp(mptcp) => Some(mptcp),
            MultipathTransport::Quic(_) => None,
        }
    }
}

/// One subflow of an MPTCP connection, or one path of a multipath QUIC connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subflow {
    /// Index into [`Experiment::paths`].
    pub path: usize,
    /// Used only while no other subflow can be (RFC 8684, B bit; QUIC: PATH_STATUS_BACKUP).
    pub backup: bool,
    /// The delay of its joining after the flow's start; it joins only when the connection is established.
    pub join: Span,
    /// The time after the flow's start at which it is removed (RFC 8684, REMOVE_ADDR; QUIC: PATH_ABANDON).
    pub leave: Option<Span>,
}

/// The TCP settings of a flow's two hosts. Defaults are Linux 6.1's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Payload of a full segment, bytes; `None`: what the path's or tunnel's MTU leaves.
    pub mss: Option<u32>,
    /// Initial window, segments.
    pub initial_window: u32,
    /// Bytes of an IP header: 20, or 40 for IPv6.
    pub ip_header: u32,
    /// `tcp_timestamps`.
    pub timestamps: bool,
    /// `tcp_sack`.
    pub sack: bool,
    /// `tcp_ecn`: negotiate ECN.
    pub ecn: bool,
    /// Acknowledge every packet instead of delaying.
    pub quick_ack: bool,
    /// Receive offload: packets merged before TCP sees them; 1 is off.
    pub gro: u32,
    /// `tcp_rmem`: the receive buffer, bytes.
    pub receive_buffer: TcpRmem,
    /// The Linux that the host follows where releases differ.
    pub release: LinuxRelease,
    /// The maximum of `tcp_wmem`: the send buffer, bytes.
    pub send_buffer: u64,
    /// The second value of `tcp_wmem`: the minimum size of the send buffer, bytes.
    pub initial_send_buffer: u64,
    /// `tcp_notsent_lowat`, bytes; `None`: no limit.
    pub notsent_lowat: Option<u64>,
    /// `tcp_slow_start_after_idle`.
    pub slow_start_after_idle: bool,
    /// `tcp_early_retrans`: tail-loss probes.
    pub early_retrans: bool,
    /// How large the send buffer of an MPTCP connection is with the upstream stack.
    pub mptcp_send_buffer: SendBufferRule,
    /// Pace every algorithm (the `fq` discipline), not only those that ask for it.
    pub pacing: bool,
    /// New data leaves in super-segments, unless it is paced, and data that does not fill one may wait.
    pub tso: bool,
    /// TCP small queues: a connection keeps about a millisecond of its rate in its host's own queue.
    pub small_queues: bool,
    /// `tcp_reordering`.
    pub reordering: u32,
    /// `tcp_max_reordering`.
    pub max_reordering: u32,
    /// The kernel's timer tick, 1/HZ: 4 ms on Debian and Ubuntu, 1 ms with HZ=1000, 10 ms in User-Mode Linux.
    pub tick: Span,
    /// Loss detection and recovery.
    pub recovery: LossRecovery,
    /// The connection is opened by a handshake; without it data leaves at once.
    pub handshake: bool,
    /// Retransmission timeout before the first RTT sample.
    pub initial_rto: Span,
    /// The maximum congestion window, and the maximum number of packets outstanding, whatever the receiver offers.
    pub window: Option<u32>,
}

/// The three values of `tcp_rmem`: the receive buffer, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpRmem {
    /// The minimum that is granted under memory pressure.
    pub min: u64,
    /// The size at the connection's start.
    pub default: u64,
    /// The size up to which autotuning enlarges it.
    pub max: u64,
}

/// Stable series of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinuxRelease {
    /// 6.1.
    V6_1,
    /// 6.12.
    V6_12,
    /// 6.18.
    V6_18,
}

impl Experiment {
    /// The relay that a flow's connection is split by, if there is one.
    #[must_use]
    pub fn relay_of(&self, flow: &Flow) -> Option<&Relay> {
        let is_relayed = flow.route == Route::Tunnel && matches!(flow.kind, FlowKind::Tcp { .. });
        self.tunnel.as_ref().filter(|_| is_relayed)?.relay()
    }
}

impl FlowKind {
    /// The subflows of an MPTCP connection, or the paths of a connection of multipath QUIC or of a hosted stack.
    #[must_use]
    pub fn subflows(&self) -> &[Subflow] {
        match self {
            Self::Tcp { multipath: Some(multipath), .. } => &multipath.subflows,
            Self::Hosted(hosted) => &hosted.subflows,
            Self::Tcp { .. } | Self::ConstantRate { .. } => &[],
        }
    }

    /// [`subflows`](Self::subflows), to be changed.
    pub(crate) fn subflows_mut(&mut self) -> &mut [Subflow] {
        match self {
            Self::Tcp { multipath: Some(multipath), .. } => &mut multipath.subflows,
            Self::Hosted(hosted) => &mut hosted.subflows,
            Self::Tcp { .. } | Self::ConstantRate { .. } => &mut [],
        }
    }
}

impl Host {
    /// Linux 6.1 (the stable series' latest).
    #[must_use]
    pub fn linux_6_1() -> Self {
        Self { mptcp_send_buffer: SendBufferRule::Largest, ..Self::default() }
    }

    /// Linux 6.12.
    #[must_use]
    pub fn linux_6_12() -> Self {
        Self { release: LinuxRelease::V6_12, ..Self::default() }
    }

    /// Linux 6.18, whose receive buffer grows to 32 MiB (since 6.16).
    #[must_use]
    pub fn linux_6_18() -> Self {
        let TcpRmem { min, default, .. } = Self::default().receive_buffer;
        Self {
            release: LinuxRelease::V6_18,
            receive_buffer: TcpRmem { min, default, max: 32 << 20 },
            ..Self::default()
        }
    }

    /// The hosts of ns-2.35: its one-way TCP-Linux agent and its `Sack1` sink as they stand in its `ns-default.tcl`.
    #[must_use]
    pub fn ns2() -> Self {
        Self {
            initial_window: 2,
            timestamps: false,
            quick_ack: true,
            receive_buffer: TcpRmem { min: 1 << 40, default: 1 << 40, max: 1 << 40 },
            send_buffer: 1 << 40,
            initial_send_buffer: 1 << 24,
            tick: Span::from_millis(1),
            recovery: LossRecovery::Fack,
            tso: false,
            small_queues: false,
            handshake: false,
            initial_rto: Span::from_secs(3),
            window: Some(20),
            ..Self::default()
        }
    }
}

impl Default for Host {
    fn default() -> Self {
        Self {
            mss: None,
            initial_window: 10,
            ip_header: 20,
            timestamps: true,
            sack: true,
            ecn: false,
            quick_ack: false,
            gro: 1,
            receive_buffer: TcpRmem { min: 4096, default: 131_072, max: 6_291_456 },
            release: LinuxRelease::V6_1,
            send_buffer: 4_194_304,
            initial_send_buffer: 16_384,
            notsent_lowat: None,
            slow_start_after_idle: true,
            early_retrans: true,
            mptcp_send_buffer: SendBufferRule::Sum,
            pacing: false,
            tso: true,
            small_queues: true,
            reordering: 3,
            max_reordering: 300,
            tick: Span::from_millis(4),
            recovery: LossRecovery::Rack,
            handshake: true,
            initial_rto: Span::from_secs(1),
            window: None,
        }
    }
}

/// A change of a link during the run. `None` leaves a quantity as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// The instant of the change.
    pub at: Instant,
    /// Index into [`Experiment::links`].
    pub link: usize,
    /// The directions that change.
    pub directions: Directions,
    /// Down: everything sent into the link is lost.
    pub up: Option<bool>,
    /// New rate.
    pub rate: Option<Rate>,
    /// New propagation delay.
    pub delay: Option<Span>,
    /// New loss model.
    pub loss: Option<LossModel>,
}

/// The directions of a link that a change touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directions {
    /// From the sending side.
    Forward,
    /// Towards the sending side.
    Reverse,
    /// Both.
    #[default]
    Both,
}
