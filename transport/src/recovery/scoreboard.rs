//! The scoreboard: one record per outstanding packet, and the counters of RFC 6675's pipe.
//!
//! Sequence numbers count packets. Records live in a ring indexed by sequence number, so that the steady state neither
//! searches nor allocates. Packets sent once are in send order by construction; retransmissions have a queue of their
//! own, cleaned lazily. Together they are the time-ordered list that RACK walks.

use super::Snapshot;
use std::collections::VecDeque;
use units::Instant;

/// One outstanding packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    /// When it was last sent.
    pub sent: Instant,
    /// The delivery-rate snapshot of that moment.
    pub snapshot: Snapshot,
    flags: u8,
}

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// A retransmission is outstanding.
const RETRANSMITTED: u8 = 4;
/// It was retransmitted at least once.
const EVER_RETRANSMITTED: u8 = 8;
/// RACK has judged this transmission; it is not judged again, even if the verdict is taken back (Linux removes it from
/// the time-ordered list).
const JUDGED: u8 = 16;

impl Record {
    /// Selectively acknowledged.
    #[must_use]
    pub fn is_sacked(&self) -> bool {
        self.flags & SACKED != 0
    }

    /// Taken for lost, and not yet known to have been repaired.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.flags & LOST != 0
    }

    /// A retransmission is outstanding.
    #[must_use]
    pub fn is_retransmitted(&self) -> bool {
        self.flags & RETRANSMITTED != 0
    }

    /// Was retransmitted at least once: its round-trip time is ambiguous (Karn).
    #[must_use]
    pub fn was_retransmitted(&self) -> bool {
        self.flags & EVER_RETRANSMITTED != 0
    }

    /// Still to be judged by loss detection: neither delivered nor waiting for retransmission.
    fn is_pending(&self) -> bool {
        self.flags & (SACKED | JUDGED) == 0 && self.flags & (LOST | RETRANSMITTED) != LOST
    }
}

/// The pipe's counters, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sent and not cumulatively acknowledged.
    pub out: u32,
    /// Selectively acknowledged.
    pub sacked: u32,
    /// Marked lost.
    pub lost: u32,
    /// Retransmissions outstanding.
    pub retransmitted: u32,
}

impl Counts {
    /// RFC 6675's pipe: what is thought to be in the network.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.out + self.retransmitted - self.sacked - self.lost
    }
}

