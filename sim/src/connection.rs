//! A flow's connection: TCP over one path, or MPTCP or multipath QUIC over several.

use crate::mptcp::MptcpConnection;
use crate::multipath::SubflowStats;
use crate::quic::QuicConnection;
use crate::super_segment::SuperSegment;
use control::{CaState, Controller, Decision};
use schedule::{Choices, Scheduler};
use transport::path::{Limit, LimitTimes, LimitedTimes};
use transport::tcp::sender::SenderCounters;
use transport::tcp::{Receiver, Sender, SinglePathSender};
use transport::{mptcp, quic, tcp};
use units::{Instant, Span};

/// Both ends of a connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a packet of ten thousand flows waits for each pointer that it follows")]
pub(crate) enum Connection {
    Single(TcpConnection),
    Multi(Box<MptcpConnection>),
    Quic(Box<QuicConnection>),
}

/// The state of a TCP sender, or of a path's sender.
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
    /// QUIC: packets declared lost.
    pub declared_lost: u64,
    /// QUIC: of these, packets that arrived after all.
    pub spurious_losses: u64,
}

impl SenderStatus {
    fn of_tcp(sender: &Sender) -> Self {
        Self {
            counters: sender.counters(),
            decision: sender.decision(),
            srtt: sender.srtt(),
            in_flight: sender.in_flight(),
            ca_state: sender.ca_state(),
            limit: sender.limit(),
            declared_lost: 0,
            spurious_losses: 0,
        }
    }
}

/// A subflow of an MPTCP connection, or a path of a multipath QUIC connection.
#[derive(Debug)]
pub(crate) struct SubflowStatus<'a> {
    pub stats: &'a SubflowStats,
    pub sender: SenderStatus,
    /// Number of times that the subflow failed.
    pub failures: u64,
}

/// Both ends of a TCP connection.
#[derive(Debug)]
pub(crate) struct TcpConnection {
    pub sender: SinglePathSender,
    pub receiver: Receiver,
}

/// The output of a sender that is polled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SenderOutput {
    /// Send this segment.
    Tcp(tcp::Segment),
    /// Send these segments as one packet.
    TcpSuper(SuperSegment),
    /// Send this segment on its subflow.
    Mptcp(mptcp::Segment),
    /// Send this packet on its path.
    Quic(quic::Packet),
    /// Poll again at this instant or after the next input.
    WaitUntil(Instant),
}

impl From<tcp::Output> for SenderOutput {
    fn from(output: tcp::Output) -> Self {
        match output {
            tcp::Output::Transmit(segment) => Self::Tcp(segment),
            tcp::Output::WaitUntil(deadline) => Self::WaitUntil(deadline),
        }
    }
}

impl Connection {
    pub(crate) fn connect(&mut self, now: Instant) {
        match self {
            Self::Single(single) => single.sender.handle(now, tcp::Input::Connect),
            Self::Multi(multi) => multi.sender.handle(now, mptcp::Input::Connect),
            Self::Quic(quic) => quic.sender.handle(now, quic::Input::Connect),
        }
    }

    pub(crate) fn write(&mut self, now: Instant, segments: u64, lacking: u32) {
        match self {
            Self::Single(single) => single.sender.handle(now, tcp::Input::Write { segments, lacking }),
            Self::Multi(multi) => multi.sender.handle(now, mptcp::Input::Write(segments)),
            Self::Quic(quic) => quic.sender.handle(now, quic::Input::Write(segments)),
        }
    }

    pub(crate) fn stop(&mut self, now: Instant) {
        match self {
            Self::Single(single) => single.sender.handle(now, tcp::Input::Stop),
            Self::Multi(multi) => multi.sender.handle(now, mptcp::Input::Stop),
            Self::Quic(quic) => quic.sender.handle(now, quic::Input::Stop),
        }
    }

    /// Called when the sender's timers may have expired.
    pub(crate) fn wake(&mut self, now: Instant) {
        match self {
            Self::Single(single) => single.sender.handle(now, tcp::Input::Timeout),
            Self::Multi(multi) => multi.sender.handle(now, mptcp::Input::Timeout),
            Self::Quic(quic) => quic.sender.handle(now, quic::Input::Timeout),
        }
    }

