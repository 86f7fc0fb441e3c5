//! Slots in which packets leave the wire, as in `tc-netem`(8).

use crate::config::SlotConfig;
use units::{Instant, RngStream, Span};

/// The current slot, or the next one.
#[derive(Debug)]
pub(super) struct Slots {
    config: SlotConfig,
    /// Time from which packets may leave.
    pub(super) opens_at: Instant,
    packets_left: u32,
    bytes_left: u64,
    /// A separate stream, so that the draws of slots do not depend on those for packets.
    rng: RngStream,
}

impl Slots {
    pub(super) fn new(config: SlotConfig, rng: RngStream) -> Self {
        let mut slots = Self { config, opens_at: Instant::ZERO, packets_left: 0, bytes_left: 0, rng };
        slots.open_next(Instant::ZERO);
        slots
    }

    /// Counts a packet that leaves at `now`. After the last packet of a slot, the next slot is drawn.
    pub(super) fn count(&mut self, now: Instant, bytes: u32) {
        self.packets_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(bytes));
        if self.packets_left == 0 || self.bytes_left == 0 {
            self.open_next(now);
        }
    }

    fn open_next(&mut self, now: Instant) {
        let SlotConfig { min, max, packets, bytes } = self.config;
        self.opens_at = now + min + Span(self.rng.below(max.0 - min.0 + 1));
        self.packets_left = packets.unwrap_or(u32::MAX);
        self.bytes_left = bytes.unwrap_or(u64::MAX);
    }
}
