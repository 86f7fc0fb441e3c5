//! The packets sent on a path and the results of the peer's acknowledgements: deliveries, losses, round-trip times.
//!
//! A packet number is used once, so that RTT samples are never ambiguous (RFC 9002, section 3). A packet is lost when
//! another that was sent a packet or time threshold later has been acknowledged (RFC 9002, section 6.1); both thresholds
//! grow when a path proves to reorder more.

mod acknowledgement;
mod return_way;

use super::lost_packets::LostPackets;
use super::{BASE_PLPMTU, DATA_HEADER_BYTES, SEAL_OVERHEAD};
use return_way::ReturnWay;
use sender::path::{AckedPackets, Outstanding, PathSender};
use sender::recovery::{SegmentCounter, SendSnapshot};
use std::collections::VecDeque;
use std::ops::Range;
use units::{Instant, Span};

/// Large datagrams lost in a row that make a black hole (RFC 8899, section 4.3), if it lasts for
/// [`MIN_BLACK_HOLE_TIME`].
const BLACK_HOLE_LOSSES: u32 = 8;
/// Minimum time for which a black hole must be suspected. An overflowing queue loses many packets in a row too, but not
/// so long.
const MIN_BLACK_HOLE_TIME: Span = Span::from_millis(200);
/// Timer granularity (RFC 9002, section 6.1.2: `kGranularity`).
const GRANULARITY: Span = Span::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SentPacketState {
    InFlight,
    /// Without data: neither in flight nor subject to loss detection.
    Control,
    AckedOrLost,
}

/// A packet that was sent.
#[derive(Clone, Debug)]
pub(super) struct SentPacket {
    pub(super) sent: Instant,
    snapshot: SendSnapshot,
    /// Full-size segments that the packet counts as: see [`SegmentCounter`].
    segments: u32,
    datagram_bytes: u32,
    /// Whether the datagram has half the bytes of a full one.
    is_large: bool,
    /// Bytes of datagrams delivered when it was sent.
    delivered_bytes: u64,
    /// Numbers of its fragments among all fragments: of the first, and how many.
    first_fragment: u64,
    fragment_count: u32,
    state: SentPacketState,
}

impl SentPacket {
    fn fragments(&self) -> Range<u64> {
        self.first_fragment..self.first_fragment + u64::from(self.fragment_count)
    }
}

/// The data of a datagram to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DatagramData {
    /// Numbers of its fragments.
    pub(crate) fragments: Range<u64>,
    /// Bytes of the fragments.
    pub(crate) bytes: u32,
    /// Bytes of the body, with headers and frames.
    pub(crate) body_bytes: u32,
}

impl DatagramData {
    /// One fragment of so many bytes.
    pub(crate) fn single(fragment: u64, bytes: u32) -> Self {
        Self { fragments: fragment..fragment + 1, bytes, body_bytes: DATA_HEADER_BYTES + bytes }
    }

    /// Bytes of the UDP payload.
    pub(crate) fn datagram_bytes(&self) -> u32 {
        self.body_bytes + SEAL_OVERHEAD
    }
}

/// Fragments, by their numbers, that were acknowledged or lost. The buffers are reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct FragmentOutcomes {
    pub(crate) acked: Vec<u64>,
    pub(crate) lost: Vec<u64>,
}

impl FragmentOutcomes {
    /// How many fragments were acknowledged, and lost.
    pub(super) fn counts(&self) -> [usize; 2] {
        [self.acked.len(), self.lost.len()]
    }

    /// How many were acknowledged, and lost, since these [`counts`](Self::counts).
    pub(super) fn counts_since(&self, before: [usize; 2]) -> [u64; 2] {
        let now = self.counts();
        std::array::from_fn(|index| (now[index] - before[index]) as u64)
    }
}

