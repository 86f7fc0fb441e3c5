//! The topology of an experiment: links as pairs of pipes, paths as chains of links.
//!
//! Pipe `2 l` is link `l` forward, `2 l + 1` is its reverse. The two local links of a relay follow the experiment's links,
//! and one path over each of them follows the experiment's paths.

use crate::packet::PacketDescriptor;
use link::{Pipe, PipeConfig};
use scenario::model::{Change, Directions, Experiment, Relay};
use units::{Instant, Rate, RngStream};
use world::Topology;

/// One direction of a link between a relay and the hosts at its end of the tunnel. Data enters it at the interface of its
/// sending host.
fn local_link(relay: &Relay, local: bool) -> PipeConfig {
    PipeConfig {
        rate: Some(relay.rate),
        delay: relay.delay,
        overhead: Relay::LINK_OVERHEAD,
        local,
        ..PipeConfig::default()
    }
}

/// Adds both directions of a link, forward first. Returns their pipes.
fn add_link(topology: &mut Topology, name: &str, [forward, reverse]: [&PipeConfig; 2], seed: u64) -> [u32; 2] {
    [(forward, "forward"), (reverse, "reverse")].map(|(config, direction)| {
        topology.add_pipe(config, RngStream::named(seed, &format!("link {name} {direction}")))
    })
}

/// The topology of an experiment.
pub(crate) fn new(experiment: &Experiment, seed: u64) -> Topology {
    let mut topology = Topology::default();
    for link in &experiment.links {
        add_link(&mut topology, &link.name, [&link.forward, &link.reverse], seed);
    }
    for path in &experiment.paths {
        let pipes = |direction: u32| {
            let links = path.links.iter().enumerate();
            links.map(move |(hop, link)| *link as u32 * 2 + (direction ^ u32::from(hop >= path.turn)))
        };
        topology.add_path([pipes(0).collect(), pipes(1).rev().collect()]);
    }
    if let Some(relay) = experiment.tunnel.as_ref().and_then(|tunnel| tunnel.relay()) {
        for name in ["near relay", "far relay"] {
            let pipes = add_link(&mut topology, name, [&local_link(relay, true), &local_link(relay, false)], seed);
            topology.add_path(pipes.map(|pipe| vec![pipe]));
        }
    }
    topology
}

/// Applies a change to one of its pipes. A pause ends at `pause_end`.
pub(crate) fn apply(pipe: &mut Pipe<PacketDescriptor>, now: Instant, change: &Change, pause_end: Instant) {
    if let Some(up) = change.up {
        pipe.set_up(now, up);
    }
    if let Some(rate) = change.rate {
        match rate {
            Rate(0) => pipe.pause(now, pause_end),
            rate => pipe.set_rate(now, rate),
        }
    }
    if let Some(delay) = change.delay {
        pipe.set_delay(now, delay);
    }
    if let Some(loss) = change.loss {
        pipe.set_loss(now, loss);
    }
}

/// The pipes that a change concerns.
pub(crate) fn pipes_of_change(change: &Change) -> Vec<u32> {
    let base = change.link as u32 * 2;
    match change.directions {
        Directions::Forward => vec![base],
        Directions::Reverse => vec![base + 1],
        Directions::Both => vec![base, base + 1],
    }
}

/// The time of the first of the changes `later` (the next one last) that gives a pipe another rate.
pub(crate) fn next_rate_at(pipe: u32, later: &[Change]) -> Option<Instant> {
    let changes_rate = |change: &&Change| change.rate.is_some() && pipes_of_change(change).contains(&pipe);
    later.iter().rev().find(changes_rate).map(|change| change.at)
}
