//! What a flow needs of TCP, MPTCP or multipath QUIC: a sender and a receiver of numbered segments.

use crate::packet::Body;
use crate::stream::config::StreamConfig;
use crate::stream::multipath::{ReceiverStats, SenderStats};
use control::{CaState, Controller, Decision};
use link::EcnField;
use record::{Flow, QuicLosses};
use schedule::{Choices, Scheduler};
use std::fmt::Debug;
use transport::path::{Limit, LimitTimes, LimitedTimes};
use transport::quic::DeclaredLost;
use transport::tcp::SegmentKind;
use transport::tcp::sender::SenderCounters;
use units::{Instant, Span};

/// A packet of a transport's sender.
pub(crate) type PacketOf<T> = <<T as Transport>::Sender as Sender>::Packet;
/// A packet of a transport's receiver.
pub(crate) type ReplyOf<T> = <<T as Transport>::Sender as Sender>::Reply;

/// A transport protocol, with the configuration from which a flow's connections are made.
pub(crate) trait Transport: Debug + Send + Sized + 'static {
    type Sender: Sender;
    type Receiver: Receiver<Packet = PacketOf<Self>, Reply = ReplyOf<Self>>;

    /// The configuration that all transports have.
    fn config(&self) -> &StreamConfig;

    /// Makes both ends of connection `number`, from 0.
    fn ends(&self, number: u16) -> (Self::Sender, Self::Receiver);

    /// The paths of the subflows, by their numbers in the experiment; none of a connection on the flow's own route.
    fn paths(&self) -> &[usize] {
        &[]
    }

    /// Size of a packet, bytes, of which a segment's payload is `payload(segment)`, and its ECN field.
    fn packet_size(&self, packet: &PacketOf<Self>, payload: impl Fn(u64) -> u32) -> (u32, EcnField);

    /// Size of the receiver's packet, bytes, and its ECN field.
    fn reply_size(&self, reply: &ReplyOf<Self>) -> (u32, EcnField);

    fn packet_info(packet: &PacketOf<Self>) -> PacketInfo;

    /// The subflow of the receiver's packet; none of a connection on the flow's own route.
    fn reply_subflow(reply: &ReplyOf<Self>) -> Option<u16>;

    fn packet_body(packet: PacketOf<Self>) -> Body;

    fn reply_body(reply: ReplyOf<Self>) -> Body;

    /// The content of a packet that has arrived; none if it is not one of this transport.
    fn content(body: &Body) -> Option<Content<&PacketOf<Self>, &ReplyOf<Self>>>;
}

/// The content of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<P, R> {
    /// From the sender.
    Packet(P),
    /// From the receiver.
    Reply(R),
    /// A client's request, by its number.
    Request(u32),
}

/// What a flow needs to know of its sender's packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketInfo {
    /// The subflow; none of a connection on the flow's own route.
    pub subflow: Option<u16>,
    pub has_data: bool,
    /// Number of packets that it stands for.
    pub packets: u32,
    /// Kind and number of its last segment in the stream, for a client that waits for a response.
    pub last: Option<(SegmentKind, u64)>,
}

/// What the application and the clock ask of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    Connect,
    /// Write further segments, of which the last one lacks some bytes to a full one.
    Write {
        segments: u64,
        lacking: u32,
    },
    Stop,
    /// A timer may have expired.
    Timeout,
}

/// An output of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output<P> {
    Transmit(P),
    /// Poll again at this instant or after the next input.
    WaitUntil(Instant),
}

/// The sending end of a connection.
pub(crate) trait Sender: Debug + Send {
    type Packet: Copy + Debug + Send;
    type Reply: Copy + Debug + Send;

    fn command(&mut self, now: Instant, command: Command);

    /// Handles the receiver's packet. Returns the RTT sample that it gave and its subflow, if any.
    fn on_reply(&mut self, now: Instant, reply: &Self::Reply) -> Option<(u16, Span)>;

    /// The next output. `payload` is as in [`Transport::packet_size`].
    fn poll(&mut self, now: Instant, payload: impl Fn(u64) -> u32) -> Output<Self::Packet>;

    /// The sending host's own interface has dropped the packet just sent.
    fn refuse(&mut self, _now: Instant, _packet: Self::Packet) {}

    /// The packet just sent waits in the sending host's own queue until `departure`.
    fn wait_in_host_queue(&mut self, _packet: &Self::Packet, _departure: Instant) {}

    /// The subflow on which a client sends its request, after this many retransmissions of all its requests.
    fn request_subflow(&self, _retransmissions: u32) -> u16 {
        0
    }

    /// The state of the sender, or of those of its subflows.
    fn senders(&self) -> impl Iterator<Item = SenderStatus>;

    /// The measurements of a connection over several paths.
    fn stats(&self) -> Option<&SenderStats> {
        None
    }

    fn stats_mut(&mut self) -> Option<&mut SenderStats> {
        None
    }

