//! Segments and acknowledgements of a subflow: TCP's, with the DSS option (RFC 8684 section 3.3).

use crate::tcp;

/// A segment of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The subflow's number.
    pub subflow: u16,
    /// The subflow's own segment.
    pub tcp: tcp::Segment,
    /// Data sequence number of the payload; meaningless in a handshake.
    pub data_seq: u64,
    /// Whether the same data was assigned to another subflow before. (For counters; the option has no such field.)
    pub copy: bool,
}

/// An acknowledgement on a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The subflow's number.
    pub subflow: u16,
    /// The subflow's own acknowledgement. Its receive window, in bytes beyond `data_ack`, is the connection's.
    pub tcp: tcp::Ack,
    /// DATA_ACK: all data below has arrived.
    pub data_ack: u64,
}
