//! Fat trees: `k` pods of `k/2` edge and `k/2` aggregation switches, `(k/2)^2` core switches, `k^3/4` hosts, and as many
//! links between each two layers (Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network
//! architecture", SIGCOMM 2008).

use super::checks::check_positive;
use super::network::{Links, mtu};
use crate::file::{FatTree, File};
use crate::model::{Link, Path};
use parse::{Diagnostic, Spanned};
use units::RngStream;

/// The maximum number of ports of a switch: 1024 hosts.
const MAX_PORTS: u32 = 16;
/// The maximum number of paths of a connection.
const MAX_PATHS: u32 = 32;

/// Links, and for each host its paths to the host that it sends to.
pub(super) fn network(
    file: &File,
    tree: &Spanned<FatTree>,
    mut links: Links<'_>,
) -> Result<(Vec<Link>, Vec<Path>), Diagnostic> {
    let table = tree.get();
    if !file.path.is_empty() || !file.link.is_empty() || file.tunnel.is_some() {
        let diagnostic = Diagnostic::new(tree.span(), "a fat tree is the whole network");
        return Err(diagnostic.with_help("leave out [[path]], [[link]] and [tunnel]"));
    }
    let ports = *table.k.get();
    if !(2..=MAX_PORTS).contains(&ports) || !ports.is_multiple_of(2) {
        let message = format!("`k` is an even number from 2 to {MAX_PORTS}: the ports of a switch");
        return Err(Diagnostic::new(table.k.span(), message));
    }
    let shape = Shape { half: ports as usize / 2 };
    links.add_alike(&table.pipe(), shape.link_names())?;
    let (mtu, paths_each) = (mtu(table.mtu.as_ref())?, paths_each(table)?);
    let mut rng = RngStream::named(table.draw.unwrap_or(1), "fat tree");
    let receivers = shape.receivers(&mut rng);
    let mut paths = Vec::new();
    for (sender, receiver) in receivers.into_iter().enumerate() {
        for number in 0..paths_each {
            let up_and_down = shape.path(sender, receiver, &mut rng);
            let name = format!("{sender}-to-{receiver}-{number}");
            paths.push(Path { name, turn: up_and_down.len() / 2, links: up_and_down, mtu });
        }
    }
    Ok((links.resolve_queue_limits(&paths)?, paths))
}

/// The paths of each host's connection.
pub(super) fn paths_each(table: &FatTree) -> Result<usize, Diagnostic> {
    let Some(paths) = &table.paths else { return Ok(1) };
    match *check_positive("paths", paths, |paths| u64::from(*paths))? {
        count if count > MAX_PATHS => {
            Err(Diagnostic::new(paths.span(), format!("a connection has {MAX_PATHS} paths at most")))
        }
        count => Ok(count as usize),
    }
}

/// The shape of a tree; positions of hosts, switches and links are counted from 0.
#[derive(Clone, Copy)]
struct Shape {
    /// Half of a switch's ports.
    half: usize,
}

impl Shape {
    fn pods(self) -> usize {
        self.half * 2
    }

    /// Hosts; also the links between each two layers.
    fn hosts(self) -> usize {
        self.pods() * self.half * self.half
    }

    /// Links from hosts to edge switches, from those to aggregation switches, and from those to core switches.
    fn link_names(self) -> impl Iterator<Item = String> {
        let Self { half } = self;
        let pairs = move || {
            (0..self.pods())
                .flat_map(move |pod| (0..half).flat_map(move |lower| (0..half).map(move |upper| (pod, lower, upper))))
        };
        let to_edge = (0..self.hosts()).map(|host| format!("host{host}"));
        let to_aggregation =
            pairs().map(|(pod, edge, aggregation)| format!("pod{pod}-edge{edge}-aggregation{aggregation}"));
        let to_core = pairs().map(move |(pod, aggregation, core)| {
            format!("pod{pod}-aggregation{aggregation}-core{}", aggregation * half + core)
        });
        to_edge.chain(to_aggregation).chain(to_core)
    }

    /// The destination of each host: a random permutation that is one cycle, so that no host sends to itself (Sattolo 1986).
    fn receivers(self, rng: &mut RngStream) -> Vec<usize> {
        let mut receivers: Vec<usize> = (0..self.hosts()).collect();
        for last in (1..receivers.len()).rev() {
            receivers.swap(last, rng.below(last as u64) as usize);
        }
        receivers
    }

    /// One of the shortest paths, drawn: the links up to the lowest switch that both hosts are below, and down.
    fn path(self, sender: usize, receiver: usize, rng: &mut RngStream) -> Vec<usize> {
        let Self { half } = self;
        let [aggregation, core] = [(); 2].map(|()| rng.below(half as u64) as usize);
        let edge = |host: usize| host / half;
        let pod = |host: usize| edge(host) / half;
        let up = |host: usize| {
            let to_aggregation = self.hosts() + edge(host) * half + aggregation;
            let to_core = self.hosts() * 2 + (pod(host) * half + aggregation) * half + core;
            [host, to_aggregation, to_core]
        };
        let layers = match () {
            () if edge(sender) == edge(receiver) => 1,
            () if pod(sender) == pod(receiver) => 2,
            () => 3,
        };
        up(sender).into_iter().take(layers).chain(up(receiver).into_iter().take(layers).rev()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_has_the_hosts_links_and_paths_of_al_fares() {
        for (half, hosts) in [(1, 2), (2, 16), (4, 128), (8, 1024)] {
            let shape = Shape { half };
            assert_eq!((shape.hosts(), shape.link_names().count()), (hosts, 3 * hosts));
            assert_eq!(shape.link_names().collect::<BTreeSet<_>>().len(), 3 * hosts, "every name is another");
        }
        // Between two pods there is a path over each core switch, within a pod one over each aggregation switch.
        let shape = Shape { half: 4 };
        let mut rng = RngStream::named(1, "paths");
        let mut paths = |receiver| (0..1000).map(|_| shape.path(0, receiver, &mut rng)).collect::<BTreeSet<_>>();
        for (receiver, count, links) in [(127, 16, 6), (4, 4, 4), (1, 1, 2)] {
            let found = paths(receiver);
            assert_eq!(found.len(), count);
            assert!(found.iter().all(|path| path.len() == links && path[0] == 0 && path[links - 1] == receiver));
        }
    }

    #[test]
    fn every_host_sends_to_one_other_host_and_receives_from_one() {
        for draw in 1..20 {
            let receivers = Shape { half: 2 }.receivers(&mut RngStream::named(draw, "fat tree"));
            assert!(receivers.iter().enumerate().all(|(sender, receiver)| sender != *receiver));
            assert_eq!(receivers.iter().collect::<BTreeSet<_>>().len(), 16);
        }
    }
}
