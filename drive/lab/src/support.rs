//! What the lab can do. Everything else is refused before anything boots, in words that say what is lacking, and with
//! the scenario's key.

use crate::Error;
use scenario::model::{
    Algorithm, Application, Discipline, Experiment, Flow, FlowKind, Host, Limit, Loss, Pipe, Recovery,
};
use units::Span;

/// The congestion controls of Linux 6.1.
const CONGESTION: [&str; 17] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];
/// User-Mode Linux has HZ=100.
const TICK: Span = Span::from_millis(10);
/// Ethernet's.
const MTU: u32 = 1500;
/// Flows' numbers are bytes of addresses.
const FLOWS: usize = 250;

const BURSTY: &str = "loss in bursts";

/// A list of what may be asked for: whether it is, by which key, what the lab lacks.
type Lacks<'a> = &'a [(bool, &'a str, &'a str)];

/// Whether the lab can run this.
///
/// # Errors
/// The first thing it cannot do.
pub fn check(experiment: &Experiment) -> Result<(), Error> {
    let events = || experiment.events.iter();
    refuse(
        "",
        &[
            (experiment.tunnel.is_some(), "tunnel", "tunnels"),
            (experiment.paths.len() != 1, "path", "second path"),
            (experiment.links.len() != 1, "path", "second link on a path"),
            (experiment.flows.len() > FLOWS, "flow", "room for more than 250 flows"),
            (events().any(|event| event.up.is_some()), "event", "events with `up`: they change rate, delay or loss"),
            (events().filter_map(|event| event.loss).any(is_bursty), "event", BURSTY),
        ],
    )?;
    let link = &experiment.links[0];
    let rated = link.forward.rate.is_some() && link.reverse.rate.is_some();
    let local = link.forward.local || link.reverse.local;
    refuse(
        &format!("path.{}", experiment.paths[0].name),
        &[
            (experiment.paths[0].mtu != MTU, "mtu", "MTU other than 1500 bytes"),
            (!rated && events().any(|event| event.rate.is_some()), "rate", "new rate for a link without one"),
            (
                local && experiment.flows.len() > 1,
                "local",
                "host that several flows share: a local queue is one flow's",
            ),
        ],
    )?;
    [&link.forward, &link.reverse].into_iter().try_for_each(|pipe| check_pipe(&experiment.paths[0].name, pipe))?;
    experiment.flows.iter().try_for_each(|flow| check_flow(flow, &link.forward))
}

fn is_bursty(loss: Loss) -> bool {
    matches!(loss, Loss::GilbertElliott { .. })
}

fn check_pipe(path: &str, pipe: &Pipe) -> Result<(), Error> {
    refuse(
        &format!("path.{path}"),
        &[
            (pipe.trace.is_some(), "trace", "traces: a link has a rate"),
            (pipe.jitter != Span::ZERO, "jitter", "jitter"),
            (is_bursty(pipe.loss), "loss", BURSTY),
            (pipe.queue.discipline != Discipline::DropTail, "queue.discipline", "queues other than droptail"),
            (matches!(pipe.queue.limit, Limit::Time(_)), "queue.limit", "limits in time: write packets or bytes"),
        ],
    )
}

fn check_flow(flow: &Flow, forward: &Pipe) -> Result<(), Error> {
    let key = format!("flow.{}", flow.name);
    let FlowKind::Tcp { congestion: Algorithm { name, parameters }, application, size, host, multipath } = &flow.kind
    else {
        return refuse(&key, &[(true, "kind", "flows other than TCP")]);
    };
    let unknown = format!("congestion control `{name}`: Linux 6.1 has {}", CONGESTION.join(", "));
    refuse(
        &key,
        &[
            (multipath.is_some(), "kind", "MPTCP"),
            (size.is_some(), "size", "flows of a size"),
            (
                *application != Application::Greedy,
                "rate, requests or video",
                "applications that do not send all they can",
            ),
            (!CONGESTION.contains(&name.as_str()), "congestion", &unknown),
            (!parameters.is_empty(), "congestion", "parameters of a congestion control: the kernel has its own"),
        ],
    )?;
    check_host(host, forward)
}

fn check_host(host: &Host, forward: &Pipe) -> Result<(), Error> {
    refuse(
        "host",
        &[
            (host.ip_header != 20, "ip", "IPv6"),
            (host.tick != TICK, "tick", "timer but its own: write `tick = \"10ms\"` under [host]"),
            (host.recovery != Recovery::Rack, "recovery", "loss recovery other than Linux's own"),
            (!host.handshake, "handshake", "connection without a handshake"),
            (host.initial_timeout != Span::from_secs(1), "initial_timeout", "first timeout other than one second"),
            (host.window.is_some(), "window", "greatest window"),
            (host.gro != 1, "gro", "receive offload: write `gro = 1`"),
            (host.pacing && forward.local, "pacing", "room for the fq discipline where a local queue stands"),
        ],
    )
}

fn refuse(table: &str, all: Lacks<'_>) -> Result<(), Error> {
    let Some((_, key, what)) = all.iter().find(|(asked, ..)| *asked) else { return Ok(()) };
    let key = if table.is_empty() { (*key).to_owned() } else { format!("{table}.{key}") };
    Err(Error::Lacks { key, what: (*what).to_owned() })
}
