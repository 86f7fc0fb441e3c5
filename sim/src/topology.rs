//! The topology: links as pairs of pipes, paths as chains of links.

use crate::packet::{Direction, PacketDescriptor};
use link::{Pipe, PipeConfig};
use scenario::model::{Change, Directions, Experiment, Relay};
use units::{Instant, Rate, RngStream};

/// The network. Pipe `2 l` is link `l` forward, `2 l + 1` is its reverse. The two local links of a relay follow the
/// experiment's links, and one path over each of them follows the experiment's paths.
#[derive(Debug)]
pub(crate) struct Topology {
    pub pipes: Vec<Pipe<PacketDescriptor>>,
    /// Per path and direction: the pipes in the order of travel.
    hops: Vec<[Vec<u32>; 2]>,
    local: Vec<bool>,
    /// The end of the run.
    end: Instant,
}

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

impl Topology {
    /// Number of paths.
    pub(crate) fn paths(&self) -> usize {
        self.hops.len()
    }

    pub(crate) fn new(experiment: &Experiment, seed: u64) -> Self {
        let pipe = |config: &PipeConfig, name: &str, direction: &str| {
            Pipe::new(config, RngStream::named(seed, &format!("link {name} {direction}")))
        };
        let mut pipes = Vec::new();
        for link in &experiment.links {
            pipes.push(pipe(&link.forward, &link.name, "forward"));
            pipes.push(pipe(&link.reverse, &link.name, "reverse"));
        }
        let hops = experiment.paths.iter().map(|path| {
            let pipes = |direction: u32| {
                let links = path.links.iter().enumerate();
                links.map(move |(hop, link)| *link as u32 * 2 + (direction ^ u32::from(hop >= path.turn)))
            };
            [pipes(0).collect(), pipes(1).rev().collect()]
        });
        let mut hops: Vec<[Vec<u32>; 2]> = hops.collect();
        let local = experiment.links.iter().flat_map(|link| [link.forward.local, link.reverse.local]);
        let mut local: Vec<bool> = local.collect();
        if let Some(relay) = experiment.tunnel.as_ref().and_then(|tunnel| tunnel.relay()) {
            for name in ["near relay", "far relay"] {
                let first = pipes.len() as u32;
                pipes.push(pipe(&local_link(relay, true), name, "forward"));
                pipes.push(pipe(&local_link(relay, false), name, "reverse"));
                hops.push([vec![first], vec![first + 1]]);
                local.extend([true, false]);
            }
        }
        Self { hops, pipes, local, end: Instant::ZERO + experiment.duration }
    }

    /// A path's first pipe.
    #[inline]
    pub(crate) fn first(&self, path: u16, direction: Direction) -> u32 {
        self.pipes_of(usize::from(path), direction)[0]
    }

    /// The pipe at position `hop` of a path, or `None` at its end.
    #[inline]
    pub(crate) fn hop(&self, path: u16, direction: Direction, hop: u8) -> Option<u32> {
        self.hops[usize::from(path)][direction as usize].get(usize::from(hop)).copied()
    }

    /// The pipes of a path in one direction.
    pub(crate) fn pipes_of(&self, path: usize, direction: Direction) -> &[u32] {
        &self.hops[path][direction as usize]
    }

    /// The pipes of a path in one direction, and the state of all pipes.
    #[inline]
    pub(crate) fn hops_and_pipes(
        &mut self,
        path: u16,
        direction: Direction,
    ) -> (&[u32], &mut [Pipe<PacketDescriptor>]) {
        (&self.hops[usize::from(path)][direction as usize], &mut self.pipes)
    }

    /// Whether the pipe's queue is in the sending host.
    #[inline]
    pub(crate) fn is_local(&self, pipe: u32) -> bool {
        self.local[pipe as usize]
    }

    /// Applies a change of a link and returns the pipes that it concerns. `later` are the changes that follow, the next one
    /// last.
    pub(crate) fn apply(&mut self, now: Instant, change: &Change, later: &[Change]) -> Vec<u32> {
        let changed = pipes_of_change(change);
        for index in &changed {
            let pipe = &mut self.pipes[*index as usize];
            if let Some(up) = change.up {
                pipe.set_up(now, up);
            }
            if let Some(rate) = change.rate {
                match rate {
                    Rate(0) => pipe.pause(now, next_rate_at(*index, later).unwrap_or(self.end)),
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
        changed
    }
}

/// The pipes that a change concerns.
fn pipes_of_change(change: &Change) -> Vec<u32> {
    let base = change.link as u32 * 2;
    match change.directions {
        Directions::Forward => vec![base],
        Directions::Reverse => vec![base + 1],
        Directions::Both => vec![base, base + 1],
    }
}

/// The time of the first of the changes `later` (the next one last) that gives a pipe another rate.
fn next_rate_at(pipe: u32, later: &[Change]) -> Option<Instant> {
    let changes_rate = |change: &&Change| change.rate.is_some() && pipes_of_change(change).contains(&pipe);
    later.iter().rev().find(changes_rate).map(|change| change.at)
}
