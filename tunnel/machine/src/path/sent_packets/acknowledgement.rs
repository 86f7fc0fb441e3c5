//! What an acknowledgement delivers, of the packets in flight and of those declared lost.

use super::{FragmentOutcomes, SentPacket, SentPacketState, SentPackets};
use crate::path::BASE_PLPMTU;
use sender::path::{AckedPackets, PathSender};
use std::ops::RangeInclusive;
use units::{Instant, Span};
use wire::frame::Ack;

/// A packet that has come before others skipped what delays them, or they are lost: its RTT sample (RFC 9002, section 5.1) counts only
/// if there was no other for so long. Until the others have come there is no further one, so that with one such packet in a
/// hundred, and eighty in the time that they skip, most samples would be of these.
const MAX_WITHOUT_SAMPLE: Span = Span::from_secs(5);

/// An acknowledgement that is being processed.
struct AckInProgress<'a> {
    now: Instant,
    ack: &'a Ack,
    largest: u64,
    /// The oldest packet in flight, and the segments delivered, before it.
    prior_base: u64,
    prior_delivered: u64,
    /// Whether its largest packet has an RTT sample.
    has_sample: bool,
    acked: AckedPackets,
    /// Packets and bytes of datagrams newly delivered, and whether a large datagram was among them.
    packets: u32,
    bytes: u64,
    has_large: bool,
    /// The newest packet delivered, and the bytes delivered when it was sent.
    newest: Option<(u64, u64)>,
}

impl AckInProgress<'_> {
    /// A packet was delivered, late or not: without the late ones the delivery rate would be too low.
    fn deliver(&mut self, number: u64, packet: &SentPacket, sender: &mut PathSender, outcomes: &mut FragmentOutcomes) {
        let SentPacket { sent, segments, snapshot, datagram_bytes, .. } = packet;
        sender.on_delivered(&mut self.acked.rate_sample, number, *sent, *segments, snapshot);
        self.packets += 1;
        self.bytes += u64::from(*datagram_bytes);
        self.has_large |= *datagram_bytes > BASE_PLPMTU;
        if self.newest.is_none_or(|(newest, _)| number > newest) {
            self.newest = Some((number, packet.delivered_bytes));
        }
        outcomes.acked.extend(packet.fragments());
    }
}

