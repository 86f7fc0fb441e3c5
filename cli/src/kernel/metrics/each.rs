//! Metrics of each subflow.

use super::Connection;
use super::text::Family;
use sock_diag::SocketInfo;

/// Metrics of the first `limit` subflows: those of MPTCP, then those of TCP that uses a program.
pub(super) fn families(connections: &[Connection], limit: usize) -> [Family; 5] {
    let is_shown = |it: &&Connection| it.token.is_some() || kernel::program(it.algorithm()).is_some();
    let shown = connections.iter().filter(is_shown);
    let all: Vec<_> = shown.flat_map(|it| it.subflows.iter().map(move |subflow| (it, *subflow))).collect();
    let mut families = [
        Family::gauge("ropewalk_kernel_subflow_window_packets", "Congestion window of this subflow, packets."),
        Family::gauge("ropewalk_kernel_subflow_rtt_seconds", "Smoothed round-trip time of this subflow."),
        Family::gauge("ropewalk_kernel_subflow_share_ratio", "Share of its connection's payload that it has carried."),
        Family::counter("ropewalk_kernel_subflow_acknowledged_bytes_total", "Payload that was acknowledged, bytes."),
        Family::gauge("ropewalk_kernel_subflows_left_out", "Subflows beyond the limit of series per subflow."),
    ];
    for (connection, subflow) in all.iter().take(limit) {
        add(&mut families, connection, subflow);
    }
    families[4].add(&[], all.len().saturating_sub(limit) as f64);
    families
}

fn add([window, rtt, share, acked, _]: &mut [Family; 5], connection: &Connection, subflow: &SocketInfo) {
    let namespace = connection.namespace.to_string();
    let token = connection.token.map_or_else(String::new, |token| format!("{token:08x}"));
    let (local, remote) = (subflow.local.to_string(), subflow.remote.to_string());
    let labels = [
        ("namespace", namespace.as_str()),
        ("token", &token),
        ("local", &local),
        ("remote", &remote),
        ("algorithm", &subflow.congestion),
    ];
    let (info, total) = (&subflow.info, connection.acked_bytes());
    window.add(&labels, f64::from(info.snd_cwnd));
    rtt.add(&labels, f64::from(info.rtt) / 1e6);
    share.add(&labels, if total == 0 { 0.0 } else { info.bytes_acked as f64 / total as f64 });
    acked.add(&labels, info.bytes_acked as f64);
}
