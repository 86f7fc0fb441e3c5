//! What the lab can do with a kernel. Everything else is refused before anything boots, in words that say what is lacking,
//! and with the scenario's key; what a kernel does in its own way whatever the scenario says is noted.

use crate::Error;
use crate::network::MTU;
use scenario::model::{
    Algorithm, Application, Discipline, Experiment, Flow, FlowKind, Host, Limit, Link, Loss, Multipath, Pipe, Recovery,
    Ropewalk, Route,
};
use units::Span;

/// Numbers of flows, paths and links are parts of addresses.
const FLOWS: usize = 250;
const PATHS: usize = 100;
const LINKS: usize = 60;

/// What a kernel can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Congestion controls, by the kernel's names.
    pub(crate) congestion: Vec<String>,
    /// Those of them that may be the default of a namespace.
    pub(crate) defaults: Vec<String>,
    pub(crate) mptcp: bool,
    pub(crate) netem: bool,
    pub(crate) tun: bool,
    pub(crate) v6: bool,
    /// 1/HZ, if it is known.
    pub(crate) tick: Option<Span>,
}

/// What every kernel leaves to the simulator, in words.
pub(crate) const SIMULATOR_ONLY: &[&str] = &[
    "UDP flows",
    "applications: writing at a rate, requests, video",
    "RED and CAKE",
    "rate traces",
    "MTUs other than 1500 bytes",
    "parameters of algorithms",
    "subflows that join later, or leave",
    "hosts that are not Linux's own: other loss recovery, greatest windows, receive offload",
];

/// What a kernel with these abilities leaves to the simulator or to another kernel, in words.
pub(crate) fn lacks(abilities: &Abilities) -> Vec<&'static str> {
    let all = [
        (!abilities.mptcp, "MPTCP"),
        (!abilities.tun, "tunnels"),
        (!abilities.v6, "IPv6"),
        (!abilities.netem, "loss in bursts"),
    ];
    all.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what).collect()
}

/// A list of what may be asked for: whether it is, by which key, what the lab lacks.
type Lacks<'a> = &'a [(bool, &'a str, &'a str)];

