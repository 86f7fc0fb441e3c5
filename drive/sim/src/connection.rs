//! A flow's connection: TCP over one way, or MPTCP over several paths. What differs between them ends here.

use crate::multipath::Multipath;
use crate::packet::Body;
use protocol::tcp::sender::Counters;
use protocol::tcp::{Receiver, Sender};
use protocol::{mptcp, tcp};
use units::{Instant, Span};

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) enum Connection {
    Single(Box<Single>),
    Multi(Box<Multipath>),
}

/// Both ends of a TCP connection.
#[derive(Debug)]
pub(crate) struct Single {
    pub sender: Sender,
    pub receiver: Receiver,
}

/// What a sender or a receiver wants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    /// Send this, on the subflow of this number.
    Send(Body, u16),
    /// Nothing more before this instant or the next input.
    Until(Instant),
}

impl Connection {
    pub(crate) fn connect(&mut self, now: Instant) {
        match self {
            Self::Single(it) => it.sender.handle(now, tcp::Input::Connect),
            Self::Multi(it) => it.sender.handle(now, mptcp::Input::Connect),
        }
    }

    pub(crate) fn write(&mut self, now: Instant, segments: u64, runt: bool) {
        match self {
            Self::Single(it) => it.sender.handle(now, tcp::Input::Write { segments, runt }),
            Self::Multi(it) => it.sender.handle(now, mptcp::Input::Write(segments)),
        }
    }

    pub(crate) fn stop(&mut self, now: Instant) {
        match self {
            Self::Single(it) => it.sender.handle(now, tcp::Input::Stop),
            Self::Multi(it) => it.sender.handle(now, mptcp::Input::Stop),
        }
    }

    /// The sender's timers may have run out.
    pub(crate) fn wake(&mut self, now: Instant) {
        match self {
            Self::Single(it) => it.sender.handle(now, tcp::Input::Timeout),
            Self::Multi(it) => it.sender.handle(now, mptcp::Input::Timeout),
        }
    }

    /// The host's own interface refused what was just sent.
    pub(crate) fn refuse(&mut self, now: Instant, body: &Body) {
        match (self, body) {
            (Self::Single(it), Body::Segment(segment)) => it.sender.handle(now, tcp::Input::Refused(*segment)),
            (Self::Multi(it), Body::DataSegment(segment)) => it.sender.handle(now, mptcp::Input::Refused(*segment)),
            _ => {}
        }
    }

    /// What the sender sends next.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> Wish {
        match self {
            Self::Single(it) => match it.sender.poll(now) {
                tcp::Output::Transmit(segment) => Wish::Send(Body::Segment(segment), 0),
                tcp::Output::Until(deadline) => Wish::Until(deadline),
            },
            Self::Multi(it) => match it.sender.poll(now) {
                mptcp::Output::Transmit(segment) => Wish::Send(Body::DataSegment(segment), segment.subflow),
                mptcp::Output::Until(deadline) => Wish::Until(deadline),
            },
        }
    }

    /// An acknowledgement that the receiver has delayed, if it is due. Call until it is to wait.
    pub(crate) fn wake_receiver(&mut self, now: Instant) -> Wish {
        let sent = match self {
            Self::Single(it) => it.receiver.on_timeout(now).map(|ack| Wish::Send(Body::Ack(ack), 0)),
            Self::Multi(it) => it.receiver.on_timeout(now).map(|ack| Wish::Send(Body::DataAck(ack), ack.subflow)),
        };
        sent.unwrap_or_else(|| Wish::Until(self.receiver_deadline()))
    }

    /// When the receiver must act, if nothing arrives.
    #[inline]
    pub(crate) fn receiver_deadline(&self) -> Instant {
        match self {
            Self::Single(it) => it.receiver.deadline(),
            Self::Multi(it) => it.receiver.deadline(),
        }
    }

    /// The acknowledgement that a packet which leaves for the sender anyway carries along, on a subflow.
    pub(crate) fn piggyback(&mut self, now: Instant, subflow: u16) -> Body {
        match self {
            Self::Single(it) => Body::Ack(it.receiver.piggyback(now)),
            Self::Multi(it) => Body::DataAck(it.receiver.piggyback(now, subflow)),
        }
    }

    /// Segments delivered in order to the application.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        match self {
            Self::Single(it) => it.receiver.delivered(),
            Self::Multi(it) => it.receiver.delivered(),
        }
    }

    /// The senders of the connection or of its subflows.
    pub(crate) fn senders(&self) -> impl Iterator<Item = &Sender> {
        let (single, multi) = match self {
            Self::Single(it) => (Some(&it.sender), None),
            Self::Multi(it) => (None, Some(it.sender.subflows().map(|(sender, _)| sender))),
        };
        single.into_iter().chain(multi.into_iter().flatten())
    }

    /// A counter, over all subflows.
    pub(crate) fn total<T: std::iter::Sum>(&self, counter: impl Fn(&Counters) -> T) -> T {
        self.senders().map(|sender| counter(sender.counters())).sum()
    }

    /// Packets that may be in flight, over all subflows.
    pub(crate) fn window(&self) -> u32 {
        self.senders().map(|sender| sender.decision().window).sum()
    }

    /// The slow-start threshold; over subflows there is none.
    pub(crate) fn threshold(&self) -> Option<u32> {
        match self {
            Self::Single(it) => Some(it.sender.decision().threshold).filter(|it| *it != control::NO_THRESHOLD),
            Self::Multi(_) => None,
        }
    }

    /// Packets in flight, over all subflows.
    pub(crate) fn in_flight(&self) -> u32 {
        self.senders().map(Sender::in_flight).sum()
    }

    /// Smoothed RTT, the least of the subflows'; none before the first sample.
    pub(crate) fn smoothed_rtt(&self) -> Option<Span> {
        self.senders().map(Sender::smoothed_rtt).filter(|rtt| *rtt > Span::ZERO).min()
    }
}
