//! The features that the lab can run on a kernel. Any other is refused before anything boots, with the scenario's key and the
//! missing feature; settings that a kernel does not follow are noted.

use crate::Error;
use crate::network::{MTU, discipline};
use crate::packet_size::{TIMESTAMP, payload};
use link::{LossModel, PipeConfig, QueueLimit};
use scenario::model::{
    AlgorithmChoice, Application, Experiment, Flow, FlowKind, Host, Link, LossRecovery, Multipath, Ropewalk, Route,
    TunnelOptions,
};
use units::Span;

/// Numbers of flows, paths and links are parts of addresses.
const FLOWS: usize = 250;
const PATHS: usize = 100;
const LINKS: usize = 60;

/// Packets of 1500 bytes that fill a UDP socket's default send buffer, with the kernel's overhead.
const SOCKET: u32 = 92;

/// The abilities of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Congestion controls, by the kernel's names.
    pub(crate) congestion: Vec<String>,
    /// Congestion controls that may be the default of a namespace.
    pub(crate) defaults: Vec<String>,
    pub(crate) mptcp: bool,
    pub(crate) netem: bool,
    /// Queue disciplines other than netem, of [`DISCIPLINES`].
    pub(crate) disciplines: Vec<&'static str>,
    pub(crate) tun: bool,
    pub(crate) v6: bool,
    /// 1/HZ, if it is known.
    pub(crate) tick: Option<Span>,
}

/// Optional queue disciplines of a kernel: name, what it is for, and an example for `tc`.
pub(crate) const DISCIPLINES: &[(&str, &str, &str)] = &[
    ("codel", "CoDel", "codel"),
    ("fq_codel", "FQ-CoDel", "fq_codel"),
    ("pie", "PIE", "pie"),
    ("red", "RED", "red limit 30000 min 3000 max 9000 avpkt 1000 burst 5 probability 0.1 bandwidth 1mbit"),
    ("cake", "CAKE", "cake"),
    ("fq", "pacing of every algorithm", "fq"),
];

/// Features that only the simulator can run, in words.
pub(crate) const SIMULATOR_ONLY: &[&str] = &[
    "video",
    "rate traces",
    "MTUs other than 1500 bytes",
    "parameters of algorithms",
    "subflows that join later, or leave",
    "hosts that are not Linux's own: other loss recovery, greatest windows, receive offload",
];

/// Features that a kernel with these abilities cannot run, in words.
pub(crate) fn unsupported(abilities: &Abilities) -> Vec<&'static str> {
    let all = [
        (!abilities.mptcp, "MPTCP"),
        (!abilities.tun, "tunnels"),
        (!abilities.v6, "IPv6"),
        (!abilities.netem, "loss in bursts"),
    ];
    let disciplines = DISCIPLINES.iter().map(|(name, what, _)| (!abilities.disciplines.contains(name), *what));
    all.into_iter().chain(disciplines).filter(|(is_missing, _)| *is_missing).map(|(_, what)| what).collect()
}

/// Checks: whether the feature is used, its key, and what the lab lacks.
type Checks<'a> = &'a [(bool, &'a str, &'a str)];

/// Checks that a kernel with these abilities can run the experiment; fails with the first thing that it cannot do.
pub(crate) fn check(experiment: &Experiment, abilities: &Abilities) -> Result<(), Error> {
    refuse(
        "",
        &[
            (experiment.tunnel.is_some() && !abilities.tun, "tunnel", "TUN devices"),
            (experiment.paths.len() > PATHS, "path", "room for more than 100 paths"),
            (experiment.links.len() > LINKS, "link", "room for more than 60 links"),
            (experiment.flows.len() > FLOWS, "flow", "room for more than 250 flows"),
        ],
    )?;
    if let Some(ropewalk) = experiment.tunnel.as_ref().and_then(|tunnel| tunnel.ropewalk.as_ref()) {
        check_tunnel(ropewalk)?;
    }
    for path in &experiment.paths {
        refuse(&format!("path.{}", path.name), &[(path.mtu != MTU, "mtu", "MTU other than 1500 bytes")])?;
    }
    for (number, link) in experiment.links.iter().enumerate() {
        let rated = link.forward.rate.is_some() && link.reverse.rate.is_some();
        let changes = || experiment.events.iter().filter(|event| event.link == number);
        let key = key(experiment, number, link);
        refuse(
            &key,
            &[
                (!rated && changes().any(|event| event.rate.is_some()), "rate", "new rate for a link without one"),
                (
                    (link.forward.local || link.reverse.local) && hosts_on(experiment, number) > 1,
                    "local",
                    "host for flows that are not in one tunnel: a local queue is one host's",
                ),
            ],
        )?;
        [&link.forward, &link.reverse].into_iter().try_for_each(|pipe| check_pipe(&key, pipe, abilities))?;
    }
    if let Some((name, _)) =
        tunnelled_hosts(experiment).find(|(_, host)| tunnelled_hosts(experiment).any(|(_, other)| other != *host))
    {
        refuse(&format!("flow.{name}"), &[(true, "host", "hosts for one flow of a tunnel: all share the tunnel's")])?;
    }
    experiment.flows.iter().try_for_each(|flow| check_flow(experiment, flow, abilities))
}

