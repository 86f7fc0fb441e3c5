//! The assignment of sockets and path ids to a configuration, at the start and after each change.
//!
//! A path keeps its id, by which both ends know it, as long as its socket and the peer's address are the same.
//! Otherwise it is a new path with another id: measurements of the old path do not apply to it, and late datagrams of
//! the old path cannot be mistaken for its own. Ids are reused in a cycle, as late as possible.

use super::lookups::{Lookup, Lookups, lookup};
use crate::config::{ConfiguredPath, ConfiguredPeer, TunnelConfig};
use crate::control_plane::{Error, SilentPath};
use crate::data_plane::{OtherPeerConfig, PeerConfig, PeerPathConfig, SocketConfig, path_config};
use machine::{MAX_PATHS, PathConfig};
use seal::PublicKey;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Sockets and paths of a tunnel in `ropewalk` mode.
#[derive(Clone, Debug, Default)]
pub(super) struct PathAssignment {
    /// The sockets by index; `None` where a socket is no longer needed.
    pub(super) sockets: Vec<Option<SocketConfig>>,
    /// The peers in the order of the file.
    pub(super) peers: Vec<PeerConfig>,
    /// The inner MTU, bytes.
    pub(super) mtu: u16,
    /// The number of data threads, which never changes.
    pub(super) threads: usize,
    /// The data thread of each peer, in the order of `peers`.
    thread_of_peer: Vec<u8>,
    /// The addresses of endpoints.
    resolved: BTreeMap<Lookup, SocketAddr>,
    /// Endpoints whose names have no address now, with the resolver's error.
    unresolved: BTreeMap<Lookup, String>,
    /// The next id to try for a new path, by the peer's public key.
    next_id: BTreeMap<String, u8>,
}

impl PathAssignment {
    /// The assignment for `config`, which changes as little as possible of `previous`. Resolves new host names; a path
    /// whose endpoint has no address now is left out until a later attempt finds one. Paths of `silent` go on to the next
    /// address of their endpoint.
    ///
    /// # Errors
    /// There are too many paths.
    pub(super) fn new(config: &TunnelConfig, previous: &Self, silent: &BTreeSet<SilentPath>) -> Result<Self, Error> {
        let mut lookups = Lookups::new(&previous.resolved, silent);
        let mut remotes = Vec::new();
        for path in &config.paths {
            remotes.push(config.peers.iter().map(|peer| lookups.peer_address(path, peer)).collect::<Vec<_>>());
        }
        let Lookups { resolved, unresolved, .. } = lookups;
        let threads = if previous.threads == 0 { config.data_threads() } else { previous.threads };
        let next_id = previous.next_id.clone();
        let mut assignment = Self { mtu: config.mtu(), threads, resolved, unresolved, next_id, ..Self::default() };
        let sockets = assignment.assign_sockets(config, &remotes, previous);
        let previous_peers: BTreeMap<_, _> = previous.peers.iter().map(|peer| (peer.public_key, peer)).collect();
        for (index, peer) in config.peers.iter().enumerate() {
            let paths = config.paths.iter().zip(&remotes).zip(&sockets);
            // A peer without an endpoint opens its paths itself.
            let paths = paths.filter_map(|((path, remotes), socket)| Some((path, *socket, remotes[index]?))).collect();
            let peer = assignment.peer(config, peer, paths, (previous, &previous_peers))?;
            assignment.peers.push(peer);
        }
        assignment.assign_threads(previous);
        Ok(assignment)
    }

    /// The path's endpoint to `peer` if its name has no address now, with the resolver's error.
    pub(super) fn unresolved(&self, path: &ConfiguredPath, peer: &ConfiguredPeer) -> Option<(String, &str)> {
        let lookup = lookup(path, peer)?;
        let error = self.unresolved.get(&lookup)?;
        Some((lookup.endpoint.to_string(), error))
    }

