//! A drawing of the topology as text, for the beginning of `setup.sh`.

use super::Network;
use link::{LossModel, PipeConfig, QueueLimit};
use scenario::model::Link;
use std::fmt::Write;
use units::Span;

/// A block for each pair of hosts, a line for each of its paths.
pub(crate) fn draw_topology(network: &Network<'_>) -> String {
    let mut text = String::new();
    for (k, pair) in network.pairs.iter().enumerate() {
        let paths: Vec<String> = pair.paths.iter().map(|p| path(network, *p)).collect();
        let width = paths.iter().map(|line| line.chars().count()).max().unwrap_or(0) + 1;
        for (n, line) in paths.into_iter().enumerate() {
            let [left, right] =
                if n == 0 { [format!("s{k}"), format!("d{k}")] } else { [" ".repeat(2), String::new()] };
            let _ = writeln!(text, "{left:>4} --+-- {:-<width$}--+-- {right}", line + " ");
        }
    }
    if let Some(tunnel) = &network.experiment.tunnel {
        let kind = if tunnel.ropewalk.is_some() { "ropewalk" } else { "mpt" };
        let _ = writeln!(
            text,
            "     a tunnel in {kind} mode over all paths of its hosts, {} to {}",
            network.family.inner(1),
            network.family.inner(2)
        );
    }
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn path(network: &Network<'_>, p: usize) -> String {
    let path = &network.experiment.paths[p];
    let links = path.links.iter().map(|i| link(&network.experiment.links[*i]));
    links.collect::<Vec<_>>().join(" -- ")
}

fn link(link: &Link) -> String {
    let (forward, reverse) = (pipe(&link.forward), pipe(&link.reverse));
    if forward == reverse {
        format!("[{}: {forward}]", link.name)
    } else {
        format!("[{}: {forward} / back {reverse}]", link.name)
    }
}

fn pipe(pipe: &PipeConfig) -> String {
    let mut words = Vec::new();
    if let Some(rate) = pipe.rate {
        words.push(format!("{} Mbit/s", rate.as_mbps()));
        words.push(match pipe.queue.limit {
            QueueLimit::Packets(packets) => format!("queue {packets} packets"),
            QueueLimit::Bytes(bytes) => format!("queue {bytes} bytes"),
            QueueLimit::Time(span) => format!("queue {}", time(span)),
        });
    }
    if pipe.delay > Span::ZERO {
        words.push(time(pipe.delay));
    }
    if pipe.jitter.span > Span::ZERO {
        words.push(format!("jitter {}", time(pipe.jitter.span)));
    }
    match pipe.loss {
        LossModel::Random(share) => words.push(format!("loss {} %", share * 100.0)),
        LossModel::GilbertElliott { .. } => words.push("loss in bursts".into()),
        LossModel::None => {}
    }
    if words.is_empty() { "nothing".into() } else { words.join(", ") }
}

fn time(span: Span) -> String {
    format!("{} ms", span.as_secs_f64() * 1e3)
}
