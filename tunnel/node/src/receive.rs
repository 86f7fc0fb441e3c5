//! Receiving, in two steps: the driver opens all datagrams of one buffer in place, and then shares the buffer with
//! their payloads.

use crate::node::Node;
use crate::peer::{Address, NodeEvent, Route};
use machine::{Arrival, Fragment, MAX_PATHS, Payload};
use seal::{DropReason, Established, HEADER_LEN, PeerId, TAG_LEN};
use std::ops::Range;
use units::{Instant, PathId};
use wire::frame::{Body, Bundle, DataHeader, Frame, PathState};

/// Path id of a handshake message by a route that no path uses.
pub(crate) const NO_PATH: u8 = u8::MAX;
/// Maximum number of handshake messages that wait to be sent. Beyond it replies are dropped: initiators try again.
const MAX_QUEUED_MESSAGES: usize = 1024;

/// An opened datagram, to be [processed](Node::process).
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// The sender.
    pub peer: PeerId,
    path: u8,
    packet_number: u64,
    /// The peer's restarts when it was opened.
    restarts: u64,
}

/// An opened datagram is malformed, or the peer has restarted since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl<P: Payload, A: Address> Node<P, A> {
    /// Opens a sealed datagram, which arrived by `route`, in place; it is to be [processed](Self::process) next. A
    /// handshake message is handled at once: a reply may wait in [`Node::poll_handshake`].
    ///
    /// # Errors
    /// The reason why the datagram was dropped. It is counted, and not replied to.
    pub fn open(&mut self, now: Instant, route: &Route<A>, datagram: &mut [u8]) -> Result<Option<Opened>, DropReason> {
        if wire::gre::Sealed::parse(datagram).is_none() {
            return self.on_handshake(now, route, datagram, false).map(|()| None);
        }
        let seal::Opened { peer: id, path, packet_number, established } = self.sessions.open(now, datagram)?;
        if let Some(established) = established {
            self.establish(now, established);
        }
        let restarts = self.peers.get(&id).map_or(0, |(peer, _)| peer.restarts);
        Ok(Some(Opened { peer: id, path, packet_number, restarts }))
    }

    /// Handles an initiation that another node of this host has admitted and passed on. A reply may wait in
    /// [`Node::poll_handshake`].
    ///
    /// # Errors
    /// The reason why it was dropped. It is counted, and not replied to.
    pub fn open_admitted(&mut self, now: Instant, route: &Route<A>, initiation: &[u8]) -> Result<(), DropReason> {
        self.on_handshake(now, route, initiation, true)
    }

    fn on_handshake(
        &mut self,
        now: Instant,
        route: &Route<A>,
        message: &[u8],
        is_admitted: bool,
    ) -> Result<(), DropReason> {
        self.octets.clear();
        route.remote.octets(&mut self.octets);
        let peers = &self.peers;
        let path_id = |id| peers.get(&id).map_or(NO_PATH, |(peer, _)| peer.route_path_id(route).unwrap_or(NO_PATH));
        let outcome = if is_admitted {
            self.sessions.receive_admitted(now, &self.octets, message)?
        } else {
            self.sessions.receive(now, path_id, &self.octets, message)?
        };
        self.pass_to = outcome.pass_to;
        if self.messages.len() < MAX_QUEUED_MESSAGES {
            self.messages.extend(outcome.reply.map(|reply| (route.clone(), reply)));
        }
        if let Some(established) = outcome.established {
            self.establish(now, established);
        }
        Ok(())
    }

    fn establish(&mut self, now: Instant, established: Established) {
        let Established { peer: id, numbers_reset, capabilities, .. } = established;
        let Some((peer, new_config)) = self.peers.get_mut(&id) else { return };
        self.schedule.touch(id);
        if numbers_reset {
            peer.restart(new_config());
            peer.validate_configured(now);
        }
        peer.has_session = true;
        peer.endpoint.set_bundling(capabilities & seal::TAKES_BUNDLES != 0);
        peer.endpoint.ping_now();
        self.events.push_back((id, NodeEvent::Established { numbers_reset }));
    }

    /// Processes an opened datagram, which is passed with header and tag; `ce` if it was marked CE. `make_payload`
    /// makes the payload of a fragment from its range in the datagram; it begins with a virtio_net_hdr if the flag is
    /// set.
    ///
    /// # Errors
    /// The datagram is malformed, and dropped.
    pub fn process(
        &mut self,
        now: Instant,
        route: &Route<A>,
        ce: bool,
        opened: Opened,
        datagram: &[u8],
        make_payload: impl Fn(Range<usize>, bool) -> P,
    ) -> Result<(), Malformed> {
        let Opened { peer: id, path, packet_number, restarts } = opened;
        let Some((peer, _)) = self.peers.get_mut(&id) else { return Err(Malformed) };
        self.schedule.touch(id);
        if peer.restarts != restarts || usize::from(path) >= MAX_PATHS {
            return Err(Malformed);
        }
        if peer.removals[usize::from(path)].is_some() {
            peer.on_removed_path(now, path);
            return Ok(());
        }
        let arrival = Arrival { path: PathId(u16::from(path)), packet_number, ce };
        let tag_start = datagram.len() - TAG_LEN;
        let body = Body::parse(&datagram[HEADER_LEN..tag_start]).map_err(|_| Malformed)?;
        // A datagram in flight does not reopen a path that the peer has removed.
        if !peer.endpoint.has_path(arrival.path) && !opens_path(&body, path) {
            return Ok(());
        }
        if peer.on_packet(now, (path, packet_number), route, datagram.len(), &*self.learned_path_config) {
            self.events.push_back((id, NodeEvent::PathOpened(arrival.path)));
        }
        match body {
            Body::Data(header, _) => {
                let payload = make_payload(HEADER_LEN + DataHeader::LEN..tag_start, header.offload);
                peer.endpoint.receive_data(now, arrival, fragment(header, payload));
            }
            Body::Bundle(Bundle { frames, entries }) => {
                self.frames.clear();
                self.frames.extend(frames.map_while(Result::ok));
                let fragments = entries.map_while(Result::ok).map(|(header, Range { start, end })| {
                    fragment(header, make_payload(HEADER_LEN + start..HEADER_LEN + end, header.offload))
                });
                peer.endpoint.receive_bundle(now, arrival, &self.frames, fragments);
            }
            Body::Control(frames) => {
                self.frames.clear();
                self.frames.extend(frames.map_while(Result::ok));
                peer.endpoint.receive_control(now, arrival, &self.frames);
            }
        }
        self.migrate(now, id);
        Ok(())
    }
}

fn fragment<P>(header: DataHeader, payload: P) -> Fragment<P> {
    let DataHeader { stream, sequence, first, last, retransmission, offload: _ } = header;
    Fragment { stream, sequence, first, last, retransmission, payload }
}

/// Whether a datagram may open a path: it has a ping, or a path frame that does not remove the path.
fn opens_path(body: &Body<'_>, path: u8) -> bool {
    let Body::Control(frames) = body else { return false };
    let is_opening = |frame: &Frame| match frame {
        Frame::Ping { .. } => true,
        Frame::Path { path: frame_path, state } => *frame_path == path && *state != PathState::Removed,
        _ => false,
    };
    frames.clone().map_while(Result::ok).any(|frame| is_opening(&frame))
}