/// Refuses options that the daemon's configuration does not have.
fn check_tunnel(ropewalk: &Ropewalk) -> Result<(), Error> {
    let (own, default) = ("other value than the daemon's own", TunnelOptions::default());
    let options = &ropewalk.options;
    refuse(
        "tunnel",
        &[
            (options.probe_interval != default.probe_interval, "probe_interval", own),
            (options.codel_target != default.codel_target, "codel_target", own),
            (options.codel_interval != default.codel_interval, "codel_interval", own),
            (options.memory_bytes != default.memory_bytes, "memory", own),
        ],
    )
}

/// Notes on settings of the experiment that the kernel does not follow.
pub(crate) fn notes(experiment: &Experiment, abilities: &Abilities) -> Vec<String> {
    let mut notes = Vec::new();
    let hosts = experiment.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp { host, multipath, .. } => Some((host, multipath)),
        FlowKind::ConstantRate { .. } => None,
    });
    for (host, multipath) in hosts {
        if let Some(tick) = abilities.tick.filter(|tick| *tick != host.tick) {
            let [own, asked] = [tick, host.tick].map(|span| span.as_secs_f64() * 1e3);
            notes.push(format!(
                "host.tick: this kernel's timers tick every {own} ms, whatever is asked for ({asked} ms)"
            ));
        }
        if multipath.is_some() {
            notes.push("mptcp: rules of reinjection and the scheduler are the kernel's own".into());
        }
    }
    if tunnelled_hosts(experiment).count() > 1 {
        notes.push(
            "tunnel: recoveries, undone and timeouts are counted for its hosts as a whole: they stand with the first flow"
                .into(),
        );
    }
    if let Some(tunnel) = experiment.tunnel.as_ref().filter(|tunnel| tunnel.ropewalk.is_none()) {
        if tunnel.first != 0 || tunnel.stray_packets != 0 {
            notes.push("tunnel.first and stray_packets: which path is first is left to the daemon".into());
        }
        if tunnel.device.is_some_and(|device| device.socket != SOCKET) {
            notes.push(format!("tunnel.device.socket: the kernel's sockets hold {SOCKET} full packets (212992 bytes)"));
        }
    }
    notes.sort();
    notes.dedup();
    notes
}

/// The number of sources that use a link: flows in the tunnel share the tunnel's.
fn hosts_on(experiment: &Experiment, link: usize) -> usize {
    let users = || experiment.flows.iter().filter(|flow| uses(experiment, flow, link));
    let is_inside = |flow: &&Flow| flow.route == Route::Tunnel;
    users().filter(|flow| !is_inside(flow)).count() + usize::from(users().any(|flow| is_inside(&flow)))
}

/// The names and TCP settings of the flows in the tunnel.
fn tunnelled_hosts(experiment: &Experiment) -> impl Iterator<Item = (&str, &Host)> {
    experiment.flows.iter().filter(|flow| flow.route == Route::Tunnel).filter_map(|flow| match &flow.kind {
        FlowKind::Tcp { host, .. } => Some((flow.name.as_str(), host.as_ref())),
        FlowKind::ConstantRate { .. } => None,
    })
}

fn uses(experiment: &Experiment, flow: &Flow, link: usize) -> bool {
    let has = |path: usize| experiment.paths[path].links.contains(&link);
    match flow.route {
        Route::Path(path) => has(path),
        Route::Tunnel => experiment.tunnel.iter().any(|tunnel| tunnel.paths.iter().any(|path| has(*path))),
        Route::Subflows => flow.kind.subflows().iter().any(|subflow| has(subflow.path)),
    }
}

