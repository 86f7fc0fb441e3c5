//! An attacker's packet socket: captures all frames of a host's device, and sends frames in that host's name.

use crate::tunnel_pair::{PORT, TunnelPair};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, send, socket};
use std::os::fd::{AsRawFd, OwnedFd};

/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
/// Offset of the UDP checksum.
const CHECKSUM: usize = HEADERS - 2;
/// First bytes of a sealed datagram, and of a handshake message: GRE's flags and protocol type.
const SEALED: [u8; 4] = [0x30, 0, 0x88, 0xb5];
const HANDSHAKE: [u8; 4] = [0, 0, 0x88, 0xb6];
/// Bytes of the outer header of a sealed datagram.
const SEALED_HEADER: usize = 12;

/// A datagram of one of the daemons, with all its headers.
#[derive(Clone, Debug)]
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    /// UDP over IPv4 to the tunnel at `remote`.
    fn read(bytes: &[u8], remote: [u8; 4]) -> Option<Self> {
        let is_tunnel = bytes.len() > HEADERS + SEALED_HEADER
            && bytes[12..14] == [0x08, 0]
            && bytes[23] == 17
            && bytes[30..34] == remote
            && bytes[36..38] == PORT.to_be_bytes();
        is_tunnel.then(|| Self(bytes.to_vec()))
    }

    /// The UDP payload.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.0[HEADERS..]
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.payload().starts_with(&SEALED)
    }

    pub(crate) fn is_initiation(&self) -> bool {
        self.payload().starts_with(&HANDSHAKE) && self.payload()[HANDSHAKE.len()] == 1
    }

    /// The frame with a later packet number (a replay is dropped before its tag is checked) and with bit `bit` of the
    /// sealed part flipped. The UDP checksum does not cover it.
    pub(crate) fn forged(&self, bit: usize) -> Self {
        let mut bytes = self.0.clone();
        let number = &mut bytes[HEADERS + SEALED_HEADER - 4..];
        let later_number = u32::from_be_bytes([number[0], number[1], number[2], number[3]]).wrapping_add(1 << 20);
        number[..4].copy_from_slice(&later_number.to_be_bytes());
        let sealed = bytes.len() - HEADERS - SEALED_HEADER;
        bytes[HEADERS + SEALED_HEADER + bit / 8 % sealed] ^= 1 << (bit % 8);
        // No checksum, as IPv4 allows (RFC 768).
        bytes[CHECKSUM..HEADERS].fill(0);
        Self(bytes)
    }
}

/// A packet socket on a host's device, for the frames to the other host.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: OwnedFd,
    remote: [u8; 4],
}

impl PacketSocket {
    pub(crate) fn open(pair: &TunnelPair, host: usize, link: usize) -> Self {
        let device = pair.testbed.device(link);
        let open = || {
            let packet_socket =
                socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::EthAll)?;
            let mut addresses = getifaddrs()?.filter(|address| address.interface_name == device);
            let link = addresses
                .find_map(|address| address.address.as_ref().and_then(|address| address.as_link_addr().copied()));
            bind(packet_socket.as_raw_fd(), &link.ok_or("no such device")?)?;
            Ok(packet_socket)
        };
        Self { socket: pair.testbed.within(host, open).unwrap(), remote: pair.testbed.v4(link, 1 - host).octets() }
    }

    /// The daemon's datagrams since the last call.
    pub(crate) fn captured(&self) -> Vec<Frame> {
        let mut buffer = [0; 1 << 16];
        let frames = std::iter::from_fn(|| {
            recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())
                .ok()
                .map(|len| Frame::read(&buffer[..len], self.remote))
        });
        frames.flatten().collect()
    }

    /// Sends a frame as if the host had sent it.
    pub(crate) fn send(&self, frame: &Frame) {
        assert_eq!(send(self.socket.as_raw_fd(), &frame.0, MsgFlags::empty()), Ok(frame.0.len()));
    }
}
