//! Which sockets there are, and which number each path has: laid out at the start, and again for each changed configuration
//! with as much as possible left where it was.
//!
//! A path keeps its number (which both ends know it by) as long as its socket and the peer's address on it stay the same.
//! Otherwise it is a new path with another number: what was measured on the old one tells nothing of it, and what is still
//! on its way for the old one cannot be mistaken. Numbers go round before one is given again.

use super::setup::{carriage, device_mtu, socket, system};
use crate::config::{Config, Endpoint, Path, Peer};
use crate::control::Error;
use crate::plane::{PeerPath, PeerSetup, SocketSetup};
use machine::MAX_PATHS;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Sockets and paths of a tunnel in `ropewalk` mode.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// By index; a socket that is not needed any more leaves a gap.
    pub(super) sockets: Vec<Option<SocketSetup>>,
    /// In the order of the file.
    pub(super) peers: Vec<PeerSetup>,
    /// Where endpoints were found to be.
    found: BTreeMap<Called, SocketAddr>,
    /// The number after the latest one that was given to a path, by the peer's name.
    next: BTreeMap<String, u8>,
}

/// An endpoint, and the path's source, which decides on the family.
type Called = (Endpoint, Option<IpAddr>);

impl Layout {
    /// That of `config`. Names of endpoints that are new are looked up, which may take a while.
    ///
    /// # Errors
    /// An endpoint has no address, or there are too many paths.
    pub(super) fn of(config: &Config, before: &Self) -> Result<Self, Error> {
        let mut found = BTreeMap::new();
        let mut remotes = Vec::new();
        for path in &config.paths {
            let of_path = config.peers.iter().map(|peer| remote(path, peer, &before.found, &mut found));
            remotes.push(of_path.collect::<Result<Vec<_>, _>>()?);
        }
        let mut layout = Self { found, next: before.next.clone(), ..Self::default() };
        let places = layout.place_sockets(config, &remotes, before);
        for (at, peer) in config.peers.iter().enumerate() {
            let paths = config.paths.iter().zip(&remotes).zip(&places);
            // A peer that calls opens its paths itself.
            let paths = paths.filter_map(|((path, remotes), place)| Some((path, *place, remotes[at]?))).collect();
            let peer = layout.peer(config, peer, paths, before)?;
            layout.peers.push(peer);
        }
        Ok(layout)
    }

    /// The socket of each path. Who is called at no address in particular is called at both families': then there is a second
    /// one, which only peers' own paths use.
    fn place_sockets(&mut self, config: &Config, remotes: &[Vec<Option<SocketAddr>>], before: &Self) -> Vec<usize> {
        let remote = |at: usize| remotes[at].iter().flatten().next().copied();
        let mut wanted: Vec<SocketSetup> =
            config.paths.iter().enumerate().map(|(at, path)| socket(config, path, remote(at))).collect();
        let anywhere =
            config.paths.iter().enumerate().filter(|(at, path)| path.source.is_none() && remote(*at).is_none());
        let of_v6 = anywhere.map(|(_, path)| {
            let bind = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), path.listen_port);
            SocketSetup { bind, ..socket(config, path, None) }
        });
        wanted.extend(of_v6.filter(|_| has_ipv6()));
        self.sockets = vec![None; before.sockets.len()];
        let kept = wanted.iter().map(|setup| before.sockets.iter().position(|old| old.as_ref() == Some(setup)));
        let kept: Vec<_> = kept.collect();
        for (setup, place) in wanted.iter().zip(&kept) {
            place.iter().for_each(|at| self.sockets[*at] = Some(setup.clone()));
        }
        let places = wanted.into_iter().zip(kept).map(|(setup, place)| place.unwrap_or_else(|| self.place(setup)));
        places.collect()
    }

    fn place(&mut self, setup: SocketSetup) -> usize {
        let at = self.sockets.iter().position(Option::is_none).unwrap_or(self.sockets.len());
        self.sockets.resize(self.sockets.len().max(at + 1), None);
        self.sockets[at] = Some(setup);
        at
    }

    fn peer(
        &mut self,
        config: &Config,
        peer: &Peer,
        paths: Vec<(&Path, usize, SocketAddr)>,
        before: &Self,
    ) -> Result<PeerSetup, Error> {
        let none = || Error::System { what: "a peer's key".into(), cause: io::ErrorKind::NotFound.into() };
        let public = peer.public_key.ok_or_else(none)?;
        let old = before.peers.iter().find(|old| old.public == public).map_or(&[][..], |old| &old.paths);
        let is_kept = |old: &&PeerPath, socket: usize, remote: SocketAddr| {
            (old.socket, old.remote) == (socket, remote) && before.sockets[socket] == self.sockets[socket]
        };
        let kept = |socket, remote| old.iter().find(|old| is_kept(old, socket, remote)).map(|old| old.id);
        let ids: Vec<_> = paths.iter().map(|(_, socket, remote)| kept(*socket, *remote)).collect();
        let mut taken: Vec<u8> = old.iter().map(|old| old.id).collect();
        let next = self.next.entry(public.to_string()).or_default();
        let mut own = Vec::new();
        for ((path, socket, remote), id) in paths.into_iter().zip(ids) {
            let id = match id {
                Some(id) => id,
                None => free(next, &mut taken).ok_or_else(|| too_many(path))?,
            };
            own.push(PeerPath { id, socket, remote, ..properties(path) });
        }
        Ok(PeerSetup {
            name: public.to_string(),
            public,
            preshared: peer.preshared_key.clone(),
            allowed: peer.allowed_ips.iter().map(|network| (network.addr(), network.prefix_len())).collect(),
            paths: own,
            carriage: carriage(&config.carriage),
        })
    }
}

