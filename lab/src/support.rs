//! The features of scenarios that the lab can run on a kernel. Before a kernel boots, an experiment with an unsupported
//! feature is rejected with the scenario's key and the name of the feature; settings that the kernel overrides are
//! noted.

use crate::Error;
use crate::network::{MTU, discipline};
use crate::packet_size::{TIMESTAMP_LEN, payload};
use crate::programs::Programs;
use link::{LossModel, PipeConfig, QueueLimit};
use scenario::model::{
    Application, Experiment, Flow, FlowKind, Host, Link, LossRecovery, Multipath, Nuisances, Relay, Ropewalk, Route,
    Tunnel, TunnelOptions,
};
use units::{Rate, Span};

/// Maximum numbers of flows, paths and links: their indices are parts of addresses.
const MAX_FLOWS: usize = 250;
const MAX_PATHS: usize = 100;
const MAX_LINKS: usize = 60;

/// Default send buffer of a UDP socket, packets of 1500 bytes including the kernel's overhead.
const SNDBUF_PACKETS: u32 = 92;

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;

/// The capabilities of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Congestion controls, by the kernel's names.
    pub(crate) congestion_controls: Vec<String>,
    /// Congestion controls that may be the default of a namespace.
    pub(crate) default_congestion_controls: Vec<String>,
    /// Ropewalk's eBPF programs that add further ones.
    pub(crate) programs: Programs,
    pub(crate) mptcp: bool,
    pub(crate) netem: bool,
    /// Whether the kernel has `clsact`, `matchall` and `police`.
    pub(crate) policer: bool,
    /// The [`QDISCS`] that the kernel has.
    pub(crate) qdiscs: Vec<&'static str>,
    pub(crate) tun: bool,
    pub(crate) ipv6: bool,
    /// The timer tick, 1/HZ, if it is known.
    pub(crate) jiffy: Option<Span>,
}

/// Optional queue disciplines of a kernel: name, feature in words, and arguments for `tc qdisc add`.
pub(crate) const QDISCS: &[(&str, &str, &str)] = &[
    ("codel", "CoDel", "codel"),
    ("fq_codel", "FQ-CoDel", "fq_codel"),
    ("pie", "PIE", "pie"),
    ("red", "RED", "red limit 30000 min 3000 max 9000 avpkt 1000 burst 5 probability 0.1 bandwidth 1mbit"),
    ("cake", "CAKE", "cake"),
    ("fq", "pacing of every algorithm", "fq"),
];

/// The arguments of `tc`, without device, that make a policer.
pub(crate) const POLICER: [&str; 2] = [
    "qdisc add dev lo clsact",
    "filter add dev lo egress matchall action police rate 1mbit burst 10000b conform-exceed drop/ok",
];

/// Features that only the simulator can run, in words.
pub(crate) const SIMULATOR_ONLY: &[&str] = &[
    "video",
    "DualPI2",
    "rate traces",
    "grants of cellular uplinks",
    "MTUs other than 1500 bytes",
    "parameters of algorithms",
    "subflows that join later, or leave",
    "requests over MPTCP",
    "flows in the reverse direction",
    "hosts that are not Linux's own: other loss recovery, maximum windows, receive offload",
    "hosted stacks",
    "fat trees of switches",
];

/// The features that a kernel with these capabilities lacks, in words.
pub(crate) fn unsupported(capabilities: &Capabilities) -> Vec<&'static str> {
    let features = [
        (!capabilities.mptcp, "MPTCP"),
        (!capabilities.tun, "tunnels"),
        (!capabilities.ipv6, "IPv6"),
        (!capabilities.netem, "loss in bursts"),
        (!capabilities.policer, "policers"),
    ];
    let qdiscs = QDISCS.iter().map(|(name, feature, _)| (!capabilities.qdiscs.contains(name), *feature));
    features.into_iter().chain(qdiscs).filter(|(is_missing, _)| *is_missing).map(|(_, feature)| feature).collect()
}

/// Checks: whether the experiment uses an unsupported feature, the feature's key, and its name in words.
type Checks<'a> = &'a [(bool, &'a str, &'a str)];

