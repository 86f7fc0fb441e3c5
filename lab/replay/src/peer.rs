//! The receiving end of a situation: its behaviour is drawn, and follows no particular kernel.

use crate::script::{PeerAck, Setup};
use crate::situation::Acknowledging;
use std::collections::BTreeSet;
use transport::tcp::Segment;

/// Maximum number of SACK blocks in an acknowledgement.
const MAX_BLOCKS: usize = 3;

/// The peer's state.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    setup_sack: bool,
    setup_timestamps: bool,
    /// ECN echoes follow each packet's mark (RFC 8257) instead of lasting until CWR (RFC 3168).
    echoes_each: bool,
    acknowledging: Acknowledging,
    next: u64,
    above: BTreeSet<u64>,
    /// Blocks above `next`, the most recent first.
    blocks: Vec<(u64, u64)>,
    /// Number of segments in order that are not yet acknowledged.
    unacknowledged: u32,
    ts_recent: u32,
    ece: bool,
    /// Window, segments.
    window: u64,
    mss: u64,
}

/// The peer's response to a segment.
pub(crate) enum Reaction {
    /// It acknowledges at once.
    Now(PeerAck),
    /// It waits for more, or until its timer expires.
    Delayed,
}

impl Peer {
    pub(crate) fn new(setup: &Setup, acknowledging: Acknowledging, window: u64) -> Self {
        Self {
            setup_sack: setup.sack,
            setup_timestamps: setup.timestamps,
            echoes_each: setup.congestion == "dctcp",
            acknowledging,
            window,
            mss: u64::from(setup.mss),
            ts_recent: (setup.connect_us / 1000) as u32,
            ..Self::default()
        }
    }

    /// A segment arrives, with a CE mark or without.
    pub(crate) fn receive(&mut self, now_us: u64, segment: &Segment, is_marked: bool) -> Reaction {
        let seq = segment.seq;
        self.ece = is_marked || self.ece && !self.echoes_each && !segment.cwr;
        let is_duplicate = seq < self.next || self.above.contains(&seq);
        let is_in_order = seq == self.next && self.above.is_empty();
        if seq <= self.next {
            self.ts_recent = self.ts_recent.max(segment.tsval);
        }
        self.insert(seq, is_duplicate);
        self.unacknowledged += 1;
        if is_in_order && self.unacknowledged < self.acknowledging.every {
            return Reaction::Delayed;
        }
        Reaction::Now(self.acknowledge(now_us, is_duplicate.then_some((seq, seq + 1))))
    }

    /// The timer of a delayed acknowledgement expires.
    pub(crate) fn acknowledge_delayed(&mut self, now_us: u64) -> Option<PeerAck> {
        (self.unacknowledged > 0).then(|| self.acknowledge(now_us, None))
    }

    /// The window changes to this many segments, and an update is sent.
    pub(crate) fn change_window(&mut self, now_us: u64, segments: u64) -> PeerAck {
        self.window = segments;
        self.acknowledge(now_us, None)
    }

    /// An acknowledgement of the segments that have arrived.
    pub(crate) fn acknowledge(&mut self, now_us: u64, duplicate: Option<(u64, u64)>) -> PeerAck {
        self.unacknowledged = 0;
        let blocks = duplicate.into_iter().chain(self.blocks.iter().copied()).take(MAX_BLOCKS);
        PeerAck {
            at_us: 0,
            ack: self.next,
            window: self.window * self.mss,
            sack: if self.setup_sack { blocks.collect() } else { Vec::new() },
            ece: self.ece,
            tsval: if self.setup_timestamps { (now_us / 1000) as u32 } else { 0 },
            tsecr: if self.setup_timestamps { self.ts_recent } else { 0 },
        }
    }

    fn insert(&mut self, seq: u64, is_duplicate: bool) {
        if seq >= self.next {
            self.above.insert(seq);
        }
        while self.above.remove(&self.next) {
            self.next += 1;
        }
        let next = self.next;
        self.blocks.retain(|block| block.1 > next);
        if is_duplicate || seq < next {
            return;
        }
        let (mut start, mut end) = (seq, seq + 1);
        while start > next && self.above.contains(&(start - 1)) {
            start -= 1;
        }
        while self.above.contains(&end) {
            end += 1;
        }
        self.blocks.retain(|block| block.1 < start || block.0 > end);
        self.blocks.insert(0, (start, end));
    }
}
