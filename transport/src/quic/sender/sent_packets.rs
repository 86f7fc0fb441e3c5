//! The sender's packet-number space of a path: packets in flight, acknowledged and lost (RFC 9002, section 6.1 and
//! appendix A.10).
//!
//! A lost packet is remembered for one probe timeout, so that its data is not sent again if it was only late (RFC 9000,
//! section 13.3).

use super::super::{PathAck, RttEstimator};
use crate::path::{AckedPackets, Outstanding, PathSender};
use crate::recovery::{LossThresholds, RecoveryPeriod, SendSnapshot};
use std::collections::VecDeque;
use units::{Instant, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Acked,
    Lost { since: Instant },
}

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    sent: Instant,
    snapshot: SendSnapshot,
    /// The packet's chunk; `None` for a PING.
    chunk: Option<u64>,
    /// Whether the path was silent: the chunk has been handed back and is sent on other paths.
    is_given_up: bool,
    state: State,
}

/// The outcomes of packets that an acknowledgement or a timer reveals. The buffers are reused.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketOutcomes {
    /// Chunks of newly acknowledged packets, including lost ones that were only late.
    pub acked_chunks: Vec<u64>,
    /// Chunks of newly lost packets that had not been given up.
    pub lost_chunks: Vec<u64>,
    /// Numbers of newly lost packets, and whether the time threshold was the reason.
    pub lost_numbers: Vec<(u64, bool)>,
    /// Newly acknowledged packets that were in flight.
    pub acked_packets: u32,
    /// Packets newly lost.
    pub lost_packets: u32,
    /// Lost packets that were acknowledged later.
    pub spurious_losses: u32,
    /// The largest packet number newly acknowledged.
    pub largest_acked: Option<u64>,
    /// The largest packet number newly lost.
    pub largest_lost: Option<u64>,
    /// Whether the losses are persistent congestion.
    pub is_persistent: bool,
    /// Input for the controller's sample.
    pub acked: AckedPackets,
}

impl PacketOutcomes {
    fn clear(&mut self) {
        let (mut acked_chunks, mut lost_chunks, mut lost_numbers) = (
            std::mem::take(&mut self.acked_chunks),
            std::mem::take(&mut self.lost_chunks),
            std::mem::take(&mut self.lost_numbers),
        );
        acked_chunks.clear();
        lost_chunks.clear();
        lost_numbers.clear();
        *self = Self { acked_chunks, lost_chunks, lost_numbers, ..Self::default() };
    }
}

/// The packets of a path, by packet number.
#[derive(Clone, Debug)]
pub(super) struct SentPackets {
    /// Number of the first packet in `packets`.
    base: u64,
    packets: VecDeque<SentPacket>,
    /// The oldest packet in flight, or the next packet.
    oldest_in_flight: u64,
    in_flight: u32,
    largest_acked: Option<u64>,
    /// Expiry of the loss timer (RFC 9002, section 6.1.2).
    loss_time: Instant,
    /// Time at which a packet was last sent or newly acknowledged; the probe timeout starts then.
    latest_activity: Instant,
    ce_count: u32,
    thresholds: LossThresholds,
    /// The losses that caused the latest reduction of the window.
    pub(super) period: RecoveryPeriod,
}

impl SentPackets {
    pub(super) fn new(adapts_thresholds: bool) -> Self {
        Self {
            base: 0,
            packets: VecDeque::new(),
            oldest_in_flight: 0,
            in_flight: 0,
            largest_acked: None,
            loss_time: Instant::NEVER,
            latest_activity: Instant::ZERO,
            ce_count: 0,
            thresholds: LossThresholds::new(adapts_thresholds),
            period: RecoveryPeriod::default(),
        }
    }

