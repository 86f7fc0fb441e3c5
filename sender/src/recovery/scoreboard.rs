//! The scoreboard (RFC 6675): an entry for each outstanding packet, and the counts of the pipe.
//!
//! Sequence numbers count packets. Entries live in a ring indexed by sequence number, so that the steady state neither
//! searches nor allocates. Packets sent once are in send order by construction. Retransmissions have a separate queue,
//! which is cleaned lazily. Together they are the time-ordered list that RACK walks.

mod buffers;

use super::SendSnapshot;
use std::collections::VecDeque;
use units::Instant;

/// An outstanding packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentPacket {
    /// When the packet was last sent.
    pub sent: Instant,
    /// The delivery-rate state when the packet was last sent.
    pub snapshot: SendSnapshot,
    flags: u8,
}

/// Entries of a new ring: room for an initial window (RFC 6928).
const INITIAL_PACKETS: usize = 16;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// A retransmission of the packet is outstanding.
const RETRANSMITTED: u8 = 4;
/// The packet was retransmitted at least once.
const EVER_RETRANSMITTED: u8 = 8;
/// RACK has marked this transmission lost. That happens only once, even if the mark is undone (Linux removes the packet
/// from the time-ordered list).
const RACK_MARKED: u8 = 16;
/// The last packet of a super-segment.
const SUPER_SEGMENT_END: u8 = 32;

impl SentPacket {
    /// Whether the packet was selectively acknowledged.
    #[must_use]
    pub fn is_sacked(&self) -> bool {
        self.flags & SACKED != 0
    }

    /// Whether the packet is marked lost and has not been delivered since.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.flags & LOST != 0
    }

    /// Whether a retransmission of the packet is outstanding.
    #[must_use]
    pub fn is_retransmitted(&self) -> bool {
        self.flags & RETRANSMITTED != 0
    }

    /// Whether the packet was retransmitted at least once, so that its RTT is ambiguous (Karn).
    #[must_use]
    pub fn was_retransmitted(&self) -> bool {
        self.flags & EVER_RETRANSMITTED != 0
    }

    /// 1 if the packet is the last of a super-segment, otherwise 0.
    fn ends_super_segment(&self) -> u32 {
        u32::from(self.flags & SUPER_SEGMENT_END != 0)
    }

    /// Whether the packet is subject to loss detection: neither delivered nor waiting for retransmission.
    fn is_pending(&self) -> bool {
        self.flags & (SACKED | RACK_MARKED) == 0 && self.flags & (LOST | RETRANSMITTED) != LOST
    }

    /// Whether a timeout has taken it for lost, and it has not been sent again.
    fn is_taken_for_lost(&self) -> bool {
        self.flags & (SACKED | RACK_MARKED | LOST | RETRANSMITTED) == LOST
    }
}

/// Packet counts of a scoreboard, as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Packets selectively acknowledged.
    pub sacked_out: u32,
    /// Packets marked lost.
    pub lost_out: u32,
    /// Outstanding retransmissions.
    pub retrans_out: u32,
}

impl PacketCounts {
    /// RFC 6675's pipe (Linux `tcp_packets_in_flight`).
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.packets_out + self.retrans_out - self.sacked_out - self.lost_out
    }
}

/// The outstanding packets of one path.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    ring: Vec<SentPacket>,
    snd_una: u64,
    snd_nxt: u64,
    counts: PacketCounts,
    /// Outstanding packets that end a super-segment.
    super_segments: u32,
    /// One past the highest SACKed packet; at most `snd_una` if none is SACKed.
    sacked_end: u64,
    /// Lower bound of the packets that were sent only once and are pending.
    first_pending: u64,
    /// Lower bound of the packets that wait for retransmission.
    first_lost: u64,
    last_lost: Option<SendSnapshot>,
    retransmissions: VecDeque<(Instant, u64)>,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            ring: vec![SentPacket::default(); INITIAL_PACKETS],
            snd_una: 0,
            snd_nxt: 0,
            counts: PacketCounts::default(),
            super_segments: 0,
            sacked_end: 0,
            first_pending: 0,
            first_lost: 0,
            last_lost: None,
            retransmissions: VecDeque::new(),
        }
    }
}

impl Scoreboard {
    /// The oldest packet not cumulatively acknowledged.
    #[must_use]
    pub fn snd_una(&self) -> u64 {
        self.snd_una
    }