    /// The changes from the addresses of `previous`, one line per endpoint and path.
    pub(super) fn resolved_changes(&self, previous: &Self) -> Vec<String> {
        let changed = self.resolved.iter().filter(|(lookup, address)| previous.resolved.get(*lookup) != Some(*address));
        let line = |(lookup, address): (&Lookup, &SocketAddr)| {
            let Lookup { endpoint, path, .. } = lookup;
            match previous.resolved.get(lookup) {
                Some(old) => format!("path {path}: endpoint {endpoint} is {address} now, it was {old}"),
                None => format!("path {path}: endpoint {endpoint} is {address}"),
            }
        };
        changed.map(line).collect()
    }

    /// Assigns each new peer to the data thread that has the fewest.
    fn assign_threads(&mut self, previous: &Self) {
        let keys = previous.peers.iter().map(|peer| peer.public_key);
        let previous: BTreeMap<_, _> = keys.zip(previous.thread_of_peer.iter().copied()).collect();
        let kept: Vec<Option<u8>> = self.peers.iter().map(|peer| previous.get(&peer.public_key).copied()).collect();
        let mut counts = vec![0_usize; self.threads];
        kept.iter().flatten().for_each(|thread| counts[usize::from(*thread)] += 1);
        let assigned = kept.into_iter().map(|thread| {
            thread.unwrap_or_else(|| {
                let fewest = (0..self.threads).min_by_key(|thread| counts[*thread]).unwrap_or(0);
                counts[fewest] += 1;
                fewest as u8
            })
        });
        self.thread_of_peer = assigned.collect();
    }

    /// The peers of a data thread, and those of the others.
    pub(super) fn split(&self, thread: u8) -> (Vec<PeerConfig>, Vec<OtherPeerConfig>) {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (peer, owner) in self.peers.iter().zip(&self.thread_of_peer) {
            if *owner == thread {
                own.push(peer.clone());
            } else {
                let (public_key, allowed_ips) = (peer.public_key, peer.allowed_ips.clone());
                others.push(OtherPeerConfig { thread: *owner, public_key, allowed_ips });
            }
        }
        (own, others)
    }

    /// Assigns a socket to each path and returns their indices. A path without a source and without a remote address
    /// needs one for each family: the second one is used only by paths that peers open.
    fn assign_sockets(
        &mut self,
        config: &TunnelConfig,
        remotes: &[Vec<Option<SocketAddr>>],
        previous: &Self,
    ) -> Vec<usize> {
        let remote = |index: usize| remotes[index].iter().flatten().next().copied();
        let paths = || config.paths.iter().enumerate();
        let mut configs: Vec<SocketConfig> =
            paths().map(|(index, path)| socket_config(config, path, remote(index))).collect();
        let any_family = paths().filter(|(index, path)| path.source.is_none() && remote(*index).is_none());
        let ipv6_configs = any_family.map(|(_, path)| {
            let bind = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), path.listen_port);
            SocketConfig { bind, ..socket_config(config, path, None) }
        });
        configs.extend(ipv6_configs.filter(|_| has_ipv6()));
        configs.iter_mut().for_each(|config| config.shares_port = self.threads > 1);
        self.sockets = vec![None; previous.sockets.len()];
        let previous_index = |config| previous.sockets.iter().position(|socket| socket.as_ref() == Some(config));
        let previous_indices: Vec<_> = configs.iter().map(previous_index).collect();
        for (config, index) in configs.iter().zip(&previous_indices) {
            index.iter().for_each(|index| self.sockets[*index] = Some(config.clone()));
        }
        let assigned = configs.into_iter().zip(previous_indices);
        assigned.map(|(config, index)| index.unwrap_or_else(|| self.insert_socket(config))).collect()
    }

    /// Adds a socket at the first free index.
    fn insert_socket(&mut self, config: SocketConfig) -> usize {
        let index = self.sockets.iter().position(Option::is_none).unwrap_or(self.sockets.len());
        self.sockets.resize(self.sockets.len().max(index + 1), None);
        self.sockets[index] = Some(config);
        index
    }

    fn peer(
        &mut self,
        config: &TunnelConfig,
        peer: &ConfiguredPeer,
        paths: Vec<(&ConfiguredPath, usize, SocketAddr)>,
        (previous, previous_peers): (&Self, &BTreeMap<PublicKey, &PeerConfig>),
    ) -> Result<PeerConfig, Error> {
        let missing = || Error::System { action: "a peer's key".into(), cause: io::ErrorKind::NotFound.into() };
        let public_key = peer.public_key.ok_or_else(missing)?;
        let previous_paths = previous_peers.get(&public_key).map_or(&[][..], |peer| &peer.paths);
        let is_kept = |path: &&PeerPathConfig, socket: usize, remote: SocketAddr| {
            (path.socket, path.remote) == (socket, remote) && previous.sockets[socket] == self.sockets[socket]
        };
        let kept_id =
            |socket, remote| previous_paths.iter().find(|path| is_kept(path, socket, remote)).map(|path| path.id);
        let ids: Vec<_> = paths.iter().map(|(_, socket, remote)| kept_id(*socket, *remote)).collect();
        let mut used_ids: Vec<u8> = previous_paths.iter().map(|path| path.id).collect();
        let next_id = self.next_id.entry(public_key.to_string()).or_default();
        let mut peer_paths = Vec::new();
        for ((path, socket, remote), id) in paths.into_iter().zip(ids) {
            let id = match id {
                Some(id) => id,
                None => allocate_id(next_id, &mut used_ids).ok_or_else(|| too_many_paths(path))?,
            };
            peer_paths.push(peer_path(path, id, socket, remote));
        }
        Ok(PeerConfig {
            public_key,
            name: peer.name.clone(),
            preshared_key: peer.preshared_key.clone(),
            allowed_ips: peer.allowed_ips.clone(),
            priority: peer.priority,
            paths: peer_paths,
            options: config.options.clone(),
        })
    }
}

