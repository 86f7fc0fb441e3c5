//! Endpoints of the tunnel with random algorithms, and the inner packets that they deliver.

use machine::{Delivery, EndpointConfig, EndpointStatus, PathConfig};
use std::collections::BTreeMap;
use units::{RngStream, Span};

const CONGESTION: [&str; 6] = ["bbr", "cubic", "reno", "off", "bbr3", "balia"];
const SCHEDULERS: [&str; 8] =
    ["minrtt", "byte-deficit", "redundant", "adaptive-redundant", "blest", "ecf", "roundrobin", "weighted"];

/// The configuration of every path.
pub const PATH: PathConfig =
    PathConfig { backup: false, metered: false, max_datagram_size: 1472, header_bytes: 28, max_rate: None };

/// An endpoint's algorithms and modes.
#[derive(Clone, Copy, Debug)]
pub struct EndpointOptions {
    /// Congestion control, or `off`.
    pub congestion: &'static str,
    /// Scheduler.
    pub scheduler: &'static str,
    /// Lost fragments are retransmitted.
    pub retransmit: bool,
    /// Inner packets are delivered in order.
    pub in_order: bool,
}

impl EndpointOptions {
    /// Bytes that an endpoint may keep, of each kind.
    pub const MEMORY: u64 = 16 << 20;

    /// The daemon's defaults, with these algorithms.
    #[must_use]
    pub const fn new(congestion: &'static str, scheduler: &'static str) -> Self {
        Self { congestion, scheduler, retransmit: true, in_order: true }
    }

    /// Random algorithms and modes.
    pub fn draw(rng: &mut RngStream) -> Self {
        let mut one_of = |names: &[&'static str]| names[rng.below(names.len() as u64) as usize];
        let (congestion, scheduler) = (one_of(&CONGESTION), one_of(&SCHEDULERS));
        Self { congestion, scheduler, retransmit: rng.chance(0.8), in_order: rng.chance(0.9) }
    }

    /// The configuration of an endpoint.
    ///
    /// # Panics
    /// If there is no algorithm of such a name.
    #[must_use]
    pub fn config(&self, seed: u64) -> EndpointConfig {
        let none = BTreeMap::new();
        let control =
            |name| control::registry::find(name).expect("registered").controller(&none).expect("has defaults");
        let scheduler = schedule::find(self.scheduler).expect("registered");
        EndpointConfig {
            controller: (self.congestion != "off").then(|| control(self.congestion)),
            retransmit: self.retransmit,
            in_order: self.in_order,
            codel_target: Span::from_millis(5),
            codel_interval: Span::from_millis(100),
            memory_bytes: Self::MEMORY,
            ..EndpointConfig::new(scheduler.scheduler(&[], 0, &none).expect("has defaults"), None, seed)
        }
    }

    /// Whether an endpoint has nothing queued, in flight or in its reorder buffer.
    #[must_use]
    pub fn is_drained(status: &EndpointStatus) -> bool {
        status.fragments_in_flight + status.ingress_backlog_packets + status.reorder_fragments == 0
    }

    /// Bytes that an endpoint keeps, in the larger of its queues.
    #[must_use]
    pub fn memory(status: &EndpointStatus) -> u64 {
        status.ingress_backlog_bytes.max(status.reorder_fragments * 1500)
    }
}

/// Reassembles inner packets from the fragments that an endpoint delivers.
#[derive(Debug)]
pub struct Reassembly<P> {
    /// Fragments of incomplete packets, by stream.
    incomplete: BTreeMap<u8, Vec<P>>,
}

impl<P> Default for Reassembly<P> {
    fn default() -> Self {
        Self { incomplete: BTreeMap::new() }
    }
}

impl<P> Reassembly<P> {
    /// Takes a fragment; returns all fragments of its packet if it is the last. `follows` says whether a fragment continues
    /// the one before.
    ///
    /// # Panics
    /// If it does not.
    pub fn push(&mut self, delivery: Delivery<P>, follows: impl Fn(&P, &P) -> bool) -> Option<Vec<P>> {
        let Delivery { stream, payload, first, last, gap, .. } = delivery;
        if first && last {
            return Some(vec![payload]); // without in-order delivery it may come between another packet's fragments
        }
        let mut fragments = self.incomplete.remove(&stream).filter(|_| !first && !gap).unwrap_or_default();
        if !first && fragments.is_empty() {
            return None; // its first fragment was given up
        }
        assert!(
            fragments.last().is_none_or(|before| follows(before, &payload)),
            "the fragments of a packet follow each other"
        );
        fragments.push(payload);
        if last {
            return Some(fragments);
        }
        self.incomplete.insert(stream, fragments);
        None
    }
}