/// The packets sent on a path and not yet acknowledged or lost, by packet number.
#[derive(Clone, Debug)]
pub(super) struct SentPackets {
    /// The oldest packet number that is neither acknowledged nor lost.
    base: u64,
    packets: VecDeque<SentPacket>,
    /// Packets with data in flight.
    packets_in_flight: u32,
    /// They, in full-size segments.
    pub(super) in_flight: u32,
    /// Bytes of their datagrams.
    pub(super) bytes_in_flight: u64,
    /// Those of them with half the bytes of a full datagram.
    large_in_flight: u32,
    segment_counter: SegmentCounter,
    /// Bytes of datagrams with data delivered.
    delivered_bytes: u64,
    /// Those of the latest acknowledgement's delivery-rate sample, which counts them in segments.
    pub(super) sampled_bytes: u64,
    largest_acked: Option<u64>,
    pub(super) lost: LostPackets,
    /// Expiry of the loss timer (RFC 9002, section 6.1.2): when [`on_loss_timer`](Self::on_loss_timer) is due.
    pub(super) loss_time: Instant,
    /// RTT sample of the latest acknowledgement (RFC 9002: `latest_rtt`).
    latest_rtt: Span,
    /// When it came.
    sampled_at: Instant,
    /// The peer's ECN-CE count.
    ce_count: u32,
    /// Number and send snapshot of the newest packet found lost by the latest acknowledgement or timer.
    pub(super) newest_lost: Option<(u64, SendSnapshot)>,
    /// Packets with data sent.
    pub(super) sent_packets: u64,
    /// Bytes of data sent.
    pub(super) sent_bytes: u64,
    /// Large datagrams lost since the last one was acknowledged: since when, and how many.
    large_losses: Option<(Instant, u32)>,
    /// One-way delay to the peer's clock: smoothed (modulo 2^32), and its mean deviation; microseconds.
    pub(super) one_way_delay: Option<(u32, i32)>,
    /// The way back of acknowledgements.
    return_way: ReturnWay,
}

impl SentPackets {
    /// No packets; `first_packet_number` is the next packet number.
    pub(super) fn new(first_packet_number: u64) -> Self {
        Self {
            base: first_packet_number,
            packets: VecDeque::new(),
            packets_in_flight: 0,
            in_flight: 0,
            bytes_in_flight: 0,
            large_in_flight: 0,
            segment_counter: SegmentCounter::default(),
            delivered_bytes: 0,
            sampled_bytes: 0,
            largest_acked: None,
            lost: LostPackets::default(),
            loss_time: Instant::NEVER,
            latest_rtt: Span::ZERO,
            sampled_at: Instant::ZERO,
            ce_count: 0,
            newest_lost: None,
            sent_packets: 0,
            sent_bytes: 0,
            large_losses: None,
            one_way_delay: None,
            return_way: ReturnWay::default(),
        }
    }

    /// The next packet number.
    pub(super) fn next_packet_number(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    pub(super) fn outstanding(&self) -> Outstanding {
        let in_flight = self.in_flight;
        let (snd_una, snd_nxt) = (self.base, self.next_packet_number());
        Outstanding { in_flight, packets_out: in_flight, sacked: 0, snd_una, snd_nxt }
    }

    /// Whether nothing but small packets, such as acknowledgements of an inner flow, has been sent for a while.
    pub(super) fn has_small_alone(&self) -> bool {
        self.segment_counter.has_small_alone()
    }

    /// Packets with data in flight, if all of them are small.
    pub(super) fn small_in_flight(&self) -> Option<u32> {
        (self.large_in_flight == 0).then_some(self.packets_in_flight)
    }

    /// A packet is no longer in flight.
    fn remove_in_flight(&mut self, number: u64) {
        let packet = &mut self.packets[(number - self.base) as usize];
        packet.state = SentPacketState::AckedOrLost;
        (self.packets_in_flight, self.in_flight) = (self.packets_in_flight - 1, self.in_flight - packet.segments);
        self.bytes_in_flight -= u64::from(packet.datagram_bytes);
        self.large_in_flight -= u32::from(packet.is_large);
    }

    /// What acknowledgements wait on their way back, smoothed as the RTT is.
    pub(super) fn return_queueing(&self) -> Span {
        self.return_way.smoothed
    }

    /// Whether no packet with data is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.packets_in_flight == 0
    }