impl SentPackets {
    /// Processes an acknowledgement; `None` if it acknowledges a packet that was never sent.
    pub(in crate::path) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack,
        sender: &mut PathSender,
        outcomes: &mut FragmentOutcomes,
    ) -> Option<AckedPackets> {
        let largest = self.decode(ack.largest)?;
        self.return_way.on_ack(ack);
        let mut progress = AckInProgress {
            now,
            ack,
            largest,
            prior_base: self.base,
            prior_delivered: sender.delivered(),
            has_sample: !self.has_gap(ack, largest) || now.since(self.sampled_at) > MAX_WITHOUT_SAMPLE,
            acked: AckedPackets::default(),
            packets: 0,
            bytes: 0,
            has_large: false,
            newest: None,
        };
        self.lost.forget(now, self.pto(sender));
        let mut range_end = largest;
        for (length, gap) in ack.ranges.iter() {
            let range_start = (range_end + 1).saturating_sub(u64::from(length));
            self.on_late(&(range_start..=range_end), &mut progress, sender, outcomes);
            let in_flight = range_start.max(self.base)..=range_end;
            in_flight.for_each(|number| self.on_acked(number, &mut progress, sender, outcomes));
            let Some(next_end) = range_end.checked_sub(u64::from(length) + u64::from(gap)) else { break };
            if next_end < self.lost.first().unwrap_or(self.base).min(self.base) {
                break;
            }
            range_end = next_end;
        }
        Some(self.finish_ack(progress, sender, outcomes))
    }

    /// Whether packets are missing between the largest acknowledged so far and those that arrived in a row with the largest now.
    fn has_gap(&self, ack: &Ack, largest: u64) -> bool {
        let in_a_row = ack.ranges.iter().next().map_or(0, |(length, _)| u64::from(length));
        self.largest_acked.is_some_and(|acked| acked + in_a_row < largest)
    }

    /// What an acknowledgement has brought, and has shown to be lost.
    fn finish_ack(
        &mut self,
        mut progress: AckInProgress<'_>,
        sender: &mut PathSender,
        outcomes: &mut FragmentOutcomes,
    ) -> AckedPackets {
        self.delivered_bytes += progress.bytes;
        self.sampled_bytes = progress.newest.map_or(0, |(_, delivered_bytes)| self.delivered_bytes - delivered_bytes);
        if progress.has_large {
            self.large_losses = None;
        }
        // An acknowledgement that a newer one overtook has old counts (RFC 9000, section 13.4.2.1).
        if self.largest_acked < Some(progress.largest) {
            self.largest_acked = Some(progress.largest);
            let newly_marked = progress.ack.ce_count.wrapping_sub(self.ce_count) as i32;
            let marked = (newly_marked.max(0) as u32).min(progress.packets);
            let segments = (sender.delivered() - progress.prior_delivered).max(1);
            progress.acked.marked = (u64::from(marked) * segments).div_ceil(u64::from(progress.packets.max(1))) as u32;
            self.ce_count = progress.ack.ce_count;
        }
        self.detect_losses(progress.now, sender, outcomes);
        self.finish_losses(progress.prior_base, progress.acked)
    }

    fn on_acked(
        &mut self,
        number: u64,
        progress: &mut AckInProgress<'_>,
        sender: &mut PathSender,
        outcomes: &mut FragmentOutcomes,
    ) {
        let packet = &self.packets[(number - self.base) as usize];
        if packet.state != SentPacketState::InFlight {
            return;
        }
        progress.deliver(number, packet, sender, outcomes);
        if number == progress.largest && progress.has_sample {
            self.sampled_at = progress.now;
            let sent = packet.sent;
            progress.acked.rtt = Some(self.update_rtt_and_delay(progress.now, sent, progress.ack, sender));
            progress.acked.return_queueing = self.return_way.queueing(progress.now, progress.ack);
        }
        self.remove_in_flight(number);
    }

    /// Delivers those of the packets that were declared lost.
    fn on_late(
        &mut self,
        numbers: &RangeInclusive<u64>,
        progress: &mut AckInProgress<'_>,
        sender: &mut PathSender,
        outcomes: &mut FragmentOutcomes,
    ) {
        let rtt = self.loss_rtt(sender);
        while let Some((number, packet)) = self.lost.take_late(progress.now, numbers, self.largest_acked, rtt) {
            progress.deliver(number, &packet, sender, outcomes);
        }
    }

    /// Takes the samples of the largest acknowledged packet: round-trip time without the peer's delay, and one-way
    /// delay.
    fn update_rtt_and_delay(&mut self, now: Instant, sent: Instant, ack: &Ack, sender: &mut PathSender) -> Span {
        let rtt_us = now.since(sent).as_micros().saturating_sub(u64::from(ack.ack_delay_us)).max(1);
        let rtt = Span::from_micros(rtt_us);
        self.latest_rtt = rtt;
        sender.update_min_rtt(now, rtt);
        sender.update_rtt(rtt, self.base, self.next_packet_number());
        // The offset of the clocks is unknown and the same on all paths.
        let delay = ack.receive_timestamp_us.wrapping_sub((sent.0 / 1000) as u32);
        let (mean, deviation) = self.one_way_delay.unwrap_or((delay, 0));
        let error = delay.wrapping_sub(mean) as i32;
        let change = (i64::from(error.unsigned_abs()) - i64::from(deviation)) / 4;
        self.one_way_delay = Some((mean.wrapping_add_signed(error / 8), deviation + change as i32));
        rtt
    }
}