/// Checks that a kernel with these capabilities can run the experiment; the error is the first unsupported feature.
pub(crate) fn check(experiment: &Experiment, capabilities: &Capabilities) -> Result<(), Error> {
    let is_tree = experiment.paths.iter().any(|path| path.turn < path.links.len());
    reject_if(
        "",
        &[
            (is_tree, "fat_tree", "switches: a fat tree is simulated only"),
            (experiment.tunnel.is_some() && !capabilities.tun, "tunnel", "TUN devices"),
            (experiment.paths.len() > MAX_PATHS, "path", "room for more than 100 paths"),
            (experiment.links.len() > MAX_LINKS, "link", "room for more than 60 links"),
            (experiment.flows.len() > MAX_FLOWS, "flow", "room for more than 250 flows"),
        ],
    )?;
    if let Some(ropewalk) = experiment.tunnel.as_ref().and_then(|tunnel| tunnel.ropewalk.as_ref()) {
        check_tunnel(ropewalk, capabilities)?;
    }
    for path in &experiment.paths {
        reject_if(&format!("path.{}", path.name), &[(path.mtu != MTU, "mtu", "MTU other than 1500 bytes")])?;
    }
    let is_used = |link: usize| experiment.flows.iter().any(|flow| uses(experiment, flow, link));
    for (index, link) in experiment.links.iter().enumerate().filter(|(index, _)| is_used(*index)) {
        let has_rate = link.forward.rate.is_some() && link.reverse.rate.is_some();
        let changes = || experiment.events.iter().filter(|event| event.link == index);
        let key = key(experiment, index, link);
        reject_if(
            &key,
            &[
                (!has_rate && changes().any(|event| event.rate.is_some()), "rate", "new rate for a link without one"),
                (changes().any(|event| event.rate == Some(Rate(0))), "rate", "rate of zero: an event has `up = false`"),
                (
                    (link.forward.local || link.reverse.local) && sources_on_link(experiment, index) > 1,
                    "local",
                    "host for flows that are not in one tunnel: a local queue is one host's",
                ),
            ],
        )?;
        [&link.forward, &link.reverse].into_iter().try_for_each(|pipe| check_pipe(&key, pipe, capabilities))?;
    }
    if let Some((name, _)) =
        tunnelled_hosts(experiment).find(|(_, host)| tunnelled_hosts(experiment).any(|(_, second)| second != *host))
    {
        reject_if(
            &format!("flow.{name}"),
            &[(true, "host", "hosts for one flow of a tunnel: all share the tunnel's")],
        )?;
    }
    experiment.flows.iter().try_for_each(|flow| check_flow(experiment, flow, capabilities))
}

/// Rejects tunnel options that the daemon's configuration does not have.
fn check_tunnel(ropewalk: &Ropewalk, capabilities: &Capabilities) -> Result<(), Error> {
    let (message, default) = ("other value than the daemon's own", TunnelOptions::default());
    let options = &ropewalk.options;
    reject_if(
        "tunnel",
        &[
            (options.probe_interval != default.probe_interval, "probe_interval", message),
            (options.codel_target != default.codel_target, "codel_target", message),
            (options.codel_interval != default.codel_interval, "codel_interval", message),
            (options.memory_bytes != default.memory_bytes, "memory", message),
            (!ropewalk.offload, "offload", "device without segmentation offload in mode `ropewalk`"),
            (!ropewalk.bundles, "bundles", "end of an earlier version, which takes no bundles"),
        ],
    )?;
    let Some(Relay { congestion, .. }) = &ropewalk.relay else { return Ok(()) };
    let (name, allowed) = (&congestion.name, &capabilities.default_congestion_controls);
    let has_parameters = !congestion.parameters.is_empty() && capabilities.kernel_name(congestion).is_none();
    let unknown = format!(
        "way to give `{name}` to the far relay: as the default of a namespace only those in \
         net.ipv4.tcp_allowed_congestion_control are allowed ({})",
        allowed.join(" ")
    );
    reject_if(
        "tunnel",
        &[
            (has_parameters, "relay_congestion", "parameters of a congestion control: the kernel has its own"),
            (!capabilities.may_be_default(congestion), "relay_congestion", &unknown),
        ],
    )
}

