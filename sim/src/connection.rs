//! A flow's connection: TCP over one path, or MPTCP over several.

use crate::mptcp::MptcpConnection;
use control::Controller;
use schedule::Scheduler;
use transport::tcp::sender::SenderCounters;
use transport::tcp::{Receiver, Sender, SinglePathSender};
use transport::{mptcp, tcp};
use units::{Instant, Span};

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) enum Connection {
    Single(Box<TcpConnection>),
    Multi(Box<MptcpConnection>),
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
    /// Send this segment on its subflow.
    Mptcp(mptcp::Segment),
    /// Poll again at this instant or after the next input.
    WaitUntil(Instant),
}

impl Connection {
    pub(crate) fn connect(&mut self, now: Instant) {
        match self {
            Self::Single(single) => single.sender.handle(now, tcp::Input::Connect),
            Self::Multi(multi) => multi.sender.handle(now, mptcp::Input::Connect),
        }
    }

    pub(crate) fn write(&mut self, now: Instant, segments: u64, last_is_small: bool) {
        match self {
            Self::Single(single) => single.sender.handle(now, tcp::Input::Write { segments, last_is_small }),
            Self::Multi(multi) => multi.sender.handle(now, mptcp::Input::Write(segments)),
        }
    }

    pub(crate) fn stop(&mut self, now: Instant) {
        match self {
            Self::Single(single) => single.sender.handle(now, tcp::Input::Stop),
            Self::Multi(multi) => multi.sender.handle(now, mptcp::Input::Stop),
        }
    }

    /// Called when the sender's timers may have expired.
    pub(crate) fn wake(&mut self, now: Instant) {
        match self {
            Self::Single(single) => single.sender.handle(now, tcp::Input::Timeout),
            Self::Multi(multi) => multi.sender.handle(now, mptcp::Input::Timeout),
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

    /// The sender's next output.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> SenderOutput {
        match self {
            Self::Single(single) => match single.sender.poll(now) {
                tcp::Output::Transmit(segment) => SenderOutput::Tcp(segment),
                tcp::Output::WaitUntil(deadline) => SenderOutput::WaitUntil(deadline),
            },
            Self::Multi(multi) => match multi.sender.poll(now) {
                mptcp::Output::Transmit(segment) => SenderOutput::Mptcp(segment),
                mptcp::Output::WaitUntil(deadline) => SenderOutput::WaitUntil(deadline),
            },
        }
    }

    /// Expiry of the receiver's next timer.
    #[inline]
    pub(crate) fn receiver_deadline(&self) -> Instant {
        match self {
            Self::Single(single) => single.receiver.deadline(),
            Self::Multi(multi) => multi.receiver.deadline(),
        }
    }

    /// Segments delivered in order to the application.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        match self {
            Self::Single(single) => single.receiver.delivered(),
            Self::Multi(multi) => multi.receiver.delivered(),
        }
    }

    /// Segments acknowledged to a single-path sender.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        match self {
            Self::Single(single) => Some(single.sender.acknowledged()),
            Self::Multi(_) => None,
        }
    }

    /// Segments that a single-path sender has sent, retransmissions not counted.
    pub(crate) fn sent_segments(&self) -> Option<u64> {
        match self {
            Self::Single(single) => Some(single.sender.acknowledged() + u64::from(single.sender.pipe().packets_out)),
            Self::Multi(_) => None,
        }
    }

    /// The senders of the connection or of its subflows.
    pub(crate) fn senders(&self) -> impl Iterator<Item = &Sender> {
        let (single, multi) = match self {
            Self::Single(single) => (Some(&*single.sender), None),
            Self::Multi(multi) => (None, Some(multi.sender.subflows().map(|(sender, _)| sender))),
        };
        single.into_iter().chain(multi.into_iter().flatten())
    }

    /// The controller of all subflows.
    pub(crate) fn controller_mut(&mut self) -> Option<&mut Box<dyn Controller>> {
        match self {
            Self::Single(single) => single.sender.controller_mut(),
            Self::Multi(multi) => multi.sender.controller_mut(),
        }
    }

    /// The scheduler of an MPTCP connection.
    pub(crate) fn scheduler_mut(&mut self) -> Option<&mut Box<dyn Scheduler>> {
        match self {
            Self::Single(_) => None,
            Self::Multi(multi) => Some(multi.sender.scheduler_mut()),
        }
    }

    /// The sum of a counter over all subflows.
    pub(crate) fn total<T: std::iter::Sum>(&self, counter: impl Fn(&SenderCounters) -> T) -> T {
        self.senders().map(|sender| counter(&sender.counters())).sum()
    }

    /// The congestion window, packets, summed over all subflows.
    pub(crate) fn cwnd(&self) -> u32 {
        self.senders().map(|sender| sender.decision().cwnd).sum()
    }

    /// The slow-start threshold of a single-path connection, packets; none while it is infinite.
    pub(crate) fn ssthresh(&self) -> Option<u32> {
        match self {
            Self::Single(single) => {
                Some(single.sender.decision().ssthresh).filter(|ssthresh| *ssthresh != units::INFINITE_SSTHRESH)
            }
            Self::Multi(_) => None,
        }
    }

    /// Packets in flight, summed over all subflows.
    pub(crate) fn in_flight(&self) -> u32 {
        self.senders().map(Sender::in_flight).sum()
    }

    /// The smallest smoothed RTT of the subflows; none before the first sample.
    pub(crate) fn smoothed_rtt(&self) -> Option<Span> {
        self.senders().map(Sender::srtt).filter(|rtt| *rtt > Span::ZERO).min()
    }
}