/// The outstanding packets of one path.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    ring: Vec<Record>,
    una: u64,
    next: u64,
    counts: Counts,
    /// One past the highest SACKed packet; `una` or less if none is.
    sacked_end: u64,
    /// No packet sent only once and still pending lies below this.
    first_pending: u64,
    /// No packet that waits for retransmission lies below this.
    first_lost: u64,
    last_lost: Option<Snapshot>,
    retransmissions: VecDeque<(Instant, u64)>,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            ring: vec![Record::default(); 64],
            una: 0,
            next: 0,
            counts: Counts::default(),
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
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The next new packet.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// One past the highest SACKed packet, or `una` if none is SACKed.
    #[must_use]
    pub fn sacked_end(&self) -> u64 {
        if self.counts.sacked == 0 { self.una } else { self.sacked_end.max(self.una) }
    }

    /// The record of an outstanding packet.
    #[must_use]
    pub fn record(&self, seq: u64) -> &Record {
        debug_assert!((self.una..self.next).contains(&seq), "{seq} is not outstanding");
        &self.ring[seq as usize & (self.ring.len() - 1)]
    }

    fn record_mut(&mut self, seq: u64) -> &mut Record {
        let mask = self.ring.len() - 1;
        &mut self.ring[seq as usize & mask]
    }

    /// A new packet leaves; returns its number.
    pub fn push(&mut self, sent: Instant, snapshot: Snapshot) -> u64 {
        if (self.next - self.una) as usize == self.ring.len() {
            self.grow();
        }
        let seq = self.next;
        *self.record_mut(seq) = Record { sent, snapshot, flags: 0 };
        self.next += 1;
        self.counts.out += 1;
        seq
    }

    /// The newest packet did not leave after all.
    pub fn take_back(&mut self) {
        debug_assert!(self.una < self.next && !self.record(self.next - 1).was_retransmitted());
        self.next -= 1;
        self.counts.out -= 1;
    }

    fn grow(&mut self) {
        let mut ring = vec![Record::default(); self.ring.len() * 2];
        let mask = ring.len() - 1;
        for seq in self.una..self.next {
            ring[seq as usize & mask] = *self.record(seq);
        }
        self.ring = ring;
    }

    /// A packet is sent again.
    pub fn retransmit(&mut self, seq: u64, sent: Instant, snapshot: Snapshot) {
        self.send_again(seq, sent, snapshot, RETRANSMITTED | EVER_RETRANSMITTED);
        self.counts.retransmitted += 1;
    }

    /// A packet is sent again as a probe: the pipe does not count it (Linux `tcp_send_loss_probe`).
    pub fn probe(&mut self, seq: u64, sent: Instant, snapshot: Snapshot) {
        self.send_again(seq, sent, snapshot, EVER_RETRANSMITTED);
    }

    fn send_again(&mut self, seq: u64, sent: Instant, snapshot: Snapshot, flags: u8) {
        let record = self.record_mut(seq);
        debug_assert!(!record.is_sacked() && !record.is_retransmitted());
        record.sent = sent;
        record.snapshot = snapshot;
        record.flags = (record.flags | flags) & !JUDGED;
        self.retransmissions.push_back((sent, seq));
    }

    /// Removes the oldest packet, which was cumulatively acknowledged.
    pub fn pop(&mut self) -> Record {
        debug_assert!(self.una < self.next, "nothing is outstanding");
        let record = *self.record(self.una);
        self.una += 1;
        self.counts.out -= 1;
        self.counts.sacked -= u32::from(record.is_sacked());
        self.counts.lost -= u32::from(record.is_lost());
        self.counts.retransmitted -= u32::from(record.is_retransmitted());
        record
    }

    /// Marks a packet as delivered by SACK. Returns what it was before; nothing changes if it was SACKed already.
    pub fn sack(&mut self, seq: u64) -> Record {
        let before = *self.record(seq);
        if before.is_sacked() {
            return before;
        }
        let mut cleared = LOST;
        // A retransmission that nobody gave up stays counted: it is believed to be on its way.
        if before.is_retransmitted() && before.is_lost() {
            cleared |= RETRANSMITTED;
            self.counts.retransmitted -= 1;
        }
        self.counts.lost -= u32::from(before.is_lost());
        self.counts.sacked += 1;
        let record = self.record_mut(seq);
        record.flags = (record.flags & !cleared) | SACKED;
        self.sacked_end = self.sacked_end.max(seq + 1);
        before
    }

    /// A duplicate report shows that the outstanding retransmission of `seq` has arrived.
    pub fn clear_retransmission(&mut self, seq: u64) {
        let record = self.record_mut(seq);
        if record.is_retransmitted() {
            record.flags &= !RETRANSMITTED;
            self.counts.retransmitted -= 1;
        }
    }

    /// Marks a packet lost, or, if it was marked already, its outstanding retransmission. True if that was news.
    pub fn mark_lost(&mut self, seq: u64) -> bool {
        let record = self.record_mut(seq);
        if record.is_sacked() || record.flags & (LOST | RETRANSMITTED) == LOST {
            return false;
        }
        if record.is_lost() {
            record.flags &= !RETRANSMITTED;
            self.counts.retransmitted -= 1;
        } else {
            record.flags |= LOST;
            self.counts.lost += 1;
        }
        self.last_lost = Some(self.record(seq).snapshot);
        self.first_lost = self.first_lost.min(seq);
        true
    }

    /// The snapshot of the packet marked lost last, once.
    pub fn take_last_lost(&mut self) -> Option<Snapshot> {
        self.last_lost.take()
    }

    /// Marks a packet lost for being overdue: RACK's verdict, given once a transmission.
    fn judge(&mut self, seq: u64) -> bool {
        let news = self.mark_lost(seq);
        self.record_mut(seq).flags |= JUDGED;
        news
    }

    /// Takes back every loss mark: the episode was spurious.
    pub fn unmark_lost(&mut self) {
        for seq in self.una..self.next {
            self.record_mut(seq).flags &= !LOST;
        }
        self.counts.lost = 0;
        self.first_pending = self.una;
    }

    /// The oldest packet was retransmitted, or a retransmission is outstanding.
    #[must_use]
    pub fn any_retransmitted(&self) -> bool {
        self.counts.retransmitted > 0 || (self.una < self.next && self.record(self.una).was_retransmitted())
    }

    /// The oldest packet is SACKed: the receiver should have acknowledged it.
    #[must_use]
    pub fn head_is_sacked(&self) -> bool {
        self.una < self.next && self.record(self.una).is_sacked()
    }

    /// Without SACK: one more packet, unknown which, has arrived. False if all but the holes had been counted.
    pub fn count_repeated(&mut self) -> bool {
        let holes = self.counts.lost.max(1).min(self.counts.out);
        let room = self.counts.sacked + holes < self.counts.out;
        self.counts.sacked += u32::from(room);
        room
    }

    /// Without SACK: `count` of the packets counted by [`Scoreboard::count_repeated`] were acknowledged.
    pub fn release_repeated(&mut self, count: u32) {
        let holes = self.counts.lost.max(1).min(self.counts.out);
        self.counts.sacked = self.counts.sacked.saturating_sub(count).min(self.counts.out - holes);
    }

    /// Without SACK: duplicate acknowledgements are counted afresh.
    pub fn forget_repeated(&mut self) {
        self.counts.sacked = 0;
    }

    /// Forgets every SACK: the receiver went back on them.
    pub fn renege(&mut self) {
        for seq in self.una..self.next {
            self.record_mut(seq).flags &= !SACKED;
        }
        self.counts.sacked = 0;
        self.sacked_end = self.una;
        self.first_pending = self.una;
    }

    /// The lowest packet that is lost and not sent again yet.
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.counts.lost == 0 {
            return None;
        }
        self.first_lost = self.first_lost.max(self.una);
        while self.first_lost < self.next {
            if self.record(self.first_lost).flags & (LOST | RETRANSMITTED) == LOST {
                return Some(self.first_lost);
            }
            self.first_lost += 1;
        }
        None
    }

    /// Marks lost what was sent no later than `(sent, seq)` and has `expired`, in the order of sending.
    /// Returns how many packets that were, and the send time of the latest one still in doubt.
    pub fn expire(&mut self, newest: (Instant, u64), expired: impl Fn(Instant) -> bool) -> (u32, Option<Instant>) {
        let (mut lost, doubt) = self.expire_originals(newest, &expired);
        let (more, later_doubt) = self.expire_retransmissions(newest, &expired);
        lost += more;
        (lost, doubt.max(later_doubt))
    }

    fn expire_originals(
        &mut self,
        newest: (Instant, u64),
        expired: &impl Fn(Instant) -> bool,
    ) -> (u32, Option<Instant>) {
        let mut lost = 0;
        self.first_pending = self.first_pending.max(self.una);
        while self.first_pending < self.next {
            let record = self.record(self.first_pending);
            if record.is_pending() && !record.was_retransmitted() {
                if (record.sent, self.first_pending) >= newest {
                    return (lost, None);
                }
                if !expired(record.sent) {
                    return (lost, self.latest_in_doubt(newest));
                }
                lost += u32::from(self.judge(self.first_pending));
            }
            self.first_pending += 1;
        }
        (lost, None)
    }

    /// The send time of the latest original below `newest` that is neither delivered nor lost.
    fn latest_in_doubt(&self, newest: (Instant, u64)) -> Option<Instant> {
        // Nothing above the newest delivery was sent before it, unless that was a retransmission.
        let in_order =
            (self.first_pending..self.next).contains(&newest.1) && !self.record(newest.1).was_retransmitted();
        let top = if in_order { newest.1 } else { self.next };
        (self.first_pending..top)
            .rev()
            .map(|seq| (seq, self.record(seq)))
            .find(|(seq, record)| record.is_pending() && !record.was_retransmitted() && (record.sent, *seq) < newest)
            .map(|(_, record)| record.sent)
    }

    fn expire_retransmissions(
        &mut self,
        newest: (Instant, u64),
        expired: &impl Fn(Instant) -> bool,
    ) -> (u32, Option<Instant>) {
        let mut lost = 0;
        while let Some(&(sent, seq)) = self.retransmissions.front() {
            if self.is_current(sent, seq) {
                if (sent, seq) >= newest {
                    return (lost, None);
                }
                if !expired(sent) {
                    break;
                }
                lost += u32::from(self.judge(seq));
            }
            self.retransmissions.pop_front();
        }
        let before = self.retransmissions.partition_point(|entry| *entry < newest);
        let doubt = self.retransmissions.range(..before).rev().find(|(sent, seq)| self.is_current(*sent, *seq));
        (lost, doubt.map(|(sent, _)| *sent))
    }

    /// The queue's entry is the packet's latest transmission and still pending.
    fn is_current(&self, sent: Instant, seq: u64) -> bool {
        (self.una..self.next).contains(&seq) && {
            let record = self.record(seq);
            record.was_retransmitted() && record.sent == sent && record.is_pending()
        }
    }
}

#[cfg(test)]
mod tests;