    /// The next packet number.
    pub(super) fn next(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(super) fn loss_time(&self) -> Instant {
        self.loss_time
    }

    pub(super) fn latest_activity(&self) -> Instant {
        self.latest_activity
    }

    pub(super) fn outstanding(&self) -> Outstanding {
        let in_flight = self.in_flight;
        let (snd_una, snd_nxt) = (self.oldest_in_flight, self.next());
        Outstanding { in_flight, packets_out: in_flight, sacked: 0, snd_una, snd_nxt }
    }

    /// Adds a packet, which may be given up from the start. Returns its number.
    pub(super) fn push(&mut self, now: Instant, chunk: Option<u64>, is_given_up: bool, sender: &mut PathSender) -> u64 {
        let snapshot = sender.on_sent(now, self.in_flight > 0, self.in_flight + 1, 1);
        self.in_flight += 1;
        self.latest_activity = now;
        self.packets.push_back(SentPacket { sent: now, snapshot, chunk, is_given_up, state: State::InFlight });
        self.next() - 1
    }

    /// The chunks of the packets in flight, oldest first.
    pub(super) fn chunks_in_flight(&self) -> impl Iterator<Item = u64> + '_ {
        let first = (self.oldest_in_flight - self.base) as usize;
        let in_flight = self.packets.range(first..).filter(|packet| packet.state == State::InFlight);
        in_flight.filter_map(|packet| packet.chunk)
    }

