//! What arrives. Two steps, so that a driver which gets several datagrams in one buffer opens them all where they lie, and
//! then shares the buffer with their payloads.

use crate::host::Host;
use crate::peer::{Address, Event, Route};
use machine::{Arrival, Fragment, MAX_PATHS, Payload};
use seal::{Established, HEADER, PeerId, Refusal, TAG};
use std::ops::Range;
use units::{Instant, PathId};
use wire::frame::{Body, DataHeader, Frame, PathState};

/// The route number of an address that belongs to no path.
const STRANGER: u8 = u8::MAX;

/// A sealed datagram that was opened and is to be [taken](Host::take).
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// Who sent it.
    pub peer: PeerId,
    path: u8,
    number: u64,
    /// The peer's life that it belongs to.
    life: u64,
}

/// What an opened datagram says makes no sense, or belongs to a life of the peer that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense;

impl<P: Payload, A: Address> Host<P, A> {
    /// A datagram arrived by `route`. If it is sealed, it is opened where it lies, and to be [taken](Self::take) next. A
    /// handshake message is taken at once: an answer may wait in [`Host::poll_message`].
    ///
    /// # Errors
    /// Why it was dropped: it is not authentic, or not new. It is counted, and whoever sent it learns nothing.
    pub fn open(&mut self, now: Instant, route: &Route<A>, datagram: &mut [u8]) -> Result<Option<Opened>, Refusal> {
        if wire::gre::Sealed::parse(datagram).is_none() {
            return self.shake(now, route, datagram).map(|()| None);
        }
        let seal::Opened { peer: id, path, number, established } = self.peers.open(now, datagram)?;
        if let Some(established) = established {
            self.establish(established);
        }
        let life = self.by_id.get(&id).map_or(0, |(peer, _)| peer.life);
        Ok(Some(Opened { peer: id, path, number, life }))
    }

    fn shake(&mut self, now: Instant, route: &Route<A>, message: &[u8]) -> Result<(), Refusal> {
        self.octets.clear();
        route.remote.octets(&mut self.octets);
        let number = self.number_of(route);
        let taken = self.peers.receive(now, number, &self.octets, message)?;
        self.messages.extend(taken.reply.map(|reply| (route.clone(), reply)));
        if let Some(established) = taken.established {
            self.establish(established);
        }
        Ok(())
    }

    /// The path that leads there, of whichever peer: cookies are kept for each.
    fn number_of(&self, route: &Route<A>) -> u8 {
        let mut paths = self.by_id.values().flat_map(|(peer, _)| &peer.paths);
        paths.find(|(_, path)| path.route.leads_to(route)).map_or(STRANGER, |(number, _)| *number)
    }

    fn establish(&mut self, established: Established) {
        let Established { peer: id, fresh, .. } = established;
        let Some((peer, make)) = self.by_id.get_mut(&id) else { return };
        if fresh {
            peer.renew(make());
        }
        peer.ready = true;
        peer.endpoint.probe_now();
        self.events.push_back((id, Event::Established { fresh }));
    }

    /// Takes what a datagram says that was opened, whole with header and tag, and bore CE if `marked`. If it carries a
    /// piece, `wrap` makes a payload of that range of it, which begins with a virtio-net header if the flag says so.
    ///
    /// # Errors
    /// It makes no sense, and is dropped.
    pub fn take(
        &mut self,
        now: Instant,
        route: &Route<A>,
        marked: bool,
        opened: Opened,
        datagram: &[u8],
        wrap: impl FnOnce(Range<usize>, bool) -> P,
    ) -> Result<(), Nonsense> {
        let Opened { peer: id, path, number, life } = opened;
        let Some((peer, _)) = self.by_id.get_mut(&id) else { return Err(Nonsense) };
        if peer.life != life || usize::from(path) >= MAX_PATHS {
            return Err(Nonsense);
        }
        if peer.gone[usize::from(path)].is_some() {
            peer.on_gone(now, path);
            return Ok(());
        }
        let arrival = Arrival { path: PathId(u16::from(path)), packet_number: number, ce: marked };
        let end = datagram.len() - TAG;
        let body = Body::parse(&datagram[HEADER..end]).map_err(|_| Nonsense)?;
        // What was still on its way does not open a path again that the peer took away.
        if !peer.endpoint.has_path(arrival.path) && !opens(&body, path) {
            return Ok(());
        }
        if peer.learn(path, number, route, &*self.learned) {
            self.events.push_back((id, Event::Moved(arrival.path)));
        }
        match body {
            Body::Data(header, _) => {
                let DataHeader { stream, sequence, first, last, retransmission, offload } = header;
                let payload = wrap(HEADER + DataHeader::LEN..end, offload);
                peer.endpoint.receive_data(
                    now,
                    arrival,
                    Fragment { stream, sequence, first, last, retransmission, payload },
                );
            }
            Body::Control(frames) => {
                self.frames.clear();
                self.frames.extend(frames.map_while(Result::ok));
                peer.endpoint.receive_control(now, arrival, &self.frames);
            }
        }
        Ok(())
    }
}

/// Whether a datagram on a path can be the first one: it asks for a sign of life, or says how the path is used.
fn opens(body: &Body<'_>, path: u8) -> bool {
    let Body::Control(frames) = body else { return false };
    let of_path = |frame: &Frame| match frame {
        Frame::Ping { .. } => true,
        Frame::Path { path: it, state } => *it == path && *state != PathState::Removed,
        _ => false,
    };
    frames.clone().map_while(Result::ok).any(|frame| of_path(&frame))
}
