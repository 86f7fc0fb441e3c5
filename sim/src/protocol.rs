//! Protocols other than those of [`TcpFlow`](crate::tcp::TcpFlow), as the engine sees them: UDP and hosted stacks.

use crate::network::{Component, Network, Sent};
use crate::packet::{Body, Direction, Packet};
use link::EcnField;
use record::{Distribution, Flow};
use scenario::model::Route;
use std::fmt::Debug;
use units::{Instant, Span};

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The end that sends the data.
    Sender = 0,
    /// The end that receives them.
    Receiver = 1,
}

/// Both ends of a flow. The engine wakes the sender at the flow's start.
pub(crate) trait Protocol: Debug + Send {
    /// Called at the time to which an end has set its timer, or earlier.
    fn wake(&mut self, end: End, host: &mut Host<'_>);

    /// A packet has reached an end.
    fn receive(&mut self, end: End, arrival: Arrival, host: &mut Host<'_>);

    /// The counters.
    fn counters(&self) -> Counters;

    /// The counters of each path of a connection over several.
    fn paths(&self) -> Vec<PathCounters<'_>> {
        Vec::new()
    }

    /// Completes the record of the flow, which has the values of `counters`. The flow was on until `end`.
    fn record(&self, end: Instant, flow: Flow) -> Flow;

    /// The distributions of the record, each with its column.
    fn distributions(&self) -> Vec<(&'static str, &Distribution)>;

    /// Forgets these distributions, and leaves them empty from now on.
    fn leave_out_distributions(&mut self);
}

/// A packet that has reached an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub body: Body,
    /// The number of the path in its connection.
    pub path: u16,
    pub ecn: EcnField,
    /// With all headers but the link layer's.
    pub bytes: u32,
}

/// Counters of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Bytes delivered to the application.
    pub delivered_bytes: u64,
    /// Bytes of data packets that reached the receiver, headers included.
    pub arrived_bytes: u64,
    /// Packets that the sender has sent.
    pub sent: u64,
    /// The congestion window, packets.
    pub cwnd: Option<f64>,
    pub srtt: Option<Span>,
    /// Whether its application always has data.
    pub is_greedy: bool,
    /// Completion time of a flow of limited size.
    pub completed: Option<Instant>,
}

/// Counters of a path of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathCounters<'a> {
    /// The path, by its number in the experiment.
    pub path: usize,
    pub arrived_bytes: u64,
    pub sent: u64,
    pub cwnd: Option<f64>,
    pub srtt: Option<Span>,
    pub rtt: &'a Distribution,
}

/// The hosts of a flow: what its protocol may do with the network.
#[derive(Debug)]
pub(crate) struct Host<'a> {
    pub network: &'a mut Network,
    pub flow: u16,
    pub route: Route,
    /// The direction of the flow's data.
    pub direction: Direction,
    pub start: Instant,
    pub stop: Instant,
}

impl Host<'_> {
    pub(crate) fn now(&self) -> Instant {
        self.network.now
    }

    /// Sends a packet from an end, on path number `path` of its connection, which is `route`.
    pub(crate) fn send(&mut self, end: End, body: Body, path: u16, route: Route, bytes: u32, ecn: EcnField) -> Sent {
        let direction = if end == End::Sender { self.direction } else { self.direction.other() };
        self.network.send(route, Packet::new(body, self.flow, path, direction), bytes, ecn)
    }

    /// Sets the timer of an end.
    pub(crate) fn wake_at(&mut self, end: End, time: Instant) {
        let component = if end == End::Sender { Component::Source(self.flow) } else { Component::Sink(self.flow) };
        let time = time.max(self.now());
        self.network.schedule(component, time);
    }
}
