//! Packets of a path that were declared lost and may still arrive.
//!
//! A late packet raises the thresholds of loss detection. Once all losses of a recovery period have arrived, its reduction of
//! the window is undone.

use super::sent_packets::SentPacket;
use sender::recovery::{LossThresholds, RecoveryPeriod};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use units::{Instant, Span};

/// Lost packets remembered. A period with more losses is not undone.
const MAX_REMEMBERED: usize = 256;

#[derive(Clone, Debug)]
struct LostPacket {
    number: u64,
    since: Instant,
    packet: SentPacket,
}

/// The packets declared lost lately, and what their arrival changes.
#[derive(Clone, Debug)]
pub(super) struct LostPackets {
    /// By number, as they are found in that order.
    packets: VecDeque<LostPacket>,
    pub(super) thresholds: LossThresholds,
    /// The losses that the latest reduction of the window answered.
    pub(super) period: RecoveryPeriod,
    /// Packets that arrived after all.
    pub(super) spurious: u64,
}

impl Default for LostPackets {
    fn default() -> Self {
        Self {
            packets: VecDeque::new(),
            thresholds: LossThresholds::new(true),
            period: RecoveryPeriod::default(),
            spurious: 0,
        }
    }
}

impl LostPackets {
    /// A packet is declared lost.
    pub(super) fn push(&mut self, now: Instant, number: u64, packet: SentPacket) {
        if self.packets.len() == MAX_REMEMBERED {
            self.packets.pop_front();
        }
        self.packets.push_back(LostPacket { number, since: now, packet });
        self.period.on_lost(number);
    }

    /// The least packet number that is remembered.
    pub(super) fn first(&self) -> Option<u64> {
        self.packets.front().map(|lost| lost.number)
    }

    /// Forgets what has been lost for a probe timeout.
    pub(super) fn forget(&mut self, now: Instant, pto: Span) {
        while self.packets.front().is_some_and(|lost| lost.since + pto <= now) {
            self.packets.pop_front();
        }
    }

    /// The path leads elsewhere, or has failed: only the count stays.
    pub(super) fn reset(&mut self) {
        *self = Self { spurious: self.spurious, ..Self::default() };
    }

    /// Takes the newest packet of these numbers, which are acknowledged now. `largest_acked` before that; `rtt`: the greater of
    /// smoothed and latest RTT.
    pub(super) fn take_late(
        &mut self,
        now: Instant,
        numbers: &RangeInclusive<u64>,
        largest_acked: Option<u64>,
        rtt: Span,
    ) -> Option<(u64, SentPacket)> {
        let index = self.packets.partition_point(|lost| lost.number <= *numbers.end()).checked_sub(1)?;
        if !numbers.contains(&self.packets[index].number) {
            return None;
        }
        let LostPacket { number, packet, .. } = self.packets.remove(index)?;
        self.spurious += 1;
        self.period.on_arrived(number);
        let displacement = largest_acked.map_or(0, |largest| largest.saturating_sub(number));
        self.thresholds.on_spurious_loss(displacement, now.since(packet.sent), rtt);
        Some((number, packet))
    }
}
