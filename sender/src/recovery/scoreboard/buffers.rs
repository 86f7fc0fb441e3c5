//! The buffers (`sk_buff`) that hold the outstanding packets: super-segments as they were sent. They are merged when
//! they are SACKed, and split when a part is sent again.

use super::{EVER_RETRANSMITTED, LOST, RETRANSMITTED, SACKED, SUPER_SEGMENT_END, Scoreboard};

impl Scoreboard {
    /// Outstanding super-segments, counted by their last packets.
    #[must_use]
    pub fn super_segments(&self) -> u32 {
        self.super_segments
    }

    /// Packets of a super-segment from `seq` on.
    #[must_use]
    pub fn buffer_segments(&self, seq: u64) -> u32 {
        let others = (seq..self.snd_nxt - 1).take_while(|seq| self.packet(*seq).ends_super_segment() == 0);
        others.count() as u32 + 1
    }

    /// The first packet of the super-segment that holds packet `seq`.
    #[must_use]
    pub fn buffer_start(&self, seq: u64) -> u64 {
        let ends = |seq: &u64| self.packet(*seq).ends_super_segment() == 1;
        (self.snd_una..seq).rev().find(ends).map_or(self.snd_una, |end| end + 1)
    }

    /// Makes the newest packet the last of a super-segment.
    pub fn end_super_segment(&mut self) {
        self.packet_mut(self.snd_nxt - 1).flags |= SUPER_SEGMENT_END;
        self.super_segments += 1;
    }

    /// Whether packet `seq` can be in the buffer of the previous one, because both are SACKed.
    pub(super) fn joins(&self, seq: u64) -> bool {
        seq > self.snd_una && self.is_mergeable(seq) && self.is_mergeable(seq - 1)
    }

    fn is_mergeable(&self, seq: u64) -> bool {
        seq < self.snd_nxt && self.packet(seq).flags & (SACKED | LOST | RETRANSMITTED) == SACKED
    }

    /// Moves a newly SACKed packet into the buffer of the previous packet if that is SACKed, and the following packets,
    /// too (Linux `tcp_shift_skb_data`). Otherwise it becomes a separate buffer (`tcp_match_skb_to_sack`). If a packet
    /// of a buffer was retransmitted, the whole buffer counts as retransmitted.
    pub(super) fn merge_sacked(&mut self, seq: u64) {
        let joins = self.joins(seq);
        let is_joined = joins && self.is_mergeable(seq + 1);
        if seq > self.snd_una {
            self.set_super_segment_end(seq - 1, !joins);
        }
        self.set_super_segment_end(seq, !is_joined);
        if joins {
            self.spread_retransmission(seq, is_joined);
        }
    }

    /// Packet `seq` has moved into the buffer of the previous one, and, if `is_joined`, the following packets, too.
    fn spread_retransmission(&mut self, seq: u64, is_joined: bool) {
        let was_retransmitted = |seq: u64| self.packet(seq).was_retransmitted();
        if !(seq - 1..=seq + u64::from(is_joined)).any(was_retransmitted) {
            return;
        }
        // A buffer with the mark already has it on all packets.
        let start = if was_retransmitted(seq - 1) { seq } else { self.buffer_start(seq) };
        let is_right_marked = is_joined && was_retransmitted(seq + 1);
        let end = if is_right_marked { seq + 1 } else { seq + u64::from(self.buffer_segments(seq)) };
        (start..end).for_each(|seq| self.packet_mut(seq).flags |= EVER_RETRANSMITTED);
    }

    /// Splits the buffer that holds packet `seq` when its first `count` packets from there on are sent again, as far as
    /// they are lost. The rest becomes a separate buffer (Linux `tcp_fragment`).
    pub fn split_retransmission(&mut self, seq: u64, count: u64) {
        if seq > self.snd_una && self.packet(seq - 1).ends_super_segment() == 0 {
            return; // it goes on
        }
        let end = (seq + count).min(self.snd_nxt);
        let lost = (seq..end).take_while(|seq| self.packet(*seq).is_lost()).count() as u64;
        if (seq..seq + lost).all(|seq| self.packet(seq).ends_super_segment() == 0) && lost > 0 {
            self.set_super_segment_end(seq + lost - 1, true);
        }
    }

    /// Makes packet `seq`, the last of a buffer, a separate buffer.
    pub fn split_last(&mut self, seq: u64) {
        if seq > self.snd_una {
            self.set_super_segment_end(seq - 1, true);
        }
    }

    fn set_super_segment_end(&mut self, seq: u64, is_end: bool) {
        self.super_segments += u32::from(is_end);
        self.super_segments -= self.packet(seq).ends_super_segment();
        let packet = self.packet_mut(seq);
        packet.flags = if is_end { packet.flags | SUPER_SEGMENT_END } else { packet.flags & !SUPER_SEGMENT_END };
    }
}
