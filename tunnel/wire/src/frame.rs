//! Frames: the body of a sealed datagram. One data frame, control frames, or a [`Bundle`].
//!
//! ```text
//! data             40 | bits first 1, last 2, retransmission 4, offload 8   stream 1   sequence 4   fragment to the end
//! bundle           50   length of the frames v   frames   (data header 6   length v   whole inner packet)...
//! padding          00   anything to the end
//! ack              01   path 1   largest 4   receive timestamp 4   ack delay v   ce count v
//!                       range count v   range v (gap v   range v)...
//! ping             02   token 8
//! pong             03   token 8
//! reorder timeout  04   microseconds 4
//! path             05   path 1   state 1 (0 regular, 1 backup, 2 removed, 3 secondary, 4 metered)
//! close            06
//! path name        07   path 1   length 1   name
//! ```
//! Padding may follow the last fragment of an inner packet: the inner packet's own header has its length. Numbers are
//! counts of bytes, in network order; `v` is a variable-length integer ([`varint`](crate::varint)). Numbers modulo 2^32
//! have four bytes, since most of their values would take eight as `v`.

mod bundle;
mod codec;
mod path_name;

pub use bundle::{Bundle, Entries, MAX_BUNDLE_ENTRIES};
pub use codec::{Body, Frames};
pub use path_name::{MAX_PATH_NAME_LEN, PathName};

/// The header before a fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataHeader {
    /// The ordered stream of the fragment: inner flows are hashed to streams.
    pub stream: u8,
    /// Sequence number in the stream, modulo 2^32.
    pub sequence: u32,
    /// Whether it is the first fragment of its inner packet (a packet, or a super-packet that a device will segment).
    pub first: bool,
    /// Whether it is the last fragment of its inner packet.
    pub last: bool,
    /// Whether it was sent before. If so, later fragments of its stream may have been sent on this path already.
    pub retransmission: bool,
    /// Whether the inner packet begins with a virtio_net_hdr (checksum and segmentation offload).
    pub offload: bool,
}

/// A control frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a box would be allocated for every acknowledgement")]
pub enum Frame {
    /// The packets received on one path.
    Ack(Ack),
    /// A probe, to be answered on the path that it arrived on; also the challenge that validates an address.
    Ping {
        /// The token that the answer repeats.
        token: u64,
    },
    /// The answer to a [`Ping`](Self::Ping).
    Pong {
        /// The token of the ping.
        token: u64,
    },
    /// The receiver's reorder timeout, after which it gives up a missing fragment: the difference in delay of the
    /// sender's paths, plus the time of a retransmission.
    ReorderTimeout {
        /// Microseconds.
        micros: u32,
    },
    /// The peer's use of a path of the sender.
    Path {
        /// The path.
        path: u8,
        /// The use.
        state: PathState,
    },
    /// The sender closes the tunnel and forgets the session.
    Close,
    /// What the sender calls a path that it has opened.
    PathName {
        /// The path.
        path: u8,
        /// The name.
        name: PathName,
    },
}

/// The peer's use of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// The path is always used.
    Regular,
    /// The path is used only if no regular path works.
    Backup,
    /// The path is no longer used.
    Removed,
    /// The path is used only if the regular paths are full, or none works.
    Secondary,
    /// As [`Backup`](Self::Backup), and the path's traffic costs money: it is probed seldom.
    Metered,
}

impl PathState {
    /// All states, by their codes.
    pub const ALL: [Self; 5] = [Self::Regular, Self::Backup, Self::Removed, Self::Secondary, Self::Metered];
}

/// The packets received on one path, as in QUIC (RFC 9000, section 19.3), and the receiver's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The path of the packets.
    pub path: u8,
    /// The largest packet number received, modulo 2^32.
    pub largest: u32,
    /// Microseconds from the arrival of the largest until this frame was made.
    pub ack_delay_us: u32,
    /// The receiver's clock when the largest arrived, microseconds modulo 2^32: compared with the sending time it gives
    /// the one-way delay up to a constant, which is the same on all paths.
    pub receive_timestamp_us: u32,
    /// Packets received with CE so far, modulo 2^32.
    pub ce_count: u32,
    /// Ranges of received packets, newest first; the first one ends with `largest`.
    pub ranges: AckRanges,
}

/// Maximum number of ranges in an [`Ack`].
pub const MAX_ACK_RANGES: usize = 32;

/// Ranges of received packet numbers, newest first, and the gaps of missing packets between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AckRanges {
    count: usize,
    /// (length of the range, length of the gap to the next older one): the last pair's gap is 0.
    ranges: [(u32, u32); MAX_ACK_RANGES],
}

impl AckRanges {
    /// Adds an older range of `length` packets, after a gap of `gap` packets. False if there is no room.
    pub fn push(&mut self, gap: u32, length: u32) -> bool {
        if self.count == MAX_ACK_RANGES {
            return false;
        }
        if let Some(newer) = self.count.checked_sub(1) {
            self.ranges[newer].1 = gap;
        }
        self.ranges[self.count] = (length, 0);
        self.count += 1;
        true
    }

    /// (length of the range, length of the gap to the next older one), newest first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ranges[..self.count].iter().copied()
    }
}