    /// Called when the sending host's own interface has dropped the segment just sent.
    pub(crate) fn refuse(&mut self, now: Instant, segment: tcp::Segment) {
        if let Self::Single(single) = self {
            single.sender.handle(now, tcp::Input::LocalDrop(segment));
        }
    }

    /// Called when the sending host's own interface has dropped the segment just sent on a subflow.
    pub(crate) fn refuse_mptcp(&mut self, now: Instant, segment: mptcp::Segment) {
        if let Self::Multi(multi) = self {
            multi.sender.handle(now, mptcp::Input::LocalDrop(segment));
        }
    }

    /// Called when the segment just sent, on a subflow of MPTCP, waits in the sending host's own queue until `departure`.
    pub(crate) fn wait_in_host_queue(&mut self, subflow: u16, departure: Instant) {
        match self {
            Self::Single(single) => single.sender.wait_in_host_queue(departure),
            Self::Multi(multi) => multi.sender.wait_in_host_queue(subflow, departure),
            Self::Quic(_) => {}
        }
    }

    /// The sender's next output.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> SenderOutput {
        match self {
            Self::Single(single) => single.sender.poll(now).into(),
            Self::Multi(multi) => match multi.sender.poll(now) {
                mptcp::Output::Transmit(segment) => SenderOutput::Mptcp(segment),
                mptcp::Output::WaitUntil(deadline) => SenderOutput::WaitUntil(deadline),
            },
            Self::Quic(quic) => match quic.sender.poll(now) {
                quic::Output::Transmit(packet) => SenderOutput::Quic(packet),
                quic::Output::WaitUntil(deadline) => SenderOutput::WaitUntil(deadline),
            },
        }
    }

    /// Expiry of the receiver's next timer.
    #[inline]
    pub(crate) fn receiver_deadline(&self) -> Instant {
        match self {
            Self::Single(single) => single.receiver.deadline(),
            Self::Multi(multi) => multi.receiver.deadline(),
            Self::Quic(quic) => quic.receiver.deadline(),
        }
    }

    /// Segments delivered in order to the application, in the order of their streams.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        match self {
            Self::Single(single) => single.receiver.delivered(),
            Self::Multi(multi) => multi.receiver.delivered(),
            Self::Quic(quic) => quic.receiver.delivered(),
        }
    }

    /// Segments acknowledged to a single-path sender.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        match self {
            Self::Single(single) => Some(single.sender.acknowledged()),
            Self::Multi(_) | Self::Quic(_) => None,
        }
    }

    /// Segments that a single-path sender has sent, retransmissions not counted.
    pub(crate) fn sent_segments(&self) -> Option<u64> {
        match self {
            Self::Single(single) => Some(single.sender.acknowledged() + u64::from(single.sender.pipe().packets_out)),
            Self::Multi(_) | Self::Quic(_) => None,
        }
    }

    /// The senders of the connection or of its subflows.
    pub(crate) fn senders(&self) -> impl Iterator<Item = SenderStatus> {
        let (single, multi, quic) = match self {
            Self::Single(single) => (Some(&*single.sender), None, None),
            Self::Multi(multi) => (None, Some(multi.sender.subflows().map(|(sender, _)| sender)), None),
            Self::Quic(quic) => (None, None, Some(quic.senders())),
        };
        let tcp = single.into_iter().chain(multi.into_iter().flatten()).map(SenderStatus::of_tcp);
        tcp.chain(quic.into_iter().flatten())
    }

    /// The subflows of an MPTCP connection, or the paths of a multipath QUIC connection.
    pub(crate) fn subflows(&self) -> impl Iterator<Item = SubflowStatus<'_>> {
        let stats: &[SubflowStats] = match self {
            Self::Single(_) => &[],
            Self::Multi(multi) => &multi.stats.subflows,
            Self::Quic(quic) => &quic.stats.subflows,
        };
        let failures = move |index: usize| match self {
            Self::Single(_) => 0,
            Self::Multi(multi) => multi.sender.failures(index),
            Self::Quic(quic) => quic.sender.paths().nth(index).map_or(0, |path| path.counters.failures),
        };
        let subflows = stats.iter().zip(self.senders()).enumerate();
        subflows.map(move |(index, (stats, sender))| SubflowStatus { stats, sender, failures: failures(index) })
    }

    /// How long receive window and send buffer have limited the sender, until `now`.
    pub(crate) fn limited_times(&self, now: Instant) -> LimitedTimes {
        match self {
            Self::Single(single) => single.sender.limited_times(now),
            Self::Multi(multi) => multi.sender.limited_times(now),
            Self::Quic(quic) => quic.sender.limited_times(now),
        }
    }

    /// Why the sender sends nothing more now.
    pub(crate) fn limit(&self) -> Limit {
        match self {
            Self::Single(single) => single.sender.limit(),
            Self::Multi(multi) => multi.sender.limit(),
            Self::Quic(quic) => quic.sender.limit(),
        }
    }

    /// How long each limit has held, until `now`.
    pub(crate) fn limit_times(&self, now: Instant) -> LimitTimes {
        match self {
            Self::Single(single) => single.sender.limit_times(now),
            Self::Multi(multi) => multi.sender.limit_times(now),
            Self::Quic(quic) => quic.sender.limit_times(now),
        }
    }

    /// How long each limit of each subflow has held, until `now`.
    pub(crate) fn subflow_limit_times(&self, now: Instant) -> impl Iterator<Item = LimitTimes> {
        let (multi, quic) = match self {
            Self::Single(_) => (None, None),
            Self::Multi(multi) => (Some(multi.sender.subflows()), None),
            Self::Quic(quic) => (None, Some(quic.sender.path_limit_times(now))),
        };
        let of_subflows = multi.into_iter().flatten().map(move |(sender, _)| sender.limit_times(now));
        of_subflows.chain(quic.into_iter().flatten())
    }

    /// The controller of all subflows.
    pub(crate) fn controller_mut(&mut self) -> Option<&mut Box<dyn Controller>> {
        match self {
            Self::Single(single) => single.sender.controller_mut(),
            Self::Multi(multi) => multi.sender.controller_mut(),
            Self::Quic(quic) => quic.sender.controller_mut(),
        }
    }

    /// The scheduler of a connection over several paths.
    pub(crate) fn scheduler_mut(&mut self) -> Option<&mut Box<dyn Scheduler>> {
        match self {
            Self::Single(_) => None,
            Self::Multi(multi) => Some(multi.sender.scheduler_mut()),
            Self::Quic(quic) => Some(quic.sender.scheduler_mut()),
        }
    }

    /// The choices of the scheduler of a connection over several paths.
    pub(crate) fn choices_mut(&mut self) -> Option<&mut Choices> {
        match self {
            Self::Single(_) => None,
            Self::Multi(multi) => Some(multi.sender.choices_mut()),
            Self::Quic(quic) => Some(quic.sender.choices_mut()),
        }
    }

    /// The sum of a counter over all subflows.
    pub(crate) fn total<T: std::iter::Sum>(&self, counter: impl Fn(&SenderCounters) -> T) -> T {
        self.senders().map(|sender| counter(&sender.counters)).sum()
    }

    /// The congestion window, packets, summed over all subflows.
    pub(crate) fn cwnd(&self) -> u32 {
        self.senders().map(|sender| sender.decision.cwnd).sum()
    }

    /// The slow-start threshold of a single-path connection, packets; none while it is infinite.
    pub(crate) fn ssthresh(&self) -> Option<u32> {
        match self {
            Self::Single(single) => {
                Some(single.sender.decision().ssthresh).filter(|ssthresh| *ssthresh != units::INFINITE_SSTHRESH)
            }
            Self::Multi(_) | Self::Quic(_) => None,
        }
    }

    /// Packets in flight, summed over all subflows.
    pub(crate) fn in_flight(&self) -> u32 {
        self.senders().map(|sender| sender.in_flight).sum()
    }

    /// The smallest smoothed RTT of the subflows; none before the first sample.
    pub(crate) fn smoothed_rtt(&self) -> Option<Span> {
        self.senders().map(|sender| sender.srtt).filter(|rtt| *rtt > Span::ZERO).min()
    }
}
