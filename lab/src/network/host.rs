//! TCP and MPTCP on a pair's hosts: system settings, routes, endpoints.

use super::{HostPair, Network, Subnet, uplink};
use crate::Generator;
use scenario::model::{Flow, FlowKind, Host, Route, TcpRmem, Tunnel};

/// The TCP timestamp option, bytes.
const TIMESTAMPS_OPTION_LEN: u32 = 12;

impl Network<'_> {
    /// The commands that configure the hosts of pair `k`.
    pub(super) fn settings(&self, k: usize, pair: &HostPair) -> Vec<String> {
        let flow = &self.experiment.flows[pair.flow];
        let FlowKind::Tcp { host, congestion, .. } = &flow.kind else { return self.path_routes(k, pair, "") };
        let mut lines = Vec::new();
        let stops = |index: usize| self.pair_of[index] == k && self.experiment.flows[index].stop.is_some();
        let any_stops = (0..self.pair_of.len()).any(stops);
        let mut settings = sysctls(host, any_stops);
        // The FTP server has no option for the congestion control.
        let is_ftp = self.environment.generator == Generator::Ftp;
        settings.extend(is_ftp.then(|| format!("tcp_congestion_control={}", congestion.name)));
        let settings: Vec<String> = settings.iter().map(|setting| format!("\"net.ipv4.{setting}\"")).collect();
        for netns in [true, false].map(|is_source| self.host(is_source, k)) {
            lines.push(format!("ip netns exec {netns} sysctl -qw {}", settings.join(" ")));
        }
        // The far relay's connections have its host's default.
        let relay = self.experiment.tunnel.as_ref().filter(|_| self.tunnel_pair() == Some(k)).and_then(Tunnel::relay);
        lines.extend(relay.map(|relay| {
            let (netns, name) = (self.host(false, k), &relay.congestion.name);
            format!("ip netns exec {netns} sysctl -qw net.ipv4.tcp_congestion_control={name}")
        }));
        lines.extend(self.path_routes(k, pair, &route_options(host)));
        if flow.route != Route::Tunnel {
            let uplinks = pair.paths.iter().map(|p| uplink(*p));
            lines.extend(uplinks.filter_map(|device| single_segments(host, &self.host(true, k), &device)));
        }
        if host.pacing {
            lines.extend(pair.paths.iter().map(|p| {
                let (netns, device) = (self.host(true, k), uplink(*p));
                format!("tc -n {netns} qdisc add dev {device} root fq limit 1000000 flow_limit 1000000")
            }));
        }
        if flow.route == Route::Subflows {
            lines.extend(self.endpoints(k, pair, flow));
        }
        lines
    }

    /// The routes of each path, which lead to the other host's address on that path only.
    fn path_routes(&self, k: usize, pair: &HostPair, options: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for &p in &pair.paths {
            let [source, sink] = [Subnet::source(k, p), Subnet::sink(k, p)];
            for (is_source, local, remote) in [(true, source, sink), (false, sink, source)] {
                let (netns, destination, gateway) =
                    (self.host(is_source, k), remote.network(self.family), local.address(self.family, 2));
                lines.push(format!("ip -n {netns} route add {destination} via {gateway} dev {}{options}", uplink(p)));
            }
        }
        lines
    }

    /// MPTCP: the host that listens (usually the sink) offers its other addresses, and the other host opens a subflow to
    /// each: routes make it one per path.
    fn endpoints(&self, k: usize, pair: &HostPair, flow: &Flow) -> Vec<String> {
        let further_subflows = pair.paths.len() - 1;
        let mut lines: Vec<String> = Vec::new();
        for netns in [true, false].map(|is_source| self.host(is_source, k)) {
            lines.push(format!("ip netns exec {netns} sysctl -qw net.mptcp.enabled=1"));
            lines.push(format!(
                "ip -n {netns} mptcp limits set subflows {further_subflows} add_addr_accepted {further_subflows}"
            ));
        }
        let is_source = self.environment.generator.source_listens();
        for (subflow, p) in flow.kind.subflows().iter().zip(&pair.paths).skip(1) {
            let subnet = if is_source { Subnet::source(k, *p) } else { Subnet::sink(k, *p) };
            let (netns, address) = (self.host(is_source, k), subnet.address(self.family, 1));
            let backup = if subflow.backup { " backup" } else { "" };
            let device = uplink(*p);
            lines.push(format!("ip -n {netns} mptcp endpoint add {address} dev {device} signal{backup}"));
        }
        lines
    }
}

fn sysctls(host: &Host, any_stops: bool) -> Vec<String> {
    let flag = u8::from;
    let TcpRmem { min, default, max } = host.receive_buffer;
    // ECN, 2, Linux's default: ECN if the other side asks for it, as DCTCP does by itself.
    let ecn = if host.ecn { 1 } else { 2 };
    let mut settings = vec![
        "tcp_no_metrics_save=1".to_owned(),
        format!("tcp_timestamps={}", flag(host.timestamps)),
        format!("tcp_sack={}", flag(host.sack)),
        format!("tcp_ecn={ecn}"),
        format!("tcp_rmem={min} {default} {max}"),
        format!("tcp_wmem=4096 {} {}", host.initial_send_buffer, host.send_buffer.max(host.initial_send_buffer)),
        format!("tcp_slow_start_after_idle={}", flag(host.slow_start_after_idle)),
        format!("tcp_early_retrans={}", 3 * flag(host.early_retrans)),
        format!("tcp_reordering={}", host.reordering),
        format!("tcp_max_reordering={}", host.max_reordering),
    ];
    // Written data is sent even after the source has stopped: limit unsent data.
    let notsent_lowat = host.notsent_lowat.or(any_stops.then_some(16_384));
    settings.extend(notsent_lowat.map(|bytes| format!("tcp_notsent_lowat={bytes}")));
    settings
}

/// The command that makes TCP give a device one segment at a time, if its host has no super-segments.
pub(super) fn single_segments(host: &Host, netns: &str, device: &str) -> Option<String> {
    (!host.tso).then(|| format!("ip -n {netns} link set dev {device} gso_max_segs 1"))
}

/// The TCP options of routes.
pub(super) fn route_options(host: &Host) -> String {
    let mut options = format!(" initcwnd {}", host.initial_window);
    if host.quick_ack {
        options += " quickack 1";
    }
    if let Some(mss) = host.mss {
        options += &format!(" advmss {}", mss + if host.timestamps { TIMESTAMPS_OPTION_LEN } else { 0 });
    }
    options
}