    /// The number of the next new packet.
    #[must_use]
    pub fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    /// The packet counts.
    #[must_use]
    pub fn counts(&self) -> PacketCounts {
        self.counts
    }

    /// One past the highest SACKed packet, or `snd_una` if none is SACKed.
    #[must_use]
    #[inline]
    pub fn sacked_end(&self) -> u64 {
        if self.counts.sacked_out == 0 { self.snd_una } else { self.sacked_end.max(self.snd_una) }
    }

    /// The entry of an outstanding packet.
    #[must_use]
    pub fn packet(&self, seq: u64) -> &SentPacket {
        debug_assert!((self.snd_una..self.snd_nxt).contains(&seq), "{seq} is not outstanding");
        &self.ring[seq as usize & (self.ring.len() - 1)]
    }

    fn packet_mut(&mut self, seq: u64) -> &mut SentPacket {
        let mask = self.ring.len() - 1;
        &mut self.ring[seq as usize & mask]
    }

    /// Adds a new packet that is sent now. Returns its number.
    #[inline(always)]
    pub fn push(&mut self, sent: Instant, snapshot: SendSnapshot) -> u64 {
        if (self.snd_nxt - self.snd_una) as usize == self.ring.len() {
            self.grow();
        }
        let seq = self.snd_nxt;
        *self.packet_mut(seq) = SentPacket { sent, snapshot, flags: 0 };
        self.snd_nxt += 1;
        self.counts.packets_out += 1;
        seq
    }

    /// Removes the newest packet, which was not sent.
    pub fn remove_newest(&mut self) {
        debug_assert!(self.snd_una < self.snd_nxt && !self.packet(self.snd_nxt - 1).was_retransmitted());
        self.super_segments -= self.packet(self.snd_nxt - 1).ends_super_segment();
        self.snd_nxt -= 1;
        self.counts.packets_out -= 1;
    }

    fn grow(&mut self) {
        let mut ring = vec![SentPacket::default(); self.ring.len() * 2];
        let mask = ring.len() - 1;
        for seq in self.snd_una..self.snd_nxt {
            ring[seq as usize & mask] = *self.packet(seq);
        }
        self.ring = ring;
    }

    /// Records the retransmission of a packet.
    pub fn retransmit(&mut self, seq: u64, sent: Instant, snapshot: SendSnapshot) {
        self.record_transmission(seq, sent, snapshot, RETRANSMITTED | EVER_RETRANSMITTED);
        self.counts.retrans_out += 1;
    }

    /// Records the retransmission of a packet as a tail-loss probe, which the pipe does not include (Linux
    /// `tcp_send_loss_probe`).
    pub fn retransmit_as_tlp(&mut self, seq: u64, sent: Instant, snapshot: SendSnapshot) {
        self.record_transmission(seq, sent, snapshot, EVER_RETRANSMITTED);
    }

    fn record_transmission(&mut self, seq: u64, sent: Instant, snapshot: SendSnapshot, flags: u8) {
        let packet = self.packet_mut(seq);
        debug_assert!(!packet.is_sacked() && !packet.is_retransmitted());
        packet.sent = sent;
        packet.snapshot = snapshot;
        packet.flags = (packet.flags | flags) & !RACK_MARKED;
        self.retransmissions.push_back((sent, seq));
    }

    /// Removes the oldest packet, which was cumulatively acknowledged.
    pub fn pop(&mut self) -> SentPacket {
        debug_assert!(self.snd_una < self.snd_nxt, "nothing is outstanding");
        let packet = *self.packet(self.snd_una);
        self.snd_una += 1;
        self.counts.packets_out -= 1;
        self.super_segments -= packet.ends_super_segment();
        if packet.flags & (SACKED | LOST | RETRANSMITTED) != 0 {
            self.counts.sacked_out -= u32::from(packet.is_sacked());
            self.counts.lost_out -= u32::from(packet.is_lost());
            self.counts.retrans_out -= u32::from(packet.is_retransmitted());
        }
        packet
    }