    /// Adds a packet with data; returns its packet number. `full_datagram`: bytes of the UDP payload with a full
    /// fragment.
    pub(super) fn push_data(
        &mut self,
        now: Instant,
        data: &DatagramData,
        full_datagram: u32,
        sender: &mut PathSender,
    ) -> u64 {
        let datagram_bytes = data.datagram_bytes();
        let segments = self.segment_counter.count(datagram_bytes, full_datagram);
        let snapshot = sender.on_sent(now, !self.is_idle(), self.in_flight + segments, segments);
        (self.packets_in_flight, self.in_flight) = (self.packets_in_flight + 1, self.in_flight + segments);
        let is_large = datagram_bytes * 2 >= full_datagram;
        self.bytes_in_flight += u64::from(datagram_bytes);
        self.large_in_flight += u32::from(is_large);
        (self.sent_packets, self.sent_bytes) = (self.sent_packets + 1, self.sent_bytes + u64::from(data.bytes));
        self.push(SentPacket {
            sent: now,
            snapshot,
            segments,
            datagram_bytes,
            is_large,
            delivered_bytes: self.delivered_bytes,
            first_fragment: data.fragments.start,
            fragment_count: (data.fragments.end - data.fragments.start) as u32,
            state: SentPacketState::InFlight,
        })
    }

    /// Adds a packet of frames only; returns its packet number.
    pub(super) fn push_control(&mut self, now: Instant) -> u64 {
        if self.packets.is_empty() {
            self.base += 1;
            return self.base - 1;
        }
        self.push(SentPacket {
            sent: now,
            snapshot: SendSnapshot::default(),
            segments: 0,
            datagram_bytes: 0,
            is_large: false,
            delivered_bytes: 0,
            first_fragment: 0,
            fragment_count: 0,
            state: SentPacketState::Control,
        })
    }

    fn push(&mut self, packet: SentPacket) -> u64 {
        self.packets.push_back(packet);
        self.next_packet_number() - 1
    }

    /// The packet number of which the peer sent the low 32 bits (RFC 9000, appendix A.3).
    fn decode(&self, number: u32) -> Option<u64> {
        let newest = self.next_packet_number().checked_sub(1)?;
        newest.checked_sub(u64::from((newest as u32).wrapping_sub(number)))
    }

    /// RFC 9002, section 6.1 and `DetectAndRemoveLostPackets`.
    fn detect_losses(&mut self, now: Instant, sender: &mut PathSender, outcomes: &mut FragmentOutcomes) {
        (self.loss_time, self.newest_lost) = (Instant::NEVER, None);
        let Some(largest) = self.largest_acked else { return };
        let loss_delay = self.lost.thresholds.loss_delay(self.loss_rtt(sender));
        for number in self.base..largest.min(self.next_packet_number()) {
            let packet = &mut self.packets[(number - self.base) as usize];
            if packet.state != SentPacketState::InFlight {
                continue;
            }
            let deadline = packet.sent + loss_delay;
            if number + self.lost.thresholds.packets() > largest && deadline > now {
                self.loss_time = deadline;
                return;
            }
            self.newest_lost = Some((number, packet.snapshot));
            outcomes.lost.extend(packet.fragments());
            if packet.datagram_bytes > BASE_PLPMTU {
                self.large_losses.get_or_insert((now, 0)).1 += 1;
            }
            sender.count_lost(packet.segments);
            self.lost.push(now, number, packet.clone());
            self.remove_in_flight(number);
        }
    }

    /// The RTT that the time threshold of loss detection is a part of (RFC 9002, section 6.1.2).
    fn loss_rtt(&self, sender: &PathSender) -> Span {
        sender.rtt().srtt().max(self.latest_rtt)
    }

    /// The loss timer has expired.
    pub(super) fn on_loss_timer(
        &mut self,
        now: Instant,
        sender: &mut PathSender,
        outcomes: &mut FragmentOutcomes,
    ) -> AckedPackets {
        let base = self.base;
        self.detect_losses(now, sender, outcomes);
        self.finish_losses(base, AckedPackets::default())
    }

