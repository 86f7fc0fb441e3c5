//! Frames: what a sealed datagram carries. Either one piece of data, or control frames.
//!
//! ```text
//! data     40 | bits first 1, last 2, again 4, offload 8   stream 1   sequence 4   bytes to the end
//! padding  00   anything to the end
//! ack      01   path 1   largest 4   arrived 4   delay v   marked v   runs v   arrived v (missing v   arrived v)...
//! ping     02   token 8
//! pong     03   token 8
//! hold     04   microseconds 4
//! path     05   path 1   state 1 (0 regular, 1 backup, 2 gone)
//! close    06
//! ```
//! Data's bytes may end in padding where a parcel ends: the inner packet's own header says how long that is. A number is the
//! count of bytes, network order; `v` is a variable-length integer ([`varint`](crate::varint)). What counts
//! modulo 2^32 has four bytes, since most of its values would take eight as `v`.

mod codec;

pub use codec::{Body, Frames};

/// What stands before a piece of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataHeader {
    /// The ordered stream that it belongs to: inner flows are hashed to streams.
    pub stream: u8,
    /// Its number in the stream, modulo 2^32.
    pub sequence: u32,
    /// A parcel (a packet, or a super-packet that a device will cut) begins with this piece.
    pub first: bool,
    /// A parcel ends with this piece.
    pub last: bool,
    /// It was sent before: later pieces of its stream may have been sent on this path already.
    pub again: bool,
    /// The parcel begins with a virtio-net header (checksum and segmentation left to do).
    pub offload: bool,
}

/// A control frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a box would be allocated for every acknowledgement")]
pub enum Frame {
    /// What has arrived on one path.
    Ack(Ack),
    /// To be answered on the path that it came by; also the challenge that validates an address.
    Ping {
        /// What the answer repeats.
        token: u64,
    },
    /// The answer to a [`Ping`](Self::Ping).
    Pong {
        /// What was asked.
        token: u64,
    },
    /// How long the receiver should wait for a missing piece before it gives it up: what the sender's paths differ by in
    /// delay, and what it takes to send again.
    Hold {
        /// Microseconds.
        wait_us: u32,
    },
    /// How the sender sees one path of its own.
    Path {
        /// The path.
        path: u8,
        /// What the peer may do with it.
        state: PathState,
    },
    /// The sender goes away and forgets the session.
    Close,
}

/// What the peer may do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Use it.
    Regular,
    /// Use it only if no regular path works.
    Backup,
    /// Not use it any more: it was removed.
    Gone,
}

/// What has arrived on one path, as QUIC tells it (RFC 9000, section 19.3), and the receiver's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The path that the packets came by.
    pub path: u8,
    /// The largest packet number that has arrived, modulo 2^32.
    pub largest: u32,
    /// Microseconds from the arrival of the largest until this frame was made.
    pub delay_us: u32,
    /// The receiver's clock when the largest arrived, microseconds modulo 2^32: compared with the sending time it gives
    /// the one-way delay up to a constant, which is the same on all paths.
    pub arrived_us: u32,
    /// Packets with CE so far, modulo 2^32.
    pub marked: u32,
    /// What has arrived, newest first; the first one ends with `largest`.
    pub ranges: Ranges,
}

/// The most ranges that one [`Ack`] tells.
pub const MOST_RANGES: usize = 32;

/// Ranges of packet numbers, newest first: a run of arrived packets, and how many are missing before the next run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    count: usize,
    /// (arrived, missing after them): the last pair's `missing` is 0.
    runs: [(u32, u32); MOST_RANGES],
}

impl Ranges {
    /// Adds a run of `arrived` packets, with `missing` ones between it and the run before. False if there is no room.
    pub fn push(&mut self, missing: u32, arrived: u32) -> bool {
        if self.count == MOST_RANGES {
            return false;
        }
        if let Some(newer) = self.count.checked_sub(1) {
            self.runs[newer].1 = missing;
        }
        self.runs[self.count] = (arrived, 0);
        self.count += 1;
        true
    }

    /// (arrived, missing after them), newest first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.runs[..self.count].iter().copied()
    }
}
