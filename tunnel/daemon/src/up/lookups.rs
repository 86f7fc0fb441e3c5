//! The addresses of endpoints: names are resolved once, and again when that is asked for.

use crate::config::{ConfiguredPath, ConfiguredPeer, PeerEndpoint};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// An endpoint, and the source address of the path, which selects the family.
pub(super) type Lookup = (PeerEndpoint, Option<IpAddr>);

/// Which names are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolve {
    /// Those without an address.
    New,
    /// All of them; one keeps its address if that is among the answers, or if there is no answer.
    All,
}

/// The lookups of one configuration.
pub(super) struct Lookups<'a> {
    previous: &'a BTreeMap<Lookup, SocketAddr>,
    resolve: Resolve,
    pub(super) resolved: BTreeMap<Lookup, SocketAddr>,
    /// With the resolver's error.
    pub(super) unresolved: BTreeMap<Lookup, String>,
}

/// What is looked up for a path to a peer; `None` if this end waits for the peer.
pub(super) fn lookup(path: &ConfiguredPath, peer: &ConfiguredPeer) -> Option<Lookup> {
    let endpoint = path.endpoint.as_ref().or(peer.endpoint.as_ref())?;
    Some((endpoint.clone(), path.source))
}

impl<'a> Lookups<'a> {
    pub(super) fn new(previous: &'a BTreeMap<Lookup, SocketAddr>, resolve: Resolve) -> Self {
        Self { previous, resolve, resolved: BTreeMap::new(), unresolved: BTreeMap::new() }
    }

    /// The address of the peer on `path`; `None` if this end waits for the peer, or if the name has no address.
    pub(super) fn peer_address(&mut self, path: &ConfiguredPath, peer: &ConfiguredPeer) -> Option<SocketAddr> {
        let lookup = lookup(path, peer)?;
        if let Some(address) = self.resolved.get(&lookup) {
            return Some(*address);
        }
        if self.unresolved.contains_key(&lookup) {
            return None;
        }
        let previous = self.previous.get(&lookup).copied();
        let is_settled = self.resolve == Resolve::New || lookup.0.address().is_some();
        if let Some(address) = previous.filter(|_| is_settled) {
            self.resolved.insert(lookup, address);
            return Some(address);
        }
        let answer = lookup.0.resolve(path.source);
        let address = match &answer {
            Ok(addresses) => previous.filter(|address| addresses.contains(address)).or(addresses.first().copied()),
            Err(_) => previous,
        };
        match (address, answer) {
            (Some(address), _) => self.resolved.insert(lookup, address).is_none().then_some(address),
            (None, answer) => {
                let error = answer.err().map_or_else(|| "no address".into(), |error| error.to_string());
                self.unresolved.insert(lookup, error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn a_name_without_an_address_leaves_its_path_out_and_a_settled_address_is_kept() {
        let text = "[interface]\naddress = '10.77.0.1/24'\nprivate-key = 'IJBHDNBVSD5zTHCc4pVZBK6u9XpGh7nnBDbCf7NfTVM='\n\
                    [[peer]]\npublic-key = 'R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y='\nallowed-ips = '10.77.0.2/32'\n\
                    endpoint = 'no-such-host.invalid'\n[[path]]\ninterface = 'a'\n";
        let config = config::parse("x", text, std::path::Path::new("rw0.toml")).expect("a good file");
        let (path, peer) = (&config.paths[0], &config.peers[0]);
        let mut lookups = Lookups::new(const { &BTreeMap::new() }, Resolve::New);
        assert_eq!(lookups.peer_address(path, peer), None);
        assert_eq!(lookups.unresolved.len(), 1, "{:?}", lookups.resolved);
        let address: SocketAddr = "192.0.2.1:4754".parse().unwrap();
        let previous = BTreeMap::from([(lookup(path, peer).unwrap(), address)]);
        for resolve in [Resolve::New, Resolve::All] {
            let mut lookups = Lookups::new(&previous, resolve);
            assert_eq!(lookups.peer_address(path, peer), Some(address), "{resolve:?}: no answer, as RFC 6761 has it");
        }
    }
}