/// Allocates the next id that is not used.
fn allocate_id(next_id: &mut u8, used_ids: &mut Vec<u8>) -> Option<u8> {
    let count = MAX_PATHS as u8;
    let id = (0..count).map(|step| (*next_id + step) % count).find(|id| !used_ids.contains(id))?;
    used_ids.push(id);
    *next_id = (id + 1) % count;
    Some(id)
}

fn too_many_paths(path: &ConfiguredPath) -> Error {
    path_error(path, io::Error::other(format!("at most {MAX_PATHS} paths to a peer, old and new ones together")))
}

fn peer_path(path: &ConfiguredPath, id: u8, socket: usize, remote: SocketAddr) -> PeerPathConfig {
    let ConfiguredPath { backup, secondary, classes, rate: max_rate, .. } = *path;
    // A path over its quota is a backup, and rarely probed.
    let metered = path.metered || path.over_quota;
    let mtu = device_mtu(path.interface.as_deref());
    let name = wire::frame::PathName::nearest_to(&path.name);
    let config = PathConfig { backup, metered, secondary, classes, max_rate, name, ..path_config(mtu, remote) };
    PeerPathConfig { id, name: path.name.clone(), socket, remote, weight: path.weight, path: config }
}

/// The MTU of a device; Ethernet's if the device is missing or not given.
fn device_mtu(device: Option<&str>) -> u16 {
    let text = device.and_then(|device| std::fs::read_to_string(format!("/sys/class/net/{device}/mtu")).ok());
    text.and_then(|text| text.trim().parse::<u32>().ok()).map_or(1500, |mtu| mtu.min(u16::MAX.into()) as u16)
}

/// The socket of a path, of the family of `remote`.
pub(super) fn socket_config(config: &TunnelConfig, path: &ConfiguredPath, remote: Option<SocketAddr>) -> SocketConfig {
    let unspecified = if remote.is_none_or(|remote| remote.is_ipv4()) {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    };
    SocketConfig {
        name: path.name.clone(),
        interface: path.interface.clone(),
        bind: SocketAddr::new(path.source.unwrap_or(unspecified), path.listen_port),
        offload: config.mpt().is_none_or(|mpt| mpt.offload),
        shares_port: false,
    }
}

