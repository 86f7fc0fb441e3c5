//! What travels between sender and receiver, as values: no bytes are made.

/// What a segment from the sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Opens the connection.
    Syn,
    /// Third packet of the handshake: no data.
    HandshakeAck,
    /// One MSS of data.
    Data,
}

/// A segment towards the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What it is.
    pub kind: Kind,
    /// Its number; data segments count from 0.
    pub seq: u64,
    /// Timestamp value, milliseconds (RFC 7323).
    pub timestamp: u32,
    /// Timestamp echo, milliseconds.
    pub echo: u32,
    /// The sender answers an ECN echo (RFC 3168 CWR).
    pub reduced: bool,
    /// Sent before.
    pub retransmission: bool,
}

/// Up to three SACK blocks `[start, end)`, the first of which may report a duplicate (RFC 2018, RFC 2883). Kept small:
/// every acknowledgement on its way carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    starts: [u64; 3],
    lengths: [u32; 3],
    count: u8,
}

impl Blocks {
    /// Adds a block; a fourth does not fit beside timestamps and is left out.
    pub fn push(&mut self, (start, end): (u64, u64)) {
        let place = self.len();
        if place < self.starts.len() {
            self.starts[place] = start;
            self.lengths[place] = u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX);
            self.count += 1;
        }
    }

    /// Leaves out all but the first `most`.
    pub fn truncate(&mut self, most: usize) {
        self.count = self.count.min(most as u8);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The blocks, most recent first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let all = self.starts.into_iter().zip(self.lengths).take(self.len());
        all.map(|(start, length)| (start, start.saturating_add(u64::from(length))))
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Answers a SYN: no data is acknowledged.
    pub handshake: bool,
    /// Every segment below this has arrived.
    pub ack: u64,
    /// Receive window, bytes.
    pub window: u64,
    /// Timestamp value, milliseconds.
    pub timestamp: u32,
    /// Timestamp echo, milliseconds.
    pub echo: u32,
    /// SACK blocks.
    pub blocks: Blocks,
    /// ECN echo (RFC 3168 ECE).
    pub marked: bool,
    /// How long the newest segment was on its way, milliseconds of the clock that both ends share. Real TCP has no such
    /// field; TCP-LP, which is defined by this delay, estimates it from timestamps.
    pub one_way_ms: u32,
}