    /// Adds what the sender has measured to the record of its flow.
    fn record(&self, flow: Flow) -> Flow {
        flow
    }

    /// How long receive window and send buffer have limited the sender, until `now`.
    fn limited_times(&self, now: Instant) -> LimitedTimes;

    /// Why nothing more is sent now.
    fn limit(&self) -> Limit;

    /// How long each limit has held, until `now`.
    fn limit_times(&self, now: Instant) -> LimitTimes;

    /// How long each limit of each subflow has held, until `now`.
    fn subflow_limit_times(&self, _now: Instant) -> impl Iterator<Item = LimitTimes> {
        std::iter::empty()
    }

    /// The controller of all subflows.
    fn controller_mut(&mut self) -> Option<&mut Box<dyn Controller>>;

    /// The scheduler of a connection over several paths.
    fn scheduler_mut(&mut self) -> Option<&mut Box<dyn Scheduler>> {
        None
    }

    /// The choices of that scheduler.
    fn choices_mut(&mut self) -> Option<&mut Choices> {
        None
    }

    /// The packets that QUIC has declared lost at the latest input.
    fn declared_lost(&self) -> &[DeclaredLost] {
        &[]
    }

    /// The sum of a counter over all subflows.
    fn total<N: std::iter::Sum>(&self, counter: impl Fn(&SenderCounters) -> N) -> N {
        self.senders().map(|sender| counter(&sender.counters)).sum()
    }
}

/// The receiving end of a connection.
pub(crate) trait Receiver: Debug + Send {
    type Packet;
    type Reply;

    /// Expiry of the next timer.
    fn deadline(&self) -> Instant;

    fn on_timeout(&mut self, now: Instant) -> Option<Self::Reply>;

    /// Handles a packet, of `data_bytes` with its headers if it has data. Returns what is to be sent at once, if anything.
    fn on_packet(
        &mut self,
        now: Instant,
        packet: &Self::Packet,
        data_bytes: u32,
        is_marked: bool,
    ) -> Option<Self::Reply>;

    /// The acknowledgement that a request on a subflow carries; none if requests carry none.
    fn piggyback(&mut self, now: Instant, subflow: u16) -> Option<Self::Reply>;

    /// Segments delivered in order to the application, in the order of their streams.
    fn delivered(&self) -> u64;

    /// The receiving program will read at this instant. Other programs read at once.
    fn set_next_read(&mut self, _at: Instant) {}

    /// The measurements of a connection over several paths.
    fn stats(&self) -> Option<&ReceiverStats> {
        None
    }

    fn stats_mut(&mut self) -> Option<&mut ReceiverStats> {
        None
    }

    /// Adds what the receiver has measured to the record of its flow, whose full segments have `mss` bytes.
    fn record(&self, _mss: u32, flow: Flow) -> Flow {
        flow
    }
}

/// The state of a sender, or of a subflow's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderStatus {
    pub counters: SenderCounters,
    pub decision: Decision,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Packets.
    pub in_flight: u32,
    /// The congestion state.
    pub ca_state: CaState,
    /// Why nothing more is sent now.
    pub limit: Limit,
    /// Number of times that the subflow failed.
    pub failures: u64,
    /// QUIC: packets declared lost, and of these the ones that arrived after all.
    pub quic: Option<QuicLosses>,
}

impl SenderStatus {
    /// The state of TCP's sender on a subflow that failed this often.
    pub(crate) fn of_tcp(sender: &transport::tcp::Sender, failures: u64) -> Self {
        Self {
            counters: sender.counters(),
            decision: sender.decision(),
            srtt: sender.srtt(),
            in_flight: sender.in_flight(),
            ca_state: sender.ca_state(),
            limit: sender.limit(),
            failures,
            quic: None,
        }
    }
}

/// Those methods of a [`Sender`] that its field `machine` has.
macro_rules! sender_methods {
    () => {
        fn command(&mut self, now: Instant, command: Command) {
            self.machine.handle(now, command.into());
        }

        fn limited_times(&self, now: Instant) -> LimitedTimes {
            self.machine.limited_times(now)
        }

        fn limit(&self) -> Limit {
            self.machine.limit()
        }

        fn limit_times(&self, now: Instant) -> LimitTimes {
            self.machine.limit_times(now)
        }

        fn controller_mut(&mut self) -> Option<&mut Box<dyn Controller>> {
            self.machine.controller_mut()
        }
    };
}
pub(super) use sender_methods;

/// Those methods of a [`Receiver`] that its field `machine` has.
macro_rules! receiver_methods {
    () => {
        #[inline]
        fn deadline(&self) -> Instant {
            self.machine.deadline()
        }

        #[inline]
        fn on_timeout(&mut self, now: Instant) -> Option<Self::Reply> {
            self.machine.on_timeout(now)
        }

        #[inline]
        fn delivered(&self) -> u64 {
            self.machine.delivered()
        }
    };
}
pub(super) use receiver_methods;
