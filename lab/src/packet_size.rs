//! Sizes of a flow's packets.

use crate::network::{Family, MTU};
use scenario::model::{Experiment, Flow, FlowKind, Host, Route};

/// The headers of TCP, without options, and of UDP, bytes.
const TCP_HEADER: u32 = 20;
const UDP_HEADER: u32 = 8;
/// TCP's timestamps option, bytes.
const TIMESTAMPS: u32 = 12;
/// The sending time that a datagram carries, bytes.
pub(crate) const TIMESTAMP_LEN: u32 = 8;

/// Size of a flow's full packet from the IP header on, bytes.
pub(crate) fn packet(experiment: &Experiment, flow: &Flow) -> u32 {
    match &flow.kind {
        FlowKind::ConstantRate { packet, .. } => *packet,
        FlowKind::Hosted(_) => MTU,
        FlowKind::Tcp { host, .. } => {
            let tunnel = experiment.tunnel.as_ref().filter(|_| flow.route == Route::Tunnel);
            let mtu = tunnel.map_or(MTU, |tunnel| tunnel.mtu);
            host.mss.map_or(mtu, |mss| mss + headers(host))
        }
    }
}

/// Size of the payload of a flow's full packet, bytes; zero if a datagram is too small for its headers.
pub(crate) fn payload(experiment: &Experiment, flow: &Flow) -> u32 {
    let packet = packet(experiment, flow);
    match &flow.kind {
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => {
            packet.saturating_sub(Family::of_all(experiment).header() + UDP_HEADER)
        }
        FlowKind::Tcp { host, multipath, .. } => {
            let option =
                multipath.as_ref().and_then(|multipath| multipath.mptcp()).map_or(0, |mptcp| mptcp.dss_option_bytes);
            host.mss.unwrap_or(packet - headers(host) - option)
        }
    }
}

fn headers(host: &Host) -> u32 {
    host.ip_header + TCP_HEADER + if host.timestamps { TIMESTAMPS } else { 0 }
}
