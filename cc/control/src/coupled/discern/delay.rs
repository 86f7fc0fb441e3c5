//! What the RTT samples of a path say: its base RTT, its queueing delay, and from which delay on a loss is congestion.
//!
//! Times are in seconds.

use super::Config;
use units::{Instant, Span};

/// The base RTT is the minimum of the present slot and the one before.
const SLOT: Span = Span::from_secs(10);
/// The least and the greatest of what is taken for noise of the hosts: five times the base RTT between these.
const NOISE: [f64; 2] = [50e-6, 2e-3];
/// A delay of so much of the base RTT is a queue.
const BASE_PART: f64 = 1.0 / 16.0;

/// RTT samples of a path.
#[derive(Debug)]
pub(super) struct Delay {
    slots: [f64; 2],
    slot_start: Instant,
    /// The latest samples: a packet that overtakes others does not count, so the greatest of three is taken for the base.
    samples: [f64; 3],
    /// The queueing delays of the latest samples: the least of four counts.
    recent: [f64; 4],
    queueing: f64,
    /// The greatest queueing delay, which fades by 1/512 a round.
    max: f64,
}

impl Delay {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            slots: [f64::INFINITY; 2],
            slot_start: now,
            samples: [0.0; 3],
            recent: [0.0; 4],
            queueing: 0.0,
            max: 0.0,
        }
    }

    /// Takes an RTT sample; returns the queueing delay.
    pub(super) fn on_sample(&mut self, rtt: f64, now: Instant) -> f64 {
        self.samples = [rtt, self.samples[0], self.samples[1]];
        let settled = self.samples.iter().copied().fold(0.0, f64::max);
        if now.since(self.slot_start) > SLOT {
            self.slots = [settled, self.slots[0]];
            self.slot_start = now;
        }
        self.slots[0] = self.slots[0].min(settled);
        let [a, b, c, _] = self.recent;
        self.recent = [(rtt - self.base()).max(0.0), a, b, c];
        self.queueing = self.recent.iter().copied().fold(f64::INFINITY, f64::min);
        self.max = self.max.max(self.queueing);
        self.queueing
    }

    /// A round has ended in which this was the greatest queueing delay.
    pub(super) fn end_round(&mut self, max: f64) {
        self.max = max.max(self.max * (1.0 - 1.0 / 512.0));
    }

    /// The RTT without a queue; infinite before the first sample.
    pub(super) fn base(&self) -> f64 {
        self.slots[0].min(self.slots[1])
    }

    /// The latest RTT; 0 before the first sample.
    pub(super) fn latest(&self) -> f64 {
        self.samples[0]
    }

    /// The queueing delay now.
    pub(super) fn queueing(&self) -> f64 {
        self.queueing
    }

    /// The queueing delay from which a loss is congestion: θ.
    pub(super) fn threshold(&self, config: &Config) -> f64 {
        let noise = (5.0 * self.base()).clamp(NOISE[0], NOISE[1]);
        noise.max(BASE_PART * self.base()).max(config.theta * self.max)
    }

    /// The queueing delay of a round from which a queue stands, and from which politeness tests.
    pub(super) fn standing(&self) -> f64 {
        (BASE_PART * self.base()).max(NOISE[1])
    }

    /// The least queueing delay of a round that ends slow start.
    pub(super) fn slow_start_limit(&self) -> f64 {
        (self.base() / 8.0).clamp(4e-3, 16e-3)
    }
}
