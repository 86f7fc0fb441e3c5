//! What the lab can do. Everything else is refused before anything boots, in words that say what is lacking.

use crate::Error;
use scenario::model::{Congestion, Discipline, Experiment, Flow, FlowKind, Host, Limit, Loss, Pipe};
use units::Span;

/// The congestion controls of Linux 6.1.
const CONGESTION: [&str; 17] = [
    "bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno", "scalable",
    "vegas", "veno", "westwood", "yeah",
];
/// User-Mode Linux has HZ=100.
const TICK: Span = Span::from_millis(10);

/// A list of (what is asked for, what the lab lacks).
type Lacks<'a> = &'a [(bool, &'a str)];

/// Whether the lab can run this.
///
/// # Errors
/// What it cannot do.
pub fn check(experiment: &Experiment) -> Result<(), Error> {
    refuse(&[
        (experiment.tunnel.is_some(), "it has no tunnel"),
        (experiment.paths.len() != 1 || experiment.links.len() != 1, "it has one path of one link"),
        (experiment.events.iter().any(|event| event.up.is_some()), "an event changes rate, delay or loss, not `up`"),
        (experiment.flows.len() > 250, "it has room for 250 flows"),
    ])?;
    let link = &experiment.links[0];
    for pipe in [&link.forward, &link.reverse] {
        check_pipe(pipe)?;
    }
    experiment.flows.iter().try_for_each(|flow| check_flow(flow, &link.forward))?;
    let changed = experiment.events.iter().filter_map(|event| event.loss);
    let rates = |pipe: &Pipe| pipe.rate.is_none();
    refuse(&[
        (changed.into_iter().any(is_bursty), BURSTY),
        (
            (rates(&link.forward) || rates(&link.reverse)) && experiment.events.iter().any(|it| it.rate.is_some()),
            "it changes the rate only of a link that has one",
        ),
        (
            (link.forward.local || link.reverse.local) && experiment.flows.len() > 1,
            "each flow has hosts of its own, so with `local = true` there is one flow",
        ),
    ])
}

const BURSTY: &str = "loss is random, without bursts";

fn is_bursty(loss: Loss) -> bool {
    matches!(loss, Loss::GilbertElliott { .. })
}

fn check_pipe(pipe: &Pipe) -> Result<(), Error> {
    refuse(&[
        (pipe.trace.is_some(), "a link has a rate, not a trace"),
        (pipe.jitter != Span::ZERO, "it has no jitter"),
        (is_bursty(pipe.loss), BURSTY),
        (pipe.queue.discipline != Discipline::DropTail, "its queues are droptail"),
        (matches!(pipe.queue.limit, Limit::Time(_)), "a queue's limit is in packets or bytes"),
    ])
}

fn check_flow(flow: &Flow, forward: &Pipe) -> Result<(), Error> {
    let FlowKind::Tcp { congestion, size, host } = &flow.kind else {
        return Err(lacks(&format!("flow {}: its flows are TCP", flow.name)));
    };
    refuse(&[(size.is_some(), "its flows are endless: no `size`")])?;
    check_congestion(congestion)?;
    check_host(host, forward)
}

fn check_congestion(congestion: &Congestion) -> Result<(), Error> {
    let Congestion { name, parameters } = congestion;
    let unknown = format!("Linux 6.1 has no congestion control `{name}`; it has {}", CONGESTION.join(", "));
    let set = format!("the parameters of {name} are the kernel's");
    refuse(&[(!CONGESTION.contains(&name.as_str()), &unknown), (!parameters.is_empty(), &set)])
}

fn check_host(host: &Host, forward: &Pipe) -> Result<(), Error> {
    refuse(&[
        (host.tick != TICK, "its kernel ticks a hundred times a second: write `tick = \"10ms\"` under [host]"),
        (host.gro != 1, "receive offload is off: `gro = 1`"),
        (host.pacing && forward.local, "a local queue stands where `pacing` needs the fq discipline"),
    ])
}

fn refuse(all: Lacks<'_>) -> Result<(), Error> {
    all.iter().find(|(asked, _)| *asked).map_or(Ok(()), |(_, what)| Err(lacks(what)))
}

fn lacks(what: &str) -> Error {
    Error::Lacks(what.to_owned())
}
