//! The state of a flow's connections at both of its hosts, as the kernel reports it.

use super::{Outcome, within};
use crate::protocol::{FlowEnd, Sample, TcpInfo};
use sock_diag::{SockDiag, SocketInfo};

/// The sock_diag clients of a flow's source and sink hosts.
pub(super) struct FlowSockDiag([SockDiag; 2]);

impl FlowSockDiag {
    pub(super) fn of(ends: &[FlowEnd; 2]) -> Outcome<Self> {
        Self::with(ends, || Ok(SockDiag::new()?))
    }

    /// Clients that also list destroyed connections.
    pub(super) fn with_destroy_notifications(ends: &[FlowEnd; 2]) -> Outcome<Self> {
        Self::with(ends, || Ok(SockDiag::new()?.with_destroy_notifications()?))
    }

    fn with([source, sink]: &[FlowEnd; 2], new: fn() -> Outcome<SockDiag>) -> Outcome<Self> {
        Ok(Self([within(&source.netns, new)?, within(&sink.netns, new)?]))
    }

    /// All connections of both hosts.
    pub(super) fn dump(&mut self, is_v6: bool) -> Outcome<[Vec<SocketInfo>; 2]> {
        let [source, sink] = &mut self.0;
        Ok([source.dump(is_v6)?, sink.dump(is_v6)?])
    }
}

/// A sample of a source's connection, with the counters of its peer, one of `sinks`.
pub(super) fn sample_of(source: &SocketInfo, sinks: &[SocketInfo]) -> Sample {
    let peer = sinks.iter().find(|socket| socket.local == source.remote && socket.remote == source.local);
    Sample {
        tcp: Some(read(&source.info)),
        arrived: peer.map_or(0, |socket| socket.info.data_segs_in),
        received: peer.map_or(0, |socket| socket.info.bytes_received),
        ..Sample::default()
    }
}

/// The fields of the kernel's `tcp_info` that are sampled.
fn read(info: &sock_diag::TcpInfo) -> TcpInfo {
    TcpInfo {
        snd_cwnd: info.snd_cwnd,
        snd_ssthresh: info.snd_ssthresh,
        rtt: info.rtt,
        min_rtt: info.min_rtt,
        // As `tcp_packets_in_flight` counts.
        in_flight: (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost),
        sent: info.data_segs_out,
        retransmitted: info.total_retrans,
        pacing_rate: info.pacing_rate,
        delivery_rate: info.delivery_rate,
        ca_state: info.ca_state,
        rwnd_limited: info.rwnd_limited,
        sndbuf_limited: info.sndbuf_limited,
    }
}