/// Notes on settings of the experiment for which the kernel uses other values.
pub(crate) fn notes(experiment: &Experiment, capabilities: &Capabilities) -> Vec<String> {
    let mut notes = capabilities.program_notes(experiment);
    let hosts = experiment.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp { host, multipath, .. } => Some((host, multipath)),
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => None,
    });
    for (host, multipath) in hosts {
        if let Some(jiffy) = capabilities.jiffy.filter(|jiffy| *jiffy != host.tick) {
            let [kernel_ms, requested_ms] = [jiffy, host.tick].map(|span| span.as_secs_f64() * 1e3);
            notes.push(format!(
                "host.tick: this kernel's timers tick every {kernel_ms} ms, not every {requested_ms} ms as asked for"
            ));
        }
        if !host.small_queues && experiment.links.iter().any(|link| link.forward.local) {
            notes.push("host.small_queues: the kernel's own small queues cannot be turned off".into());
        }
        if host.release != Host::default().release {
            notes.push("host.profile: differences between releases of Linux follow the kernel's own rules".into());
        }
        if multipath.is_some() {
            notes.push("mptcp: rules of reinjection, the scheduler and the send buffer are the kernel's own".into());
        }
    }
    let is_counted_with_ethernet = |pipe: &PipeConfig| pipe.policer.is_some() && pipe.overhead < ETHERNET;
    if experiment
        .links
        .iter()
        .any(|link| is_counted_with_ethernet(&link.forward) || is_counted_with_ethernet(&link.reverse))
    {
        notes.push(format!("policer: it counts the {ETHERNET} bytes of a packet's Ethernet header"));
    }
    let has_red = capabilities.netem || capabilities.qdiscs.contains(&"red");
    if !has_red && experiment.links.iter().any(|link| discipline(&link.forward.queue.discipline) == Some("red")) {
        notes.push(
            "queue.discipline: the emulator of the link has RED, the simulator's; its drops count as lost".into(),
        );
    }
    let reorders = |pipe: &PipeConfig| capabilities.netem && pipe.rate.is_some() && pipe.reorder.share > 0.0;
    if experiment.links.iter().any(|link| reorders(&link.forward) || reorders(&link.reverse)) {
        notes.push(
            "reorder: netem passes these packets on at the beginning of their transmission, not at its end".into(),
        );
    }
    if experiment.tunnel.as_ref().is_some_and(|tunnel| tunnel.relay().is_some()) {
        notes.push(
            "tunnel.relay_rate and relay_delay: the relays are on the flows' own hosts, without a link between".into(),
        );
    }
    if tunnelled_hosts(experiment).count() > 1 {
        notes.push(
            "tunnel: recoveries, undone and timeouts are counted for its hosts as a whole, and shown with the first flow"
                .into(),
        );
    }
    notes.extend(experiment.tunnel.iter().flat_map(mpt_notes));
    notes.sort();
    notes.dedup();
    notes
}

/// Notes on an MPT tunnel; none for Ropewalk's.
fn mpt_notes(tunnel: &Tunnel) -> Vec<String> {
    let mut notes = Vec::new();
    if tunnel.ropewalk.is_some() {
        return notes;
    }
    if tunnel.first != 0 || tunnel.stray_packets != 0 {
        notes.push("tunnel.first and stray_packets: which path is first is left to the daemon".into());
    }
    if tunnel.nuisances != Nuisances::default() {
        notes.push("tunnel.nuisances: the kernel and the daemon have their own".into());
    }
    if tunnel.device.is_some_and(|device| device.socket != SNDBUF_PACKETS) {
        notes.push(format!(
            "tunnel.device.socket: the kernel's sockets hold {SNDBUF_PACKETS} full packets (212992 bytes)"
        ));
    }
    notes
}

/// The number of sources that use a link; all flows in the tunnel have the tunnel's source.
fn sources_on_link(experiment: &Experiment, link: usize) -> usize {
    let users = || experiment.flows.iter().filter(|flow| uses(experiment, flow, link));
    let is_tunnelled = |flow: &&Flow| flow.route == Route::Tunnel;
    users().filter(|flow| !is_tunnelled(flow)).count() + usize::from(users().any(|flow| is_tunnelled(&flow)))
}

/// The names and TCP settings of the flows in the tunnel.
fn tunnelled_hosts(experiment: &Experiment) -> impl Iterator<Item = (&str, &Host)> {
    experiment.flows.iter().filter(|flow| flow.route == Route::Tunnel).filter_map(|flow| match &flow.kind {
        FlowKind::Tcp { host, .. } => Some((flow.name.as_str(), host.as_ref())),
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => None,
    })
}

/// Whether packets of `flow` cross the link.
fn uses(experiment: &Experiment, flow: &Flow, link: usize) -> bool {
    let crosses_link = |path: usize| experiment.paths[path].links.contains(&link);
    match flow.route {
        Route::Path(path) => crosses_link(path),
        Route::Tunnel => experiment.tunnel.iter().any(|tunnel| tunnel.paths.iter().any(|path| crosses_link(*path))),
        Route::Subflows => flow.kind.subflows().iter().any(|subflow| crosses_link(subflow.path)),
    }
}

/// A link's key in the scenario: `path.NAME` for a link that a `[[path]]` declares, otherwise `link.NAME`.
fn key(experiment: &Experiment, index: usize, link: &Link) -> String {
    let path = experiment.paths.iter().find(|path| path.links == [index] && path.name == link.name);
    path.map_or_else(|| format!("link.{}", link.name), |path| format!("path.{}", path.name))
}