/// A link's key in the scenario: a path of one link is written as a path.
fn key(experiment: &Experiment, number: usize, link: &Link) -> String {
    let path = experiment.paths.iter().find(|path| path.links == [number] && path.name == link.name);
    path.map_or_else(|| format!("link.{}", link.name), |path| format!("path.{}", path.name))
}

fn check_pipe(key: &str, pipe: &PipeConfig, abilities: &Abilities) -> Result<(), Error> {
    let netem = abilities.netem;
    let wanted = discipline(&pipe.queue.discipline);
    let is_unsupported = wanted.is_some_and(|wanted| !abilities.disciplines.contains(&wanted));
    let unknown = format!("`{}`: this kernel has droptail, {}", wanted.unwrap_or(""), abilities.disciplines.join(", "));
    let cake = wanted == Some("cake");
    refuse(
        key,
        &[
            (pipe.trace.is_some(), "trace", "traces: a link has a rate"),
            (!netem && matches!(pipe.loss, LossModel::GilbertElliott { .. }), "loss", "loss in bursts without netem"),
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

fn check_flow(experiment: &Experiment, flow: &Flow, abilities: &Abilities) -> Result<(), Error> {
    let key = format!("flow.{}", flow.name);
    let FlowKind::Tcp { congestion: AlgorithmChoice { name, parameters }, application, host, multipath, .. } =
        &flow.kind
    else {
        let is_small = payload(experiment, flow) < TIMESTAMP;
        return refuse(
            &key,
            &[(is_small, "packet", "datagrams with less than 8 bytes of payload: they carry the time")],
        );
    };
    let unknown = format!("congestion control `{name}`: this kernel has {}", abilities.congestion.join(", "));
    refuse(
        &key,
        &[
            (multipath.is_some() && !abilities.mptcp, "kind", "MPTCP: this kernel has none"),
            (matches!(application, Application::Video(_)), "video", "player"),
            (!abilities.congestion.contains(name), "congestion", &unknown),
            (!parameters.is_empty(), "congestion", "parameters of a congestion control: the kernel has its own"),
        ],
    )?;
    if let Some(multipath) = multipath {
        check_multipath(&key, multipath)?;
    }
    let is_local = |link: usize| experiment.links[link].forward.local && uses(experiment, flow, link);
    check_host(host, abilities, (0..experiment.links.len()).any(is_local))
}

fn check_multipath(key: &str, multipath: &Multipath) -> Result<(), Error> {
    let subflows = &multipath.subflows;
    refuse(
        key,
        &[
            (
                subflows.iter().skip(1).any(|it| it.join != Span::ZERO),
                "subflows",
                "subflow that joins later than it can",
            ),
            (subflows.iter().any(|it| it.leave.is_some()), "subflows", "subflow that leaves"),
            (subflows.first().is_some_and(|it| it.backup), "subflows", "first subflow that is a backup"),
        ],
    )
}

fn check_host(host: &Host, abilities: &Abilities, is_local: bool) -> Result<(), Error> {
    refuse(
        "host",
        &[
            (host.ip_header != 20 && !abilities.v6, "ip", "IPv6"),
            (host.recovery != LossRecovery::Rack, "recovery", "loss recovery other than Linux's own"),
            (!host.handshake, "handshake", "connection without a handshake"),
            (host.initial_rto != Span::from_secs(1), "initial_rto", "first timeout other than one second"),
            (host.window.is_some(), "window", "greatest window"),
            (host.gro != 1, "gro", "receive offload: write `gro = 1`"),
            (host.pacing && !abilities.disciplines.contains(&"fq"), "pacing", "discipline `fq`: this kernel has none"),
            (host.pacing && is_local, "pacing", "room for the fq discipline where a local queue stands"),
        ],
    )
}

fn refuse(table: &str, checks: Checks<'_>) -> Result<(), Error> {
    let Some((_, key, what)) = checks.iter().find(|(is_used, ..)| *is_used) else { return Ok(()) };
    let key = if table.is_empty() { (*key).to_owned() } else { format!("{table}.{key}") };
    Err(Error::Unsupported { key, what: (*what).to_owned() })
}

#[cfg(test)]
mod tests;
