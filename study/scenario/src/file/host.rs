//! The table of a flow's two hosts.

use parse::{Packets, Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// TCP as its hosts are set up, in the words of Linux's sysctls. Defaults are those of the profile.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "host")]
pub(crate) struct Host {
    /// The kernel from which all defaults, and the rules of the receive window, are taken.
    pub(crate) profile: Option<Profile>,
    /// Payload of a full segment. The MTU is that of the path, or of the tunnel. Default: the payload that the MTU
    /// leaves.
    pub(crate) mss: Option<Spanned<Size>>,
    /// Initial window, in segments.
    pub(crate) initial_window: Option<Spanned<u32>>,
    /// The version of IP, 4 or 6. The header has 20 or 40 bytes.
    pub(crate) ip: Option<Spanned<u8>>,
    /// TCP timestamps (`tcp_timestamps`).
    pub(crate) timestamps: Option<bool>,
    /// Selective acknowledgements (`tcp_sack`).
    pub(crate) sack: Option<bool>,
    /// Negotiate ECN (`tcp_ecn`). `dctcp`, `prague`, and `bbr3` with `ecn = "on"` always negotiate it.
    pub(crate) ecn: Option<bool>,
    /// Acknowledge every packet.
    pub(crate) quick_ack: Option<bool>,
    /// Packets that receive offload merges into one. 1 is off.
    pub(crate) gro: Option<Spanned<u32>>,
    /// Minimum, default and maximum of the receive buffer (`tcp_rmem`).
    pub(crate) receive_buffer: Option<Spanned<[Size; 3]>>,
    /// Maximum of the send buffer (the maximum of `tcp_wmem`).
    pub(crate) send_buffer: Option<Spanned<Size>>,
    /// Minimum size of the send buffer (the default of `tcp_wmem`). If it is equal to `send_buffer`, the size is
    /// fixed, as with `SO_SNDBUF` (twice the value of that option).
    pub(crate) initial_send_buffer: Option<Spanned<Size>>,
    /// Unsent bytes at which the application waits, until half of them are sent (`tcp_notsent_lowat`). MPTCP ignores
    /// it. Default: no limit.
    pub(crate) notsent_lowat: Option<Spanned<Size>>,
    /// An idle connection restarts from the initial window, and an unused window shrinks (RFC 2861,
    /// `tcp_slow_start_after_idle`). Servers often turn it off.
    pub(crate) slow_start_after_idle: Option<bool>,
    /// Tail-loss probes. `true` is 3 in `tcp_early_retrans`, `false` is 0.
    pub(crate) early_retrans: Option<bool>,
    /// Send buffer of an MPTCP connection in the upstream stack.
    pub(crate) mptcp_send_buffer: Option<MptcpSendBuffer>,
    /// Pace every algorithm, as the `fq` discipline does. BBR always paces itself.
    pub(crate) pacing: Option<bool>,
    /// New data leaves in super-segments of about 1 ms of the rate, at least two packets, as in Linux with or without
    /// offloads.
    pub(crate) tso: Option<bool>,
    /// TCP small queues (`tcp_small_queue_check`): limits the data of a connection that waits in the queue of its own
    /// host.
    pub(crate) small_queues: Option<bool>,
    /// Initial reordering threshold, in packets (`tcp_reordering`).
    pub(crate) reordering: Option<u32>,
    /// Largest reordering threshold, in packets (`tcp_max_reordering`).
    pub(crate) max_reordering: Option<u32>,
    /// The timer tick of the kernel, 1/HZ.
    pub(crate) tick: Option<Spanned<Time>>,
    /// Loss detection and recovery.
    pub(crate) recovery: Option<LossRecovery>,
    /// A SYN opens the connection. With `false` data leaves at once, as from the one-way agents of ns-2.
    pub(crate) handshake: Option<bool>,
    /// Retransmission timeout before the first RTT sample.
    pub(crate) initial_rto: Option<Spanned<Time>>,
    /// Largest congestion window, and most packets outstanding, whatever the receiver offers (`window_` of ns-2).
    /// Default: no limit.
    pub(crate) window: Option<Packets>,
}

/// A set of defaults for hosts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "profile")]
pub(crate) enum Profile {
    /// Linux 6.1, with the MPTCP send buffer of Linux 6.7 and later.
    #[serde(rename = "linux")]
    Linux,
    /// Linux 6.1. Half of the receive buffer is window.
    #[serde(rename = "linux-6.1")]
    Linux6_1,
    /// Linux 6.12. The window is the share of the receive buffer that is payload in the memory of a packet.
    #[serde(rename = "linux-6.12")]
    Linux6_12,
    /// Linux 6.18. As 6.12, with a receive buffer of up to 32 MiB that grows more slowly.
    #[serde(rename = "linux-6.18")]
    Linux6_18,
    /// The TCP-Linux agents of ns-2.35.
    #[serde(rename = "ns-2")]
    Ns2,
}

/// An MPTCP connection's send buffer in the upstream stack.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "mptcp-send-buffer")]
pub(crate) enum MptcpSendBuffer {
    /// The sum of the buffers of the subflows: Linux 6.7 and later.
    Sum,
    /// The largest of the buffers of the subflows: Linux before 6.7.
    Largest,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "recovery")]
pub(crate) enum LossRecovery {
    /// As Linux 6.1: RACK-TLP, proportional rate reduction, F-RTO, and undo of spurious reductions.
    Rack,
    /// As Linux before 3.2: forward acknowledgement (three later packets) and rate halving, without the methods of
    /// `rack`.
    Fack,
}
