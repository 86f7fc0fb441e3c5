//! The addresses of endpoints. Names are resolved once, and again on request; a path whose peer is silent moves on to
//! the next address.

use crate::config::{ConfiguredPath, ConfiguredPeer, PeerEndpoint};
use crate::control_plane::{SilentPath, reached_by};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// An endpoint on a path. The source address selects the family; each path, identified by its name, goes through the
/// addresses independently.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lookup {
    pub(super) endpoint: PeerEndpoint,
    source: Option<IpAddr>,
    pub(super) path: String,
}

/// The lookups of one configuration.
pub(super) struct Lookups<'a> {
    previous: &'a BTreeMap<Lookup, SocketAddr>,
    silent: &'a BTreeSet<SilentPath>,
    /// The resolved addresses, or the resolver's error.
    answers: BTreeMap<(PeerEndpoint, Option<IpAddr>), Result<Vec<SocketAddr>, String>>,
    pub(super) resolved: BTreeMap<Lookup, SocketAddr>,
    /// The unresolved lookups, with the resolver's error.
    pub(super) unresolved: BTreeMap<Lookup, String>,
}

/// The lookup for a path to a peer; `None` if this end waits for the peer.
pub(super) fn lookup(path: &ConfiguredPath, peer: &ConfiguredPeer) -> Option<Lookup> {
    let endpoint = path.endpoint.as_ref().or(peer.endpoint.as_ref())?.clone();
    Some(Lookup { endpoint, source: path.source, path: path.name.clone() })
}

impl<'a> Lookups<'a> {
    /// A path keeps the address that it has in `previous`, unless it is one of `silent` and there is another.
    pub(super) fn new(previous: &'a BTreeMap<Lookup, SocketAddr>, silent: &'a BTreeSet<SilentPath>) -> Self {
        let (answers, resolved, unresolved) = Default::default();
        Self { previous, silent, answers, resolved, unresolved }
    }

    /// The address of the peer on `path`; `None` if this end waits for the peer, or if the name has no address.
    pub(super) fn peer_address(&mut self, path: &ConfiguredPath, peer: &ConfiguredPeer) -> Option<SocketAddr> {
        let lookup = lookup(path, peer)?;
        let previous = self.previous.get(&lookup).copied();
        let key = peer.public_key.map(|key| key.to_string()).unwrap_or_default();
        let is_silent = self.silent.contains(&(key, path.name.clone()));
        let address = match previous.filter(|_| !is_silent) {
            Some(address) => Ok(address),
            None => {
                let answers = self.resolve(&lookup);
                answers.map(|answers| next_address(&reached_by(path, answers), previous))
            }
        };
        match (address, previous) {
            (Ok(address), _) | (Err(_), Some(address)) => {
                self.resolved.insert(lookup, address);
                Some(address)
            }
            (Err(error), None) => {
                self.unresolved.insert(lookup, error);
                None
            }
        }
    }

    /// The addresses of an endpoint, which are looked up once.
    fn resolve(&mut self, lookup: &Lookup) -> Result<Vec<SocketAddr>, String> {
        let resolve = || lookup.endpoint.resolve(lookup.source).map_err(|error| error.to_string());
        self.answers.entry((lookup.endpoint.clone(), lookup.source)).or_insert_with(resolve).clone()
    }
}

/// The address after `previous`. The first one follows the last one, and any `previous` that is not in the list.
fn next_address(addresses: &[SocketAddr], previous: Option<SocketAddr>) -> SocketAddr {
    let index = addresses.iter().position(|address| Some(*address) == previous).map_or(0, |index| index + 1);
    addresses[index % addresses.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    /// Up to the device of the first path.
    const CONFIGURATION: &str = "[interface]\naddress = '10.77.0.1/24'\nprivate-key = 'IJBHDNBVSD5zTHCc4pVZBK6u9XpGh7nnBDbCf7NfTVM='\n\
         [[peer]]\npublic-key = 'R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y='\nallowed-ips = '10.77.0.2/32'\n\
         endpoint = 'no-such-host.invalid'\n[[path]]\ninterface = ";

    #[test]
    fn a_name_without_an_address_leaves_its_path_out_and_a_settled_address_is_kept() {
        let text = &format!("{CONFIGURATION}'a'\n");
        let config = config::parse("x", text, std::path::Path::new("rw0.toml")).expect("a good file");
        let (path, peer) = (&config.paths[0], &config.peers[0]);
        let (none, nobody) = (BTreeMap::new(), BTreeSet::new());
        let mut lookups = Lookups::new(&none, &nobody);
        assert_eq!(lookups.peer_address(path, peer), None);
        assert_eq!(lookups.unresolved.len(), 1, "{:?}", lookups.resolved);
        let address: SocketAddr = "192.0.2.1:4754".parse().unwrap();
        let previous = BTreeMap::from([(lookup(path, peer).unwrap(), address)]);
        for silent in [BTreeSet::new(), silent(peer, path)] {
            let mut lookups = Lookups::new(&previous, &silent);
            assert_eq!(lookups.peer_address(path, peer), Some(address), "{silent:?}: no answer, as RFC 6761 has it");
        }
    }

    fn silent(peer: &ConfiguredPeer, path: &ConfiguredPath) -> BTreeSet<SilentPath> {
        [(peer.public_key.unwrap().to_string(), path.name.clone())].into()
    }

    #[test]
    fn a_silent_path_goes_through_the_addresses_of_its_family_and_others_stay() {
        let text = format!("{CONFIGURATION}'a'\nsource = '192.0.2.9'\n[[path]]\ninterface = 'b'\n")
            .replace("'no-such-host.invalid'", "['192.0.2.1', '2001:db8::1', '192.0.2.2:7']");
        let config = config::parse("x", &text, std::path::Path::new("rw0.toml")).expect("a good file");
        let (a, b, peer) = (&config.paths[0], &config.paths[1], &config.peers[0]);
        let silent = silent(peer, a);
        let mut addresses = Vec::new();
        let mut previous = BTreeMap::new();
        for silent in [&BTreeSet::new(), &BTreeSet::new(), &silent, &silent] {
            let mut lookups = Lookups::new(&previous, silent);
            addresses.push([a, b].map(|path| lookups.peer_address(path, peer).unwrap().to_string()));
            previous = lookups.resolved;
        }
        let [first, second] = ["192.0.2.1:4754", "192.0.2.2:7"];
        assert_eq!(addresses, [[first, first], [first, first], [second, first], [first, first]]);
    }
}
