//! The behaviour of a sender while a script was played.

use serde::{Deserialize, Serialize};

/// The recording of a script, of our machine or of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The state just before and just after each acknowledgement.
    pub states: Vec<[State; 2]>,
    /// The packets sent after the handshake.
    pub sent: Vec<Sent>,
    /// The greatest lateness of an event of the script, microseconds: a busy machine in real time causes it.
    #[serde(default)]
    pub late_us: u64,
    /// When a kernel in real time took the events of the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<Played>,
}

/// When the events of a script happened, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// The connect and the SYN-ACK.
    pub handshake_us: [u64; 2],
    /// The writes, as far as they were begun.
    pub writes_us: Vec<u64>,
    /// The acknowledgements.
    pub acks_us: Vec<u64>,
}

/// The state of a sender, as in `TCP_INFO`. It is stored as a list of these numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u32; 8]", into = "[u32; 8]")]
pub struct State {
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets.
    pub ssthresh: u32,
    /// Congestion state: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.
    pub ca_state: u8,
    /// Packets sent and not acknowledged.
    pub unacked: u32,
    /// Packets selectively acknowledged.
    pub sacked: u32,
    /// Packets marked lost.
    pub lost: u32,
    /// Retransmissions outstanding.
    pub retrans: u32,
    /// Reordering degree, packets.
    pub reordering: u32,
}

impl From<[u32; 8]> for State {
    fn from([cwnd, ssthresh, ca_state, unacked, sacked, lost, retrans, reordering]: [u32; 8]) -> Self {
        Self { cwnd, ssthresh, ca_state: ca_state as u8, unacked, sacked, lost, retrans, reordering }
    }
}

impl From<State> for [u32; 8] {
    fn from(state: State) -> Self {
        let State { cwnd, ssthresh, ca_state, unacked, sacked, lost, retrans, reordering } = state;
        [cwnd, ssthresh, u32::from(ca_state), unacked, sacked, lost, retrans, reordering]
    }
}

/// Names of the congestion states.
pub(crate) const CA_STATES: [&str; 5] = ["Open", "Disorder", "CWR", "Recovery", "Loss"];

impl State {
    /// Its fields with their names. A field comes before those whose differences it may explain.
    pub(crate) fn fields(&self) -> [(&'static str, u32); 8] {
        [
            ("ca_state", u32::from(self.ca_state)),
            ("sacked", self.sacked),
            ("lost", self.lost),
            ("reordering", self.reordering),
            ("ssthresh", self.ssthresh),
            ("cwnd", self.cwnd),
            ("retrans", self.retrans),
            ("unacked", self.unacked),
        ]
    }

    /// The name of its congestion state.
    #[must_use]
    pub fn ca_name(&self) -> &'static str {
        CA_STATES.get(usize::from(self.ca_state)).copied().unwrap_or("?")
    }
}

/// The kind of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SentKind {
    /// Data for the first time.
    New,
    /// Data that was sent before (a retransmission).
    Retransmission,
    /// A probe of a closed window.
    Probe,
}

/// A packet that was sent. It is stored as a list of these values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u32, SentKind, bool)", into = "(u64, u64, u32, SentKind, bool)")]
pub struct Sent {
    /// Time of sending, microseconds.
    pub at_us: u64,
    /// Number of the segment; for a probe that of the first unsent segment.
    pub seq: u64,
    /// Bytes of payload.
    pub bytes: u32,
    /// Its kind.
    pub kind: SentKind,
    /// The CWR flag.
    pub cwr: bool,
}

impl From<(u64, u64, u32, SentKind, bool)> for Sent {
    fn from((at_us, seq, bytes, kind, cwr): (u64, u64, u32, SentKind, bool)) -> Self {
        Self { at_us, seq, bytes, kind, cwr }
    }
}

impl From<Sent> for (u64, u64, u32, SentKind, bool) {
    fn from(sent: Sent) -> Self {
        (sent.at_us, sent.seq, sent.bytes, sent.kind, sent.cwr)
    }
}
