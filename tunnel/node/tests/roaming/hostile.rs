//! A hostile peer of a server on the test network: it sends whatever a test likes, from any address.

use crate::network::{Address, DELAY, Datagram, Host, Network, private_key};
use crate::{CLIENT, SERVER};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use testnet::options;
use units::Span;
use wire::frame::{Body, Frame};

/// A datagram of the server that the hostile peer, or its victim, has got.
pub(crate) struct Received {
    pub(crate) destination: Address,
    pub(crate) bytes: usize,
    pub(crate) path: u8,
    pub(crate) packet_number: u64,
    /// Its frames; `None` for data.
    pub(crate) frames: Option<Vec<Frame>>,
}

/// A hostile peer of a server, which is host 1 of the network.
pub(crate) struct HostilePeer {
    peer: testnet::HostilePeer,
    pub(crate) network: Network,
    inbox: Rc<RefCell<VecDeque<Datagram>>>,
    /// Bytes that it has sent, UDP payload.
    pub(crate) sent_bytes: usize,
}

impl HostilePeer {
    /// A hostile peer that has shaken hands, from [`CLIENT`].
    pub(crate) fn connect() -> Self {
        let options = options("cubic", "minrtt");
        let hosts = [Host::new(0, 1, Vec::new(), &options), Host::new(1, 2, vec![SERVER], &options)];
        let mut network = Network::new(hosts);
        let inbox = Rc::new(RefCell::new(VecDeque::new()));
        let sent = inbox.clone();
        network.attack(move |_, datagram| {
            sent.borrow_mut().push_back(datagram);
            Vec::new()
        });
        let mut peer = testnet::HostilePeer::new(private_key(0), private_key(1).public_key());
        let initiation = peer.initiation(network.now(), 1 << 60).expect("one is due");
        let bytes = initiation.as_bytes().to_vec();
        network.inject(DELAY, Datagram { source: CLIENT, destination: SERVER, bytes });
        let mut peer = Self { peer, network, inbox, sent_bytes: 0 };
        peer.run_for(DELAY);
        assert!(peer.peer.has_session());
        peer
    }

    /// Sends a datagram with this body from `source`.
    pub(crate) fn send(&mut self, source: Address, path: u8, body: &[u8]) {
        let bytes = self.peer.seal(self.network.now(), path, body).expect("there is a session");
        self.sent_bytes += bytes.len();
        self.network.inject(DELAY, Datagram { source, destination: SERVER, bytes });
    }

    pub(crate) fn skip_packet_numbers(&mut self, path: u8, count: u64) {
        self.peer.skip_packet_numbers(path, count);
    }

    pub(crate) fn send_frames(&mut self, source: Address, path: u8, frames: &[Frame]) {
        let mut body = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut body));
        self.send(source, path, &body);
    }

    /// Runs the server for `span`; returns what it sent.
    pub(crate) fn run_for(&mut self, span: Span) -> Vec<Received> {
        self.network.run_for(span);
        let datagrams: Vec<Datagram> = self.inbox.borrow_mut().drain(..).collect();
        datagrams.into_iter().filter_map(|datagram| self.open(datagram)).collect()
    }

    fn open(&mut self, mut datagram: Datagram) -> Option<Received> {
        let (opened, body) = self.peer.receive(self.network.now(), &mut datagram.bytes)?;
        let frames = match Body::parse(&body).expect("the server's are well-formed") {
            Body::Data(..) | Body::Bundle(_) => None,
            Body::Control(frames) => Some(frames.map_while(Result::ok).collect()),
        };
        let (destination, path, packet_number) = (datagram.destination, opened.path, opened.packet_number);
        Some(Received { destination, bytes: datagram.bytes.len(), path, packet_number, frames })
    }

    /// Answers the pings that were sent to `address` from there.
    pub(crate) fn answer(&mut self, address: Address, received: &[Received]) {
        for datagram in received.iter().filter(|datagram| datagram.destination == address) {
            for frame in datagram.frames.iter().flatten() {
                if let Frame::Ping { token } = frame {
                    self.send_frames(address, datagram.path, &[Frame::Pong { token: *token }]);
                }
            }
        }
    }
}