    /// Marks a packet SACKed. Returns its previous entry. If the packet was already SACKed, nothing changes.
    pub fn sack(&mut self, seq: u64) -> SentPacket {
        let prior = *self.packet(seq);
        if prior.is_sacked() {
            if self.joins(seq) {
                self.merge_sacked(seq);
            }
            return prior;
        }
        let mut cleared_flags = LOST;
        // A retransmission that is not marked lost still counts as in flight.
        if prior.is_retransmitted() && prior.is_lost() {
            cleared_flags |= RETRANSMITTED;
            self.counts.retrans_out -= 1;
        }
        self.counts.lost_out -= u32::from(prior.is_lost());
        self.counts.sacked_out += 1;
        let packet = self.packet_mut(seq);
        packet.flags = (packet.flags & !cleared_flags) | SACKED;
        self.sacked_end = self.sacked_end.max(seq + 1);
        self.merge_sacked(seq);
        prior
    }

    /// Stops counting the outstanding retransmission of `seq`: a DSACK shows its arrival, or it was not sent.
    pub fn clear_retransmission(&mut self, seq: u64) {
        let packet = self.packet_mut(seq);
        if packet.is_retransmitted() {
            packet.flags &= !RETRANSMITTED;
            self.counts.retrans_out -= 1;
        }
    }

    /// Marks a packet lost, or, if it is already marked, its outstanding retransmission. Returns whether anything
    /// changed.
    pub fn mark_lost(&mut self, seq: u64) -> bool {
        let packet = self.packet_mut(seq);
        if packet.is_sacked() || packet.flags & (LOST | RETRANSMITTED) == LOST {
            return false;
        }
        if packet.is_lost() {
            packet.flags &= !RETRANSMITTED;
            self.counts.retrans_out -= 1;
        } else {
            packet.flags |= LOST;
            self.counts.lost_out += 1;
        }
        self.last_lost = Some(self.packet(seq).snapshot);
        self.first_lost = self.first_lost.min(seq);
        true
    }

    /// Takes the send snapshot of the last packet marked lost.
    pub fn take_last_lost(&mut self) -> Option<SendSnapshot> {
        self.last_lost.take()
    }

    /// Marks a packet lost for RACK, once per transmission.
    fn mark_expired(&mut self, seq: u64) -> bool {
        let newly_lost = self.mark_lost(seq);
        self.packet_mut(seq).flags |= RACK_MARKED;
        newly_lost
    }

    /// Removes every loss mark, because the episode was spurious.
    pub fn unmark_lost(&mut self) {
        for seq in self.snd_una..self.snd_nxt {
            self.packet_mut(seq).flags &= !LOST;
        }
        self.counts.lost_out = 0;
        self.first_pending = self.snd_una;
    }

    /// Whether the oldest packet was retransmitted, or a retransmission is outstanding (Linux `tcp_any_retrans_done`).
    #[must_use]
    pub fn any_retrans_done(&self) -> bool {
        self.counts.retrans_out > 0 || (self.snd_una < self.snd_nxt && self.packet(self.snd_una).was_retransmitted())
    }

    /// Whether the oldest packet is SACKed, although the receiver should have acknowledged it.
    #[must_use]
    pub fn head_is_sacked(&self) -> bool {
        self.snd_una < self.snd_nxt && self.packet(self.snd_una).is_sacked()
    }

    /// Without SACK: counts one more packet as arrived; which one is unknown. False if all but the lost ones are
    /// already counted.
    pub fn add_reno_sack(&mut self) -> bool {
        let has_room = self.counts.sacked_out < self.max_reno_sacks();
        self.counts.sacked_out += u32::from(has_room);
        has_room
    }

    /// Without SACK: `count` of the packets counted by [`Scoreboard::add_reno_sack`] were acknowledged. Returns false
    /// if the others had to be limited to the outstanding packets that are not holes (Linux `tcp_limit_reno_sacked`).
    pub fn remove_reno_sacks(&mut self, count: u32) -> bool {
        let rest = self.counts.sacked_out.saturating_sub(count);
        self.counts.sacked_out = rest.min(self.max_reno_sacks());
        self.counts.sacked_out == rest
    }

    /// Outstanding packets except the holes, which are the lost packets, but at least one.
    fn max_reno_sacks(&self) -> u32 {
        self.counts.packets_out - self.counts.lost_out.max(1).min(self.counts.packets_out)
    }

    /// Without SACK: restarts the count of duplicate acknowledgements.
    pub fn reset_reno_sack(&mut self) {
        self.counts.sacked_out = 0;
    }

