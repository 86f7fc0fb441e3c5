//! The table of a flow's two hosts.

use parse::{Packets, Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// TCP as its hosts are set up, in the words of Linux's sysctls. Defaults are those of the profile.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "host")]
pub(crate) struct Host {
    /// The source of the defaults: "linux-6.1", "linux-6.12" or "linux-6.18", the latest of these stable series; "linux",
    /// which is 6.1 with the MPTCP send buffer of 6.7 and later; or "ns-2": TCP-Linux agents as in ns-2.35, which
    /// have recovery = "fack", handshake = false, an initial window of 2 and no timestamps, acknowledge every packet
    /// and have window = "20p".
    pub(crate) profile: Option<Profile>,
    /// Payload of a full segment. Default: what the MTU leaves.
    pub(crate) mss: Option<Spanned<Size>>,
    /// Initial window, segments.
    pub(crate) initial_window: Option<Spanned<u32>>,
    /// The version of IP, 4 or 6: its header has 20 or 40 bytes.
    pub(crate) ip: Option<Spanned<u8>>,
    /// `tcp_timestamps`.
    pub(crate) timestamps: Option<bool>,
    /// `tcp_sack`.
    pub(crate) sack: Option<bool>,
    /// `tcp_ecn`.
    pub(crate) ecn: Option<bool>,
    /// Acknowledge every packet.
    pub(crate) quick_ack: Option<bool>,
    /// Packets that receive offload merges; 1 is off.
    pub(crate) gro: Option<Spanned<u32>>,
    /// `tcp_rmem`: min, default, max.
    pub(crate) receive_buffer: Option<Spanned<[Size; 3]>>,
    /// The max of `tcp_wmem`.
    pub(crate) send_buffer: Option<Spanned<Size>>,
    /// The default of `tcp_wmem`: what the send buffer has at least. Equal to `send_buffer` it is a buffer of fixed size, as
    /// `SO_SNDBUF` makes it (of twice that option's value).
    pub(crate) initial_send_buffer: Option<Spanned<Size>>,
    /// `tcp_notsent_lowat`: written and not sent, from which the application waits, until half of it is sent. Default: no
    /// such limit.
    pub(crate) notsent_lowat: Option<Spanned<Size>>,
    /// `tcp_slow_start_after_idle`: an idle connection restarts from the initial window.
    pub(crate) slow_start_after_idle: Option<bool>,
    /// `tcp_early_retrans`: tail-loss probes.
    pub(crate) early_retrans: Option<bool>,
    /// An MPTCP connection's send buffer in the upstream stack: the sum of its subflows' buffers, as in Linux 6.7 and
    /// later, or the largest of them, as in Linux before.
    pub(crate) mptcp_send_buffer: Option<MptcpSendBuffer>,
    /// Pace every algorithm, as the `fq` discipline does.
    pub(crate) pacing: Option<bool>,
    /// New data leaves in super-segments of about 1 ms of the rate, at least two packets, and less than that waits for
    /// an acknowledgement due within 1 ms, as in Linux with offloads or without. The application writes buffers of up to
    /// 64 KiB, and the last segment of a super-segment has PSH.
    pub(crate) tso: Option<bool>,
    /// TCP small queues: of a connection, no more than about 1 ms of its rate waits in its host's own queue (a link that is
    /// `local`, with a queue that decides on arrival); the rest waits in the send buffer.
    pub(crate) small_queues: Option<bool>,
    /// `tcp_reordering`.
    pub(crate) reordering: Option<u32>,
    /// `tcp_max_reordering`.
    pub(crate) max_reordering: Option<u32>,
    /// The kernel's timer tick, 1/HZ.
    pub(crate) tick: Option<Spanned<Time>>,
    /// Loss detection and recovery.
    pub(crate) recovery: Option<LossRecovery>,
    /// Open the connection by a handshake; without it data leaves at once, as from ns-2's one-way agents.
    pub(crate) handshake: Option<bool>,
    /// Retransmission timeout before the first RTT sample.
    pub(crate) initial_rto: Option<Spanned<Time>>,
    /// The greatest congestion window, and most packets outstanding, whatever the receiver offers (ns-2's `window_`).
    /// Default: no such limit.
    pub(crate) window: Option<Packets>,
}

/// A set of defaults for hosts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "profile")]
pub(crate) enum Profile {
    /// Linux 6.1, with the MPTCP send buffer of 6.7 and later.
    #[serde(rename = "linux")]
    Linux,
    /// Linux 6.1: half of the receive buffer is window.
    #[serde(rename = "linux-6.1")]
    Linux6_1,
    /// Linux 6.12: as much of the receive buffer is window as a packet's memory is payload.
    #[serde(rename = "linux-6.12")]
    Linux6_12,
    /// Linux 6.18: as 6.12, with a receive buffer of up to 32 MiB, which grows more slowly.
    #[serde(rename = "linux-6.18")]
    Linux6_18,
    /// ns-2.35's TCP-Linux agents.
    #[serde(rename = "ns-2")]
    Ns2,
}

/// An MPTCP connection's send buffer in the upstream stack.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "mptcp-send-buffer")]
pub(crate) enum MptcpSendBuffer {
    /// The sum of the subflows' buffers: Linux 6.7 and later.
    Sum,
    /// The largest of the subflows' buffers: Linux before 6.7.
    Largest,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "recovery")]
pub(crate) enum LossRecovery {
    /// As Linux 6.1: RACK-TLP, proportional rate reduction, F-RTO, and undo of what proves spurious.
    Rack,
    /// As Linux before 3.2: forward acknowledgement (three later packets) and rate halving, without the other's
    /// methods.
    Fack,
}