/// An error of a path.
pub(super) fn path_error(path: &ConfiguredPath, cause: io::Error) -> Error {
    Error::System { action: format!("path {}", path.name), cause }
}

/// Whether the kernel has IPv6.
fn has_ipv6() -> bool {
    std::path::Path::new("/proc/net/if_inet6").exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const KEY: &str = "IJBHDNBVSD5zTHCc4pVZBK6u9XpGh7nnBDbCf7NfTVM=";
    const PEER: &str = "R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y=";

    /// The assignment for a file with these paths, each a device and further keys.
    fn assign(paths: &[(&str, &str)], previous: &PathAssignment) -> Result<PathAssignment, Error> {
        let mut text = format!("[interface]\naddress = '10.77.0.1/24'\nprivate-key = '{KEY}'\n");
        text += &format!("[[peer]]\npublic-key = '{PEER}'\nallowed-ips = '10.77.0.2/32'\nendpoint = '192.0.2.1'\n");
        for (device, keys) in paths {
            text += &format!("[[path]]\ninterface = '{device}'\n{keys}\n");
        }
        PathAssignment::new(
            &config::parse("x", &text, std::path::Path::new("rw0.toml")).expect("a good file"),
            previous,
            &BTreeSet::new(),
        )
    }

    fn ids(assignment: &PathAssignment) -> Vec<(&str, u8, usize)> {
        assignment.peers[0].paths.iter().map(|path| (path.name.as_str(), path.id, path.socket)).collect()
    }

    #[test]
    fn a_path_keeps_its_id_and_its_socket_while_others_come_and_go() {
        let first = assign(&[("a", ""), ("b", ""), ("c", "")], &PathAssignment::default()).unwrap();
        assert_eq!(ids(&first), [("a", 0, 0), ("b", 1, 1), ("c", 2, 2)]);
        let without_b = assign(&[("c", "backup = true"), ("a", "")], &first).unwrap();
        assert_eq!(ids(&without_b), [("c", 2, 2), ("a", 0, 0)]);
        assert!(without_b.sockets[1].is_none());
        let with_d = assign(&[("a", ""), ("d", ""), ("c", "")], &without_b).unwrap();
        assert_eq!(
            ids(&with_d),
            [("a", 0, 0), ("d", 3, 1), ("c", 2, 2)],
            "the socket's index is reused, path id 1 is not"
        );
    }

    #[test]
    fn a_path_with_another_endpoint_or_socket_gets_a_new_id() {
        let first = assign(&[("a", ""), ("b", "")], &PathAssignment::default()).unwrap();
        let redirected = assign(&[("a", "endpoint = '192.0.2.7'"), ("b", "")], &first).unwrap();
        assert_eq!(ids(&redirected), [("a", 2, 0), ("b", 1, 1)], "the same socket");
        let bound = assign(&[("a", "endpoint = '192.0.2.7'"), ("b", "listen-port = 7")], &redirected).unwrap();
        assert_eq!(ids(&bound), [("a", 2, 0), ("b", 3, 1)]);
        assert_ne!(bound.sockets[1], redirected.sockets[1]);
    }

    #[test]
    fn ids_are_reused_in_a_cycle_and_more_paths_than_ids_are_refused() {
        let mut assignment = assign(&[("a", ""), ("b", "")], &PathAssignment::default()).unwrap();
        for port in 1..=15 {
            assignment = assign(&[("a", ""), ("b", &format!("listen-port = {port}"))], &assignment).unwrap();
        }
        assert_eq!(ids(&assignment), [("a", 0, 0), ("b", 1, 1)], "2, 3, ..., 15, and 1 again: 0 is used");
        let names: Vec<String> = (0..17).map(|number| format!("p{number}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert!(assign(&many[..16], &PathAssignment::default()).is_ok());
        assert!(assign(&many, &PathAssignment::default()).unwrap_err().to_string().contains("at most 16 paths"));
    }
}
