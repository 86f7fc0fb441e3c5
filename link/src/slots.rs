//! Slots in which packets leave the wire, as `tc-netem`(8) has them.

use crate::config::SlotConfig;
use units::{Instant, RngStream, Span};

/// The slot of now, or the next one.
#[derive(Debug)]
pub(super) struct Slots {
    config: SlotConfig,
    /// Time from which on packets may leave.
    pub(super) opens_at: Instant,
    packets_left: u32,
    bytes_left: u64,
    /// A stream of its own: when packets leave does not depend on when others are drawn for.
    rng: RngStream,
}

impl Slots {
    pub(super) fn new(config: SlotConfig, rng: RngStream) -> Self {
        let mut slots = Self { config, opens_at: Instant::ZERO, packets_left: 0, bytes_left: 0, rng };
        slots.open_next(Instant::ZERO);
        slots
    }

    /// Counts a packet that leaves at `now`; after the last of a slot the next slot is drawn.
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
