//! Handing over between data threads: the peers and networks of each, and the packets and datagrams that belong to
//! another one.

use super::RopewalkEngine;
use super::peer::EnginePeer;
use crate::data_plane::allowed_ips::AllowedIps;
use crate::data_plane::config::OtherPeerConfig;
use crate::data_plane::event_loop::{Engine, Io};
use crate::data_plane::socket::ReceivedDatagrams;
use crate::data_plane::threads::HandOver;
use ipnet::IpNet;
use node::PeerGroup;
use seal::PeerId;
use std::collections::BTreeMap;
use units::Instant;

/// The owner of an inner network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A peer of this thread.
    Peer(PeerId),
    /// A group of peers, several servers, by its index.
    Group(usize),
    /// A peer of another thread.
    Thread(u8),
}

impl Owner {
    /// The peer of this thread that gets the packets.
    pub(super) fn peer(self, groups: &[PeerGroup]) -> Option<PeerId> {
        match self {
            Self::Peer(id) => Some(id),
            Self::Group(index) => groups.get(index).map(PeerGroup::active),
            Self::Thread(_) => None,
        }
    }

    /// Whether packets are accepted from a peer.
    pub(super) fn is(self, id: PeerId, groups: &[PeerGroup]) -> bool {
        match self {
            Self::Peer(peer) => peer == id,
            Self::Group(index) => groups.get(index).is_some_and(|group| group.contains(id)),
            Self::Thread(_) => false,
        }
    }
}

/// The groups of peers with the same networks. The active peer of a previous group stays.
pub(super) fn groups(peers: &BTreeMap<PeerId, EnginePeer>, previous: &[PeerGroup]) -> Vec<PeerGroup> {
    let mut by_networks: BTreeMap<Vec<IpNet>, Vec<(PeerId, u32)>> = BTreeMap::new();
    for (id, peer) in peers {
        let Some(priority) = peer.config.priority else { continue };
        let mut networks = peer.config.allowed_ips.clone();
        networks.sort_unstable();
        by_networks.entry(networks).or_default().push((*id, priority));
    }
    let group = |members: Vec<(PeerId, u32)>| {
        let earlier = previous.iter().find(|group| members.iter().any(|(id, _)| group.contains(*id)));
        PeerGroup::new(members, earlier)
    };
    by_networks.into_values().filter(|members| members.len() > 1).map(group).collect()
}

/// The allowed IPs of all peers, including those of other threads, so that no peer can use their addresses by a shorter
/// prefix.
pub(super) fn allowed_ips(
    peers: &BTreeMap<PeerId, EnginePeer>,
    groups: &[PeerGroup],
    others: &[OtherPeerConfig],
) -> AllowedIps<Owner> {
    let owner = |id: PeerId| groups.iter().position(|group| group.contains(id)).map_or(Owner::Peer(id), Owner::Group);
    let own = peers.iter().flat_map(|(id, peer)| with_owner(&peer.config.allowed_ips, owner(*id)));
    let others = others.iter().flat_map(|peer| with_owner(&peer.allowed_ips, Owner::Thread(peer.thread)));
    AllowedIps::new(own.chain(others))
}

fn with_owner(networks: &[IpNet], owner: Owner) -> impl Iterator<Item = (IpNet, Owner)> {
    networks.iter().map(move |network| (*network, owner))
}

impl RopewalkEngine {
    /// Hands over a datagram whose session belongs to another thread, or an initiation, which the first thread admits.
    /// False if it belongs to this thread.
    pub(super) fn hand_over_datagram(&mut self, socket: usize, received: &ReceivedDatagrams, bytes: &[u8]) -> bool {
        let Some(others) = &mut self.others else { return false };
        let owner = seal::owner(bytes).unwrap_or(0);
        if owner == others.own || !others.contains(owner) {
            return false;
        }
        others.hand_over(owner, datagram(socket, received, bytes, false));
        true
    }

    /// Passes the initiation that the node has just admitted to the thread of its sender, if that is not this one.
    pub(super) fn pass_initiation(&mut self, socket: usize, received: &ReceivedDatagrams, bytes: &[u8]) {
        if let (Some(thread), Some(others)) = (self.node.take_pass_to(), &mut self.others) {
            others.hand_over(thread, datagram(socket, received, bytes, true));
        }
    }

    /// Handles an item that another thread has handed over.
    pub(super) fn handle_handed_over(&mut self, io: &mut Io, now: Instant, item: HandOver) {
        match item {
            HandOver::Packet(bytes) => {
                io.read_buffer[..bytes.len()].copy_from_slice(&bytes);
                self.offer_device_packet(io, now, bytes.len(), false);
            }
            // A reload may have removed the socket.
            HandOver::Datagram { socket, .. } if socket >= io.sockets.len() => {}
            HandOver::Datagram { socket, address, bytes, is_admitted: true, .. } => {
                let route = node::Route { socket: socket as u16, remote: address };
                if let Err(reason) = self.node.open_admitted(now, &route, &bytes) {
                    self.refuse(io, now, socket, reason);
                }
            }
            HandOver::Datagram { socket, ecn, address, bytes, is_admitted: false } => {
                io.read_buffer[..bytes.len()].copy_from_slice(&bytes);
                let received = ReceivedDatagrams { len: bytes.len(), segment_size: bytes.len(), ecn, address };
                self.on_datagrams(io, now, socket, &received);
            }
        }
    }
}

fn datagram(socket: usize, received: &ReceivedDatagrams, bytes: &[u8], is_admitted: bool) -> HandOver {
    HandOver::Datagram { socket, ecn: received.ecn, address: received.address, bytes: bytes.to_vec(), is_admitted }
}
