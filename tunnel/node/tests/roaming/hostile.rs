//! A hostile peer: it shakes hands as it should, and then sends whatever a test likes, from any address.

use crate::network::{Address, DELAY, Datagram, Host, Network, private_key};
use crate::{CLIENT, SERVER};
use seal::{HEADER_LEN, HandshakeConfig, PeerId, SEAL_OVERHEAD, SealDevice, TAG_LEN};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use testnet::options;
use units::{Instant, RngStream, Span};
use wire::frame::{Body, Frame};

/// A datagram of the server that the hostile peer, or its victim, has got.
pub(crate) struct Received {
    pub(crate) destination: Address,
    pub(crate) bytes: usize,
    /// Its frames; `None` for data.
    pub(crate) frames: Option<Vec<Frame>>,
}

/// A hostile peer of a server, which is host 1 of the network.
pub(crate) struct HostilePeer {
    device: SealDevice,
    server: PeerId,
    next_packet_numbers: [u64; 16],
    pub(crate) network: Network,
    inbox: Rc<RefCell<VecDeque<Datagram>>>,
}

impl HostilePeer {
    /// A hostile peer that has shaken hands, from [`CLIENT`].
    pub(crate) fn connect() -> Self {
        let options = options("cubic", "minrtt");
        let hosts = [Host::new(0, 1, Vec::new(), &options), Host::new(1, 2, vec![SERVER], &options)];
        let mut network = Network::new(hosts);
        let inbox = Rc::new(RefCell::new(VecDeque::new()));
        let sent = inbox.clone();
        network.attack = Box::new(move |_, datagram| {
            sent.borrow_mut().push_back(datagram);
            Vec::new()
        });
        let mut rng = RngStream::named(7, "hostile");
        let entropy = move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
        let mut device = SealDevice::new(HandshakeConfig::new(private_key(0)), Box::new(entropy));
        let server = device.add(private_key(1).public_key(), None).expect("a good key");
        device.start_initiating(Instant::ZERO, server);
        device.initiation_due(Instant::ZERO, 1 << 60).expect("it is to initiate");
        let initiation = device.initiation(Instant::ZERO, server, 0).expect("it is due");
        let mut peer = Self { device, server, next_packet_numbers: [0; 16], network, inbox };
        peer.send_bytes(CLIENT, initiation.as_bytes().to_vec());
        peer.network.run_for(Span::from_millis(20));
        let response = peer.inbox.borrow_mut().pop_front().expect("a peer gets a response");
        peer.device.receive(peer.network.now, |_| 0, &[0; 6], &response.bytes).expect("an authentic response");
        peer
    }

    fn send_bytes(&mut self, source: Address, bytes: Vec<u8>) {
        self.network.inject(DELAY, Datagram { source, destination: SERVER, bytes });
    }

    /// Sends a datagram with this body from `source`; returns its size, bytes.
    pub(crate) fn send(&mut self, source: Address, path: u8, packet_number: u64, body: &[u8]) -> usize {
        let mut bytes = vec![0; body.len() + SEAL_OVERHEAD];
        bytes[HEADER_LEN..][..body.len()].copy_from_slice(body);
        let sealed = self.device.seal(self.network.now, self.server, path, packet_number, &mut bytes);
        sealed.expect("there is a session, and the number is new");
        self.next_packet_numbers[usize::from(path)] = packet_number + 1;
        let size = bytes.len();
        self.send_bytes(source, bytes);
        size
    }

    /// Sends these frames with the next packet number of the path; returns the datagram's size, bytes.
    pub(crate) fn send_frames(&mut self, source: Address, path: u8, frames: &[Frame]) -> usize {
        let mut body = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut body));
        self.send(source, path, self.next_packet_numbers[usize::from(path)], &body)
    }

    /// Runs the server for `span`; returns what it sent.
    pub(crate) fn run_for(&mut self, span: Span) -> Vec<Received> {
        self.network.run_for(span);
        let datagrams: Vec<Datagram> = self.inbox.borrow_mut().drain(..).collect();
        datagrams.into_iter().filter_map(|datagram| self.open(datagram)).collect()
    }

    fn open(&mut self, mut datagram: Datagram) -> Option<Received> {
        self.device.open(self.network.now, &mut datagram.bytes).ok()?;
        let bytes = datagram.bytes.len();
        let frames =
            match Body::parse(&datagram.bytes[HEADER_LEN..bytes - TAG_LEN]).expect("the server's are well-formed") {
                Body::Data(..) => None,
                Body::Control(frames) => Some(frames.map_while(Result::ok).collect()),
            };
        Some(Received { destination: datagram.destination, bytes, frames })
    }
}
