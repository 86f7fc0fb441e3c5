//! Segments and acknowledgements as values: nothing is serialised.

/// Number of values of the ACE field (RFC 9768 section 3.2.2).
pub(crate) const ACE_CYCLE: u8 = 8;
/// The ACE field before any mark (RFC 9768 section 3.2.1: `s.cep` and `r.cep` begin at 5).
pub(crate) const INITIAL_ACE: u8 = 5;

/// The kind of a segment from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// SYN: opens the connection.
    Syn,
    /// Third packet of the handshake: no data.
    HandshakeAck,
    /// One MSS of data.
    Data,
    /// A probe of a closed receive window, without data (RFC 9293 section 3.8.6.1).
    WindowProbe,
}

/// A segment towards the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The kind.
    pub kind: SegmentKind,
    /// The sequence number; data segments count from 0.
    pub seq: u64,
    /// TSval of the timestamps option, milliseconds (RFC 7323).
    pub tsval: u32,
    /// TSecr of the timestamps option, milliseconds.
    pub tsecr: u32,
    /// CWR flag: the sender answers an ECN echo (RFC 3168 CWR).
    pub cwr: bool,
    /// Whether the segment carries data that was sent before.
    pub retransmission: bool,
    /// PSH flag: the last segment of a super-segment of several, or of the data that the application has written.
    pub psh: bool,
}

/// Up to four SACK blocks `[start, end)`, the first of which may report a duplicate (RFC 2018, RFC 2883). The type is
/// small because every acknowledgement in flight carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    starts: [u64; 4],
    lengths: [u32; 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block; a fifth does not fit into the options of a header and is ignored.
    pub fn push(&mut self, (start, end): (u64, u64)) {
        let index = self.len();
        if index < self.starts.len() {
            self.starts[index] = start;
            self.lengths[index] = u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX);
            self.count += 1;
        }
    }

    /// Keeps at most the first `count` blocks.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count as u8);
    }

    /// Number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// True if there are no blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The blocks, most recent first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let blocks = self.starts.into_iter().zip(self.lengths).take(self.len());
        blocks.map(|(start, length)| (start, start.saturating_add(u64::from(length))))
    }

    /// The blocks except the first `skipped`, lowest sequence number first.
    pub(crate) fn sorted(&self, skipped: usize) -> impl Iterator<Item = (u64, u64)> + use<> {
        let mut blocks = [(u64::MAX, u64::MAX); 4];
        blocks.iter_mut().zip(self.iter().skip(skipped)).for_each(|(to, from)| *to = from);
        blocks.sort_unstable();
        blocks.into_iter().take(self.len().saturating_sub(skipped))
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// SYN flag: the acknowledgement answers a SYN and acknowledges no data.
    pub syn: bool,
    /// Cumulative acknowledgement: every segment with a lower number has arrived.
    pub ack: u64,
    /// Receive window, bytes.
    pub receive_window: u64,
    /// TSval, milliseconds.
    pub tsval: u32,
    /// TSecr, milliseconds.
    pub tsecr: u32,
    /// SACK blocks.
    pub sack_blocks: SackBlocks,
    /// ECE flag: ECN echo (RFC 3168).
    pub ece: bool,
    /// ACE field: the receiver's count of CE-marked packets, modulo 8 (RFC 9768).
    pub ace: u8,
    /// One-way delay of the newest segment, milliseconds of the clock that both ends share. Real TCP has no such field.
    /// TCP-LP, which is defined by this delay, estimates it from timestamps.
    pub one_way_delay_ms: u32,
}

impl Ack {
    /// Whether this acknowledgement contains everything that an earlier one of the same connection says, so that a
    /// queue may drop the earlier one (CAKE's ACK filter). It does not for duplicates without new SACK blocks, or for
    /// additions by ECN or SACK.
    #[must_use]
    pub fn supersedes(&self, earlier: &Self) -> bool {
        let flags = |ack: &Self| (ack.syn, ack.ece, ack.ace);
        let is_inside = |(start, end): (u64, u64), blocks: &SackBlocks, skip| {
            blocks.iter().skip(skip).any(|block| block.0 <= start && end <= block.1)
        };
        let adds_sack = |block: (u64, u64)| block.0 >= self.ack && !is_inside(block, &earlier.sack_blocks, 0);
        let is_covered = |block: (u64, u64)| {
            block.0 >= earlier.ack && (block.1 <= self.ack || is_inside(block, &self.sack_blocks, 0))
        };
        let reports_duplicate =
            earlier.sack_blocks.iter().next().is_some_and(|first| is_inside(first, &earlier.sack_blocks, 1));
        let is_newer = self.ack > earlier.ack || self.ack == earlier.ack && self.sack_blocks.iter().any(adds_sack);
        is_newer
            && !self.syn
            && flags(self) == flags(earlier)
            && !reports_duplicate
            && earlier.sack_blocks.iter().all(is_covered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(ack: u64, blocks: &[(u64, u64)]) -> Ack {
        let mut sack_blocks = SackBlocks::default();
        blocks.iter().for_each(|block| sack_blocks.push(*block));
        Ack { ack, sack_blocks, ..Ack::default() }
    }

    #[test]
    fn an_acknowledgement_supersedes_an_earlier_one_that_says_nothing_more() {
        assert!(ack(5, &[]).supersedes(&ack(4, &[])));
        assert!(!ack(5, &[]).supersedes(&ack(5, &[])), "a duplicate");
        assert!(ack(5, &[(7, 9)]).supersedes(&ack(5, &[(7, 8)])), "one that says more");
        assert!(!ack(5, &[(7, 8)]).supersedes(&ack(5, &[(7, 8)])) && !ack(5, &[(8, 9)]).supersedes(&ack(5, &[(7, 8)])));
        assert!(!ack(5, &[(2, 3), (7, 8)]).supersedes(&ack(5, &[(7, 8)])), "D-SACK");
        assert!(!Ack { ece: true, ..ack(5, &[]) }.supersedes(&ack(4, &[])), "ECN echo");
        assert!(!Ack { ace: 1, ..ack(5, &[]) }.supersedes(&ack(4, &[])), "accurate ECN");
        assert!(!Ack { syn: true, ..ack(5, &[]) }.supersedes(&Ack { syn: true, ..ack(4, &[]) }));
        assert!(ack(5, &[(7, 9)]).supersedes(&ack(4, &[(7, 8)])) && ack(9, &[]).supersedes(&ack(4, &[(7, 8)])));
        assert!(!ack(5, &[]).supersedes(&ack(4, &[(7, 8)])), "SACK");
        assert!(!ack(9, &[]).supersedes(&ack(4, &[(2, 3)])), "D-SACK below the acknowledgement");
        assert!(!ack(9, &[]).supersedes(&ack(4, &[(6, 7), (5, 8)])), "D-SACK above it");
    }
}