fn check_pipe(key: &str, pipe: &PipeConfig, capabilities: &Capabilities) -> Result<(), Error> {
    let netem = capabilities.netem;
    let qdisc = discipline(&pipe.queue.discipline);
    // Links are emulated where there is no netem, and the emulator has RED.
    let is_emulated = !netem && qdisc == Some("red") && !pipe.queue.ecn && !pipe.local;
    let is_unsupported = !is_emulated && qdisc.is_some_and(|qdisc| !capabilities.qdiscs.contains(&qdisc));
    let known = [&["droptail"][..], &capabilities.qdiscs].concat().join(", ");
    let unknown = format!("`{}`: this kernel has {known}", qdisc.unwrap_or(""));
    let cake = qdisc == Some("cake");
    reject_if(
        key,
        &[
            (pipe.trace.is_some(), "trace", "traces: a link has a rate"),
            (!netem && matches!(pipe.loss, LossModel::GilbertElliott { .. }), "loss", "loss in bursts without netem"),
            (pipe.grants.is_some(), "grants", "grants: a link uses its rate evenly"),
            (pipe.policer.is_some() && !capabilities.policer, "policer", "policer: this kernel lacks `act_police`"),
            (is_unsupported, "queue.discipline", &unknown),
            (cake && !pipe.queue.ecn, "queue.ecn", "CAKE without ECN"),
            (
                pipe.rate.is_none() && matches!(pipe.queue.limit, QueueLimit::Time(_)),
                "queue.limit",
                "time without a rate",
            ),
        ],
    )
}

fn check_flow(experiment: &Experiment, flow: &Flow, capabilities: &Capabilities) -> Result<(), Error> {
    let key = format!("flow.{}", flow.name);
    let is_hosted = matches!(flow.kind, FlowKind::Hosted(_));
    reject_if(
        &key,
        &[
            (flow.reverse, "direction", "flow in the reverse direction"),
            (is_hosted, "kind", "hosted stack: it runs in virtual time"),
        ],
    )?;
    let FlowKind::Tcp { congestion, application, host, multipath, .. } = &flow.kind else {
        let is_small = payload(experiment, flow) < TIMESTAMP_LEN;
        return reject_if(
            &key,
            &[(is_small, "packet", "datagrams with less than 8 bytes of payload: they carry the time")],
        );
    };
    let is_quic = multipath.as_ref().is_some_and(|multipath| multipath.mptcp().is_none());
    let is_unknown = capabilities.kernel_name(congestion).is_none();
    let why = if is_unknown { capabilities.why_unknown(congestion) } else { String::new() };
    reject_if(
        &key,
        &[
            (is_quic, "kind", "multipath QUIC: the kernel has none"),
            (multipath.is_some() && !capabilities.mptcp, "kind", "MPTCP: this kernel has none"),
            (matches!(application, Application::Video(_)), "video", "player"),
            (
                multipath.is_some() && matches!(application, Application::Requests(_)),
                "requests",
                "requests over MPTCP: its connections are opened by the side that sends the data",
            ),
            (is_unknown, "congestion", &why),
        ],
    )?;
    if let Some(multipath) = multipath {
        check_multipath(&key, multipath)?;
    }
    let is_local = |link: usize| experiment.links[link].forward.local && uses(experiment, flow, link);
    check_host(host, capabilities, (0..experiment.links.len()).any(is_local))
}

fn check_multipath(key: &str, multipath: &Multipath) -> Result<(), Error> {
    let subflows = &multipath.subflows;
    reject_if(
        key,
        &[
            (
                subflows.iter().skip(1).any(|subflow| subflow.join != Span::ZERO),
                "subflows",
                "subflow that joins later than it can",
            ),
            (subflows.iter().any(|subflow| subflow.leave.is_some()), "subflows", "subflow that leaves"),
            (subflows.first().is_some_and(|subflow| subflow.backup), "subflows", "first subflow that is a backup"),
        ],
    )
}

fn check_host(host: &Host, capabilities: &Capabilities, is_local: bool) -> Result<(), Error> {
    reject_if(
        "host",
        &[
            (host.ip_header != 20 && !capabilities.ipv6, "ip", "IPv6"),
            (host.recovery != LossRecovery::Rack, "recovery", "loss recovery other than Linux's own"),
            (!host.handshake, "handshake", "connection without a handshake"),
            (host.initial_rto != Span::from_secs(1), "initial_rto", "first timeout other than one second"),
            (host.window.is_some(), "window", "greatest window"),
            (host.gro != 1, "gro", "receive offload; write `gro = 1`"),
            (host.pacing && !capabilities.qdiscs.contains(&"fq"), "pacing", "discipline `fq`: this kernel has none"),
            (host.pacing && is_local, "pacing", "room for the fq discipline where a local queue stands"),
        ],
    )
}

/// The first of the checks that applies, as an error with its key in `table`.
fn reject_if(table: &str, checks: Checks<'_>) -> Result<(), Error> {
    let Some((_, key, feature)) = checks.iter().find(|(is_used, ..)| *is_used) else { return Ok(()) };
    let key = if table.is_empty() { (*key).to_owned() } else { format!("{table}.{key}") };
    Err(Error::Unsupported { key, feature: (*feature).to_owned() })
}

#[cfg(test)]
mod tests;
