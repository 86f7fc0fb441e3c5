//! Transport protocols, as the engine sees them.

use crate::network::{Component, Network, Sent};
use crate::packet::{Body, Content, Direction, Packet, Route};
use crate::trace::HeaderSizes;
use control::Controller;
use link::EcnField;
use record::{Distribution, Flow, Subflow};
use schedule::Scheduler;
use std::any::Any;
use std::fmt::Debug;
use units::{Instant, Rate, Span};

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The end that sends the data.
    Sender = 0,
    /// The end that receives them.
    Receiver = 1,
}

/// Both ends of a flow. The engine wakes the sender at the flow's start.
pub(crate) trait Protocol: Any + Debug + Send {
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

    /// Completes the record of the flow, which has the values of `counters`. The flow was on from `start` to `end`.
    fn record(&self, start: Instant, end: Instant, flow: Flow) -> Flow;

    /// Completes the record of one of `paths`, which has its values.
    fn record_path(&self, _index: usize, _start: Instant, path: Subflow) -> Subflow {
        path
    }

    /// The distributions of the record, each with its column.
    fn distributions(&self) -> Vec<(&'static str, &Distribution)>;

    /// Those of paths, each with the path's number in the experiment and its column.
    fn path_distributions(&self) -> Vec<(usize, &'static str, &Distribution)> {
        Vec::new()
    }

    /// Forgets all distributions, and leaves them empty from now on.
    fn leave_out_distributions(&mut self);

    /// Called at the end of the run, or at the flow's end if that is earlier.
    fn finish(&mut self, _now: Instant) {}

    /// Why the controllers of its connections failed.
    fn controller_failures(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The controller of its current connection, if it is one of the registry's.
    fn controller_mut(&mut self) -> Option<&mut Box<dyn Controller>> {
        None
    }

    /// The scheduler of a connection over several paths, if it is one of the registry's.
    fn scheduler_mut(&mut self) -> Option<&mut Box<dyn Scheduler>> {
        None
    }

    /// Keeps what a trace has from now on.
    fn start_trace(&mut self) {}

    /// The sizes of the headers of its packets, if they follow from the experiment.
    fn header_sizes(&self) -> Option<HeaderSizes> {
        None
    }
}

/// A packet that has reached an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Its slot, which is free and not used again yet.
    pub slot: u32,
    /// The number of the connection, or of the path in a connection over several.
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
    pub sender: SenderCounters,
    /// Whether its application always has data.
    pub is_greedy: bool,
    /// Completion time of a flow of limited size.
    pub completed: Option<Instant>,
    /// The greatest goodput over half a second.
    pub peak: Option<Rate>,
}

/// What is known of a flow's sender, or of that of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderCounters {
    /// Packets sent.
    pub sent: u64,
    pub retransmitted: Option<u64>,
    /// The congestion window, packets.
    pub cwnd: Option<f64>,
    /// The slow-start threshold, packets.
    pub ssthresh: Option<f64>,
    /// Packets in flight.
    pub in_flight: Option<u32>,
    pub srtt: Option<Span>,
}

/// Counters of a path of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathCounters<'a> {
    /// The path, by its number in the experiment.
    pub path: usize,
    pub arrived_bytes: u64,
    pub sender: SenderCounters,
    pub rtt: &'a Distribution,
    /// The smoothed RTT, after each sample.
    pub srtt: Option<&'a Distribution>,
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
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.network.world.now
    }

    /// The content of a packet that has arrived, until the next one is sent.
    #[inline]
    pub(crate) fn body(&self, arrival: Arrival) -> &Body {
        &self.network.world.slab.get(arrival.slot).content.body
    }

    /// Sends a packet from an end, of connection or path number `path`, which takes `route`.
    #[inline]
    pub(crate) fn send(&mut self, end: End, body: Body, path: u16, route: Route, bytes: u32, ecn: EcnField) -> Sent {
        let direction = if end == End::Sender { self.direction } else { self.direction.other() };
        self.network.send(
            route,
            Packet::new(Content::new(body), self.flow, path, direction),
            bytes,
            ecn,
            end == End::Sender,
        )
    }

    /// Sets the timer of an end, unless it is due earlier.
    #[inline]
    pub(crate) fn wake_at(&mut self, end: End, time: Instant) {
        if time == Instant::NEVER {
            return;
        }
        let component = if end == End::Sender { Component::Source(self.flow) } else { Component::Sink(self.flow) };
        let time = time.max(self.now());
        self.network.schedule(component, time);
    }
}
