//! What is drawn of a world: its wires, and how its endpoints are built.

use crate::Wire;
use machine::{EndpointConfig, PathConfig};
use std::collections::BTreeMap;
use units::{Span, Stream};

const CONGESTION: [&str; 6] = ["bbr", "cubic", "reno", "off", "bbr3", "balia"];
const SCHEDULERS: [&str; 8] =
    ["minrtt", "byte-deficit", "redundant", "adaptive-redundant", "blest", "ecf", "roundrobin", "weighted"];

/// How paths are used.
pub const PATH: PathConfig =
    PathConfig { backup: false, metered: false, max_datagram_size: 1472, header_bytes: 28, max_rate: None };

/// Bytes that an endpoint may keep, of each kind.
pub(crate) const MEMORY: u64 = 16 << 20;

/// How many worlds are wanted, if the environment does not say otherwise.
#[must_use]
pub fn count(usual: u64) -> u64 {
    std::env::var("ROPEWALK_WORLDS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Up to `most` paths, each with two directions.
pub fn wires(random: &mut Stream, most: u64) -> Vec<[Wire; 2]> {
    (0..1 + random.below(most)).map(|_| [Wire::draw(random), Wire::draw(random)]).collect()
}

/// How endpoints are built.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Congestion control, or `off`.
    pub congestion: &'static str,
    /// Scheduler.
    pub scheduler: &'static str,
    /// Lost pieces are sent again.
    pub retransmit: bool,
    /// Pieces go up in order.
    pub in_order: bool,
}

impl Kind {
    /// The daemon's defaults, with these algorithms.
    #[must_use]
    pub const fn new(congestion: &'static str, scheduler: &'static str) -> Self {
        Self { congestion, scheduler, retransmit: true, in_order: true }
    }

    /// Any.
    pub fn draw(random: &mut Stream) -> Self {
        let mut one_of = |names: &[&'static str]| names[random.below(names.len() as u64) as usize];
        let (congestion, scheduler) = (one_of(&CONGESTION), one_of(&SCHEDULERS));
        Self { congestion, scheduler, retransmit: random.chance(0.8), in_order: random.chance(0.9) }
    }

    /// The parts of an endpoint.
    ///
    /// # Panics
    /// If no algorithm has such a name.
    #[must_use]
    pub fn setup(&self, seed: u64) -> EndpointConfig {
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
            memory_bytes: MEMORY,
            ..EndpointConfig::new(scheduler.scheduler(&[], 0, &none).expect("has defaults"), None, seed)
        }
    }
}