/// Whether a kernel with these abilities can run this: the first thing that it cannot do.
pub(crate) fn check(experiment: &Experiment, abilities: &Abilities) -> Result<(), Error> {
    let tunnelled = experiment.flows.iter().filter(|flow| flow.route == Route::Tunnel).count();
    refuse(
        "",
        &[
            (experiment.tunnel.is_some() && !abilities.tun, "tunnel", "TUN devices"),
            (tunnelled > 1, "flow", "room for a second flow in the tunnel"),
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
    let flows_on = |link: usize| experiment.flows.iter().filter(|flow| uses(experiment, flow, link)).count();
    for (number, link) in experiment.links.iter().enumerate() {
        let rated = link.forward.rate.is_some() && link.reverse.rate.is_some();
        let changes = || experiment.events.iter().filter(|event| event.link == number);
        let key = key(experiment, number, link);
        refuse(
            &key,
            &[
                (!rated && changes().any(|event| event.rate.is_some()), "rate", "new rate for a link without one"),
                (
                    (link.forward.local || link.reverse.local) && flows_on(number) > 1,
                    "local",
                    "host that several flows share: a local queue is one flow's",
                ),
            ],
        )?;
        [&link.forward, &link.reverse].into_iter().try_for_each(|pipe| check_pipe(&key, pipe, abilities))?;
    }
    experiment.flows.iter().try_for_each(|flow| check_flow(experiment, flow, abilities))
}

/// What the daemon's configuration does not have.
fn check_tunnel(ropewalk: &Ropewalk) -> Result<(), Error> {
    let own = "other value than the daemon's own";
    refuse(
        "tunnel",
        &[
            (ropewalk.probe.is_some(), "probe", own),
            (ropewalk.target.is_some(), "target", own),
            (ropewalk.interval.is_some(), "interval", own),
            (ropewalk.memory.is_some(), "memory", own),
        ],
    )
}

/// What the kernel does in its own way.
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
    if let Some(tunnel) = experiment.tunnel.as_ref().filter(|tunnel| tunnel.ropewalk.is_none()) {
        if tunnel.first != 0 || tunnel.stray_packets != 0 {
            notes.push("tunnel.first and stray_packets: which path is first is left to the daemon".into());
        }
        if tunnel.device.is_some() {
            notes.push(
                "tunnel.device: the ring and the sockets' buffers are the kernel's own (500 packets, 212992 bytes)"
                    .into(),
            );
        }
    }
    notes.sort();
    notes.dedup();
    notes
}

fn uses(experiment: &Experiment, flow: &Flow, link: usize) -> bool {
    let has = |path: usize| experiment.paths[path].links.contains(&link);
    match flow.route {
        Route::Path(path) => has(path),
        Route::Tunnel => experiment.tunnel.iter().any(|tunnel| tunnel.paths.iter().any(|path| has(*path))),
        Route::Subflows => flow.kind.subflows().iter().any(|subflow| has(subflow.path)),
    }
}

/// How the scenario calls a link: a path of one link is written as a path.
fn key(experiment: &Experiment, number: usize, link: &Link) -> String {
    let alone = experiment.paths.iter().find(|path| path.links == [number] && path.name == link.name);
    alone.map_or_else(|| format!("link.{}", link.name), |path| format!("path.{}", path.name))
}

fn check_pipe(key: &str, pipe: &Pipe, abilities: &Abilities) -> Result<(), Error> {
    let netem = abilities.netem;
    refuse(
        key,
        &[
            (pipe.trace.is_some(), "trace", "traces: a link has a rate"),
            (!netem && matches!(pipe.loss, Loss::GilbertElliott { .. }), "loss", "loss in bursts without netem"),
            (
                matches!(pipe.queue.discipline, Discipline::Red { .. } | Discipline::Cake { .. }),
                "queue.discipline",
                "RED and CAKE: it has droptail, codel, fq_codel and pie",
            ),
            (pipe.rate.is_none() && matches!(pipe.queue.limit, Limit::Time(_)), "queue.limit", "time without a rate"),
        ],
    )
}

fn check_flow(experiment: &Experiment, flow: &Flow, abilities: &Abilities) -> Result<(), Error> {
    let key = format!("flow.{}", flow.name);
    let FlowKind::Tcp { congestion: Algorithm { name, parameters }, application, host, multipath, .. } = &flow.kind
    else {
        return refuse(&key, &[(true, "kind", "flows other than TCP")]);
    };
    let unknown = format!("congestion control `{name}`: this kernel has {}", abilities.congestion.join(", "));
    let greedy = *application == Application::Greedy;
    refuse(
        &key,
        &[
            (multipath.is_some() && !abilities.mptcp, "kind", "MPTCP: this kernel has none"),
            (!greedy, "rate, requests or video", "applications that do not send all they can"),
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
            (host.recovery != Recovery::Rack, "recovery", "loss recovery other than Linux's own"),
            (!host.handshake, "handshake", "connection without a handshake"),
            (host.initial_timeout != Span::from_secs(1), "initial_timeout", "first timeout other than one second"),
            (host.window.is_some(), "window", "greatest window"),
            (host.gro != 1, "gro", "receive offload: write `gro = 1`"),
            (host.pacing && is_local, "pacing", "room for the fq discipline where a local queue stands"),
        ],
    )
}

fn refuse(table: &str, all: Lacks<'_>) -> Result<(), Error> {
    let Some((_, key, what)) = all.iter().find(|(asked, ..)| *asked) else { return Ok(()) };
    let key = if table.is_empty() { (*key).to_owned() } else { format!("{table}.{key}") };
    Err(Error::Lacks { key, what: (*what).to_owned() })
}

#[cfg(test)]
mod tests;