/// The next number that is not taken; it is, then.
fn free(next: &mut u8, taken: &mut Vec<u8>) -> Option<u8> {
    let most = MAX_PATHS as u8;
    let id = (0..most).map(|step| (*next + step) % most).find(|id| !taken.contains(id))?;
    taken.push(id);
    *next = (id + 1) % most;
    Some(id)
}

fn too_many(path: &Path) -> Error {
    system(path, io::Error::other(format!("at most {MAX_PATHS} paths to a peer, old and new ones together")))
}

fn properties(path: &Path) -> PeerPath {
    PeerPath {
        id: 0,
        name: path.name.clone(),
        socket: 0,
        remote: SocketAddr::from(([0; 4], 0)),
        backup: path.backup,
        metered: path.metered,
        weight: path.weight,
        rate: path.rate,
        mtu: device_mtu(path.interface.as_deref()),
    }
}

/// Where the peer is reached over `path`; none if it comes to us.
fn remote(
    path: &Path,
    peer: &Peer,
    known: &BTreeMap<Called, SocketAddr>,
    found: &mut BTreeMap<Called, SocketAddr>,
) -> Result<Option<SocketAddr>, Error> {
    let Some(endpoint) = path.endpoint.as_ref().or(peer.endpoint.as_ref()) else { return Ok(None) };
    let called = (endpoint.clone(), path.source);
    let address = match known.get(&called).or(found.get(&called)) {
        Some(address) => *address,
        None => endpoint.resolve(path.source).map_err(|error| system(path, error))?[0],
    };
    found.insert(called, address);
    Ok(Some(address))
}

/// The kernel speaks IPv6.
fn has_ipv6() -> bool {
    std::path::Path::new("/proc/net/if_inet6").exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const KEY: &str = "IJBHDNBVSD5zTHCc4pVZBK6u9XpGh7nnBDbCf7NfTVM=";
    const PEER: &str = "R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y=";

    /// The layout of a file with these paths, each a device and what else it says.
    fn layout(paths: &[(&str, &str)], before: &Layout) -> Result<Layout, Error> {
        let mut text = format!("[interface]\naddress = '10.77.0.1/24'\nprivate-key = '{KEY}'\n");
        text += &format!("[[peer]]\npublic-key = '{PEER}'\nallowed-ips = '10.77.0.2/32'\nendpoint = '192.0.2.1'\n");
        for (device, rest) in paths {
            text += &format!("[[path]]\ninterface = '{device}'\n{rest}\n");
        }
        Layout::of(&config::parse("x", &text, std::path::Path::new("rw0.toml")).expect("a good file"), before)
    }

    fn ids(layout: &Layout) -> Vec<(&str, u8, usize)> {
        layout.peers[0].paths.iter().map(|path| (path.name.as_str(), path.id, path.socket)).collect()
    }

    #[test]
    fn a_path_keeps_its_number_and_its_socket_whatever_comes_and_goes_beside_it() {
        let first = layout(&[("a", ""), ("b", ""), ("c", "")], &Layout::default()).unwrap();
        assert_eq!(ids(&first), [("a", 0, 0), ("b", 1, 1), ("c", 2, 2)]);
        let less = layout(&[("c", "backup = true"), ("a", "")], &first).unwrap();
        assert_eq!(ids(&less), [("c", 2, 2), ("a", 0, 0)]);
        assert!(less.sockets[1].is_none());
        let more = layout(&[("a", ""), ("d", ""), ("c", "")], &less).unwrap();
        assert_eq!(ids(&more), [("a", 0, 0), ("d", 3, 1), ("c", 2, 2)], "the socket's place is used again, 1 is not");
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_another_one() {
        let first = layout(&[("a", ""), ("b", "")], &Layout::default()).unwrap();
        let called = layout(&[("a", "endpoint = '192.0.2.7'"), ("b", "")], &first).unwrap();
        assert_eq!(ids(&called), [("a", 2, 0), ("b", 1, 1)], "by the same socket");
        let bound = layout(&[("a", "endpoint = '192.0.2.7'"), ("b", "listen-port = 7")], &called).unwrap();
        assert_eq!(ids(&bound), [("a", 2, 0), ("b", 3, 1)]);
        assert_ne!(bound.sockets[1], called.sockets[1]);
    }

    #[test]
    fn numbers_go_round_and_no_more_paths_are_taken_than_there_are_numbers() {
        let mut now = layout(&[("a", ""), ("b", "")], &Layout::default()).unwrap();
        for port in 1..=15 {
            now = layout(&[("a", ""), ("b", &format!("listen-port = {port}"))], &now).unwrap();
        }
        assert_eq!(ids(&now), [("a", 0, 0), ("b", 1, 1)], "2, 3, ..., 15, and 1 again: 0 is taken");
        let names: Vec<String> = (0..17).map(|number| format!("p{number}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert!(layout(&many[..16], &Layout::default()).is_ok());
        assert!(layout(&many, &Layout::default()).unwrap_err().to_string().contains("at most 16 paths"));
    }
}