    /// Forgets every SACK, because the receiver has reneged.
    pub fn renege(&mut self) {
        for seq in self.snd_una..self.snd_nxt {
            self.packet_mut(seq).flags &= !SACKED;
        }
        self.counts.sacked_out = 0;
        self.sacked_end = self.snd_una;
        self.first_pending = self.snd_una;
    }

    /// The lowest lost packet that has not been retransmitted yet.
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.counts.lost_out == 0 {
            return None;
        }
        self.first_lost = self.first_lost.max(self.snd_una);
        while self.first_lost < self.snd_nxt {
            if self.packet(self.first_lost).flags & (LOST | RETRANSMITTED) == LOST {
                return Some(self.first_lost);
            }
            self.first_lost += 1;
        }
        None
    }

    /// Marks the packets lost that were sent before `newest` (send time, number) and whose send time satisfies
    /// `is_expired`, in the order of sending. Returns their number, and the send time of the latest packet that has not
    /// expired.
    pub fn expire(&mut self, newest: (Instant, u64), is_expired: impl Fn(Instant) -> bool) -> (u32, Option<Instant>) {
        let (mut lost, pending) = self.expire_originals(newest, &is_expired);
        let (lost_retransmissions, later_pending) = self.expire_retransmissions(newest, &is_expired);
        lost += lost_retransmissions;
        (lost, pending.max(later_pending))
    }

    fn expire_originals(
        &mut self,
        newest: (Instant, u64),
        is_expired: &impl Fn(Instant) -> bool,
    ) -> (u32, Option<Instant>) {
        let mut lost = 0;
        self.first_pending = self.first_pending.max(self.snd_una);
        while self.first_pending < self.snd_nxt {
            let packet = self.packet(self.first_pending);
            if packet.is_pending() && !packet.was_retransmitted() {
                if (packet.sent, self.first_pending) >= newest {
                    return (lost, None);
                }
                if !is_expired(packet.sent) {
                    return (lost, self.latest_pending(newest));
                }
                lost += u32::from(self.mark_expired(self.first_pending));
            }
            self.first_pending += 1;
        }
        (lost, None)
    }

    /// The send time of the latest original transmission before `newest` that is neither delivered nor lost.
    fn latest_pending(&self, newest: (Instant, u64)) -> Option<Instant> {
        // Nothing above the newest delivery was sent before it, unless that was a retransmission.
        let is_in_order =
            (self.first_pending..self.snd_nxt).contains(&newest.1) && !self.packet(newest.1).was_retransmitted();
        let end = if is_in_order { newest.1 } else { self.snd_nxt };
        (self.first_pending..end)
            .rev()
            .map(|seq| (seq, self.packet(seq)))
            .find(|(seq, packet)| packet.is_pending() && !packet.was_retransmitted() && (packet.sent, *seq) < newest)
            .map(|(_, packet)| packet.sent)
    }

    fn expire_retransmissions(
        &mut self,
        newest: (Instant, u64),
        is_expired: &impl Fn(Instant) -> bool,
    ) -> (u32, Option<Instant>) {
        let (mut lost, mut index) = (0, 0);
        while let Some(&(sent, seq)) = self.retransmissions.get(index) {
            if self.is_latest(sent, seq) && self.packet(seq).is_taken_for_lost() {
                // The timeout may prove spurious.
                index += 1;
                continue;
            }
            if self.is_current(sent, seq) {
                if (sent, seq) >= newest {
                    return (lost, None);
                }
                if !is_expired(sent) {
                    break;
                }
                lost += u32::from(self.mark_expired(seq));
            }
            self.retransmissions.remove(index);
        }
        let end = self.retransmissions.partition_point(|entry| *entry < newest);
        let pending = self.retransmissions.range(..end).rev().find(|(sent, seq)| self.is_current(*sent, *seq));
        (lost, pending.map(|(sent, _)| *sent))
    }

    /// True if the queue's entry is the packet's latest transmission and is still pending.
    fn is_current(&self, sent: Instant, seq: u64) -> bool {
        self.is_latest(sent, seq) && self.packet(seq).is_pending()
    }

    /// True if the queue's entry is the latest transmission of an outstanding packet.
    fn is_latest(&self, sent: Instant, seq: u64) -> bool {
        (self.snd_una..self.snd_nxt).contains(&seq) && {
            let packet = self.packet(seq);
            packet.was_retransmitted() && packet.sent == sent
        }
    }
}

#[cfg(test)]
mod tests;