    /// What was acknowledged, with what was found lost since the oldest packet was `base`.
    fn finish_losses(&mut self, base: u64, mut acked: AckedPackets) -> AckedPackets {
        self.remove_acked_or_lost();
        acked.newest_lost = self.newest_lost.map(|(_, snapshot)| snapshot);
        acked.advanced = self.base > base;
        acked
    }

    fn remove_acked_or_lost(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.state != SentPacketState::InFlight) {
            self.packets.pop_front();
            self.base += 1;
        }
    }

    /// When a suspected black hole counts as one: small datagrams pass and large ones do not (RFC 8899, section
    /// 4.3).
    pub(super) fn black_hole_deadline(&self, sender: &PathSender) -> Instant {
        let suspected = self.large_losses.filter(|(_, count)| *count >= BLACK_HOLE_LOSSES);
        suspected.map_or(Instant::NEVER, |(since, _)| since + (self.pto(sender) * 2).max(MIN_BLACK_HOLE_TIME))
    }

    /// Fragments in flight, oldest first.
    pub(super) fn fragments(&self) -> impl Iterator<Item = u64> + '_ {
        let in_flight = self.packets.iter().filter(|packet| packet.state == SentPacketState::InFlight);
        in_flight.flat_map(SentPacket::fragments)
    }

    /// The path leads elsewhere: everything in flight is lost.
    pub(super) fn abandon_in_flight(&mut self, sender: &mut PathSender, outcomes: &mut FragmentOutcomes) {
        outcomes.lost.extend(self.fragments());
        sender.count_lost(self.in_flight);
        (self.base, self.packets_in_flight, self.in_flight) = (self.next_packet_number(), 0, 0);
        (self.bytes_in_flight, self.large_in_flight) = (0, 0);
        self.packets.clear();
        (self.loss_time, self.large_losses) = (Instant::NEVER, None);
    }

    /// The path failed: everything in flight is lost, and the measurements are forgotten.
    pub(super) fn on_path_failed(&mut self, sender: &mut PathSender, outcomes: &mut FragmentOutcomes) {
        self.abandon_in_flight(sender, outcomes);
        sender.reset_rtt();
        (self.latest_rtt, self.one_way_delay, self.return_way.smoothed) = (Span::ZERO, None, Span::ZERO);
        self.lost.reset();
    }

    /// Probe timeout (RFC 9002, section 6.2.1), with the longest that the peer delays an acknowledgement. That is about as long as
    /// it takes to use this path for acknowledgements when the one that they went by fails.
    #[inline]
    pub(super) fn pto(&self, sender: &PathSender) -> Span {
        let rtt = sender.rtt();
        let max_ack_delay = super::MAX_BUNDLED_ACK_DELAY.min(rtt.srtt() / super::BUNDLED_ACKS_PER_ROUND_TRIP);
        rtt.srtt() + (rtt.mdev() * 4).max(GRANULARITY) + max_ack_delay.max(super::MAX_ACK_DELAY)
    }

    /// A probe was answered. The minimum round trip of probes is the RTT estimate until data is acknowledged: a path's
    /// first datagram may have waited for a neighbour's address or for a radio to wake up. On a path without data in
    /// flight a round trip shorter by a quarter also shortens the one-way delay: else a path whose queue has drained since
    /// its last data would look slow, get no data, and never be measured again.
    pub(super) fn on_probe(&mut self, now: Instant, rtt: Span, sender: &mut PathSender) {
        let reference = match self.one_way_delay {
            None => sender.min_rtt(),
            Some(_) if self.is_idle() && rtt < sender.rtt().srtt() * 3 / 4 => sender.rtt().srtt(),
            Some(_) => return,
        };
        if rtt >= reference {
            return;
        }
        if let Some((mean, _)) = &mut self.one_way_delay {
            *mean = mean.wrapping_sub(reference.saturating_sub(rtt).as_micros() as u32);
        }
        self.latest_rtt = rtt;
        sender.restart_rtt(now, rtt, self.base, self.next_packet_number());
    }
}

#[cfg(test)]
mod tests;
