//! How large a flow's packets are.

use crate::network::{Family, MTU};
use scenario::model::{Experiment, Flow, FlowKind, Host, Route};

/// The headers of TCP, without options, and of UDP, bytes.
const TCP: u32 = 20;
const UDP: u32 = 8;
/// The timestamps option, bytes.
const TIMESTAMPS: u32 = 12;
/// A datagram carries the time of its sending, bytes.
pub(crate) const STAMP: u32 = 8;

/// Bytes of a full packet of a flow, from the IP header on.
pub(crate) fn packet(experiment: &Experiment, flow: &Flow) -> u32 {
    match &flow.kind {
        FlowKind::ConstantRate { packet, .. } => *packet,
        FlowKind::Tcp { host, .. } => {
            let inside = experiment.tunnel.as_ref().filter(|_| flow.route == Route::Tunnel);
            let most = inside.map_or(MTU, |tunnel| tunnel.mtu);
            host.mss.map_or(most, |mss| mss + headers(host))
        }
    }
}

/// Bytes of its payload; a datagram may be too small for its headers.
pub(crate) fn payload(experiment: &Experiment, flow: &Flow) -> u32 {
    let packet = packet(experiment, flow);
    match &flow.kind {
        FlowKind::ConstantRate { .. } => packet.saturating_sub(Family::of_all(experiment).header() + UDP),
        FlowKind::Tcp { host, multipath, .. } => {
            let option = multipath.as_ref().map_or(0, |multipath| multipath.option);
            host.mss.unwrap_or(packet - headers(host) - option)
        }
    }
}

fn headers(host: &Host) -> u32 {
    host.ip_header + TCP + if host.timestamps { TIMESTAMPS } else { 0 }
}