    /// Handles an acknowledgement. False if it acknowledges a packet that was never sent.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: &PathAck,
        rtt: &mut RttEstimator,
        sender: &mut PathSender,
        outcomes: &mut PacketOutcomes,
    ) -> bool {
        outcomes.clear();
        let largest = ack.ranges.largest();
        if ack.ranges.is_empty() || largest >= self.next() {
            return false;
        }
        let prior_oldest = self.oldest_in_flight;
        for (start, end) in ack.ranges.iter() {
            if end < self.base {
                break;
            }
            for number in (start.max(self.base)..=end).rev() {
                self.on_acked(now, number, rtt, sender, outcomes);
            }
        }
        let has_new_largest = self.largest_acked < Some(largest);
        if has_new_largest {
            self.largest_acked = Some(largest);
            // An acknowledgement that was overtaken by a newer one has old counts (RFC 9000, section 13.4.2.1).
            let marked = ack.ce_count.wrapping_sub(self.ce_count);
            self.ce_count = ack.ce_count;
            outcomes.acked.marked = marked.min(outcomes.acked_packets);
        }
        if outcomes.acked_packets > 0 {
            self.latest_activity = now;
        }
        // RFC 9002, section 5.1: there is a sample if the largest acknowledged packet is newly acknowledged.
        if outcomes.largest_acked == Some(largest) && has_new_largest {
            let sent = self.packets[(largest - self.base) as usize].sent;
            let latest = Span(now.since(sent).0.max(1));
            let adjusted = rtt.update(now, latest, Span::from_micros(u64::from(ack.delay_us)));
            sender.update_min_rtt(now, latest);
            sender.update_rtt(adjusted, self.oldest_in_flight, self.next());
            outcomes.acked.rtt = Some(adjusted);
            outcomes.acked.one_way_delay = Some(Span::from_micros(u64::from(ack.one_way_delay_us)));
        }
        self.detect_losses(now, rtt, sender, outcomes);
        self.forget(now, rtt);
        outcomes.acked.advanced = self.oldest_in_flight > prior_oldest;
        true
    }

    fn on_acked(
        &mut self,
        now: Instant,
        number: u64,
        rtt: &RttEstimator,
        sender: &mut PathSender,
        outcomes: &mut PacketOutcomes,
    ) {
        let packet = &mut self.packets[(number - self.base) as usize];
        match packet.state {
            State::Acked => return,
            State::InFlight => {
                self.in_flight -= 1;
                outcomes.acked_packets += 1;
                outcomes.largest_acked = outcomes.largest_acked.max(Some(number));
            }
            State::Lost { .. } => {
                outcomes.spurious_losses += 1;
                self.period.on_arrived(number);
                let displacement = self.largest_acked.map_or(0, |largest| largest.saturating_sub(number));
                self.thresholds.on_spurious_loss(displacement, now.since(packet.sent), rtt.loss_rtt());
            }
        }
        // A late packet counts as delivered, too. Without it the delivery rate would be too low (Linux also counts it).
        sender.on_delivered(&mut outcomes.acked.rate_sample, number, packet.sent, 1, &packet.snapshot);
        packet.state = State::Acked;
        outcomes.acked_chunks.extend(packet.chunk);
    }

    /// Handles the expiry of the loss timer.
    pub(super) fn on_loss_timer(
        &mut self,
        now: Instant,
        rtt: &RttEstimator,
        sender: &mut PathSender,
        outcomes: &mut PacketOutcomes,
    ) {
        outcomes.clear();
        let prior_oldest = self.oldest_in_flight;
        self.detect_losses(now, rtt, sender, outcomes);
        self.forget(now, rtt);
        outcomes.acked.advanced = self.oldest_in_flight > prior_oldest;
    }

    /// Detects losses (RFC 9002, appendix A.10), and persistent congestion (section 7.6.2): the oldest and the newest
    /// of the packets lost at once, with no acknowledged packet in between.
    fn detect_losses(
        &mut self,
        now: Instant,
        rtt: &RttEstimator,
        sender: &mut PathSender,
        outcomes: &mut PacketOutcomes,
    ) {
        self.loss_time = Instant::NEVER;
        let Some(largest) = self.largest_acked else { return };
        let (loss_delay, duration) = (self.thresholds.loss_delay(rtt.loss_rtt()), rtt.persistent_congestion_duration());
        let mut first_lost: Option<Instant> = None;
        for number in self.oldest_in_flight..largest {
            let packet = &mut self.packets[(number - self.base) as usize];
            match packet.state {
                State::InFlight => {}
                State::Acked => {
                    first_lost = None;
                    continue;
                }
                State::Lost { .. } => continue,
            }
            let deadline = packet.sent + loss_delay;
            if number + self.thresholds.packets() > largest && deadline > now {
                self.loss_time = deadline;
                break;
            }
            packet.state = State::Lost { since: now };
            self.period.on_lost(number);
            self.in_flight -= 1;
            outcomes.lost_packets += 1;
            outcomes.lost_numbers.push((number, number + self.thresholds.packets() > largest));
            outcomes.lost_chunks.extend(packet.chunk.filter(|_| !packet.is_given_up));
            outcomes.largest_lost = Some(number);
            outcomes.acked.newest_lost = Some(packet.snapshot);
            sender.count_lost(1);
            if rtt.first_sample().is_some_and(|first| packet.sent > first) {
                let first = *first_lost.get_or_insert(packet.sent);
                outcomes.is_persistent |= packet.sent.since(first) > duration;
            }
        }
        while self.oldest_in_flight < self.next()
            && self.packets[(self.oldest_in_flight - self.base) as usize].state != State::InFlight
        {
            self.oldest_in_flight += 1;
        }
    }

    /// Forgets acknowledged packets, and packets that have been lost for one probe timeout.
    fn forget(&mut self, now: Instant, rtt: &RttEstimator) {
        let pto = rtt.pto(0);
        while let Some(packet) = self.packets.front() {
            match packet.state {
                State::Acked => {}
                State::Lost { since } if since + pto <= now => {}
                _ => return,
            }
            self.packets.pop_front();
            self.base += 1;
        }
    }

    /// Gives up everything in flight, because the path is silent; the packets may still be acknowledged or lost.
    /// Returns the chunks that had not been given up.
    pub(super) fn give_up(&mut self) -> Vec<u64> {
        let first = (self.oldest_in_flight - self.base) as usize;
        let in_flight = self.packets.range_mut(first..).filter(|packet| packet.state == State::InFlight);
        let give_up =
            |packet: &mut SentPacket| packet.chunk.filter(|_| !std::mem::replace(&mut packet.is_given_up, true));
        in_flight.filter_map(give_up).collect()
    }

    /// Abandons the path: everything in flight is lost. Returns the chunks that had not been given up.
    pub(super) fn abandon(&mut self, sender: &mut PathSender) -> Vec<u64> {
        let chunks = self.give_up();
        sender.count_lost(self.in_flight);
        let next = self.next();
        (self.base, self.oldest_in_flight, self.in_flight, self.loss_time) = (next, next, 0, Instant::NEVER);
        self.packets.clear();
        chunks
    }
}

#[cfg(test)]
mod tests;
