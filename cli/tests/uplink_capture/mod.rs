//! What leaves an uplink, frame by frame: for tests of exclusive tunnels.

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// First bytes of a sealed datagram of the tunnel, and of a handshake message: GRE's flags and protocol type.
const TUNNEL: [[u8; 4]; 2] = [[0x30, 0, 0x88, 0xb5], [0, 0, 0x88, 0xb6]];
/// Frames that a device of this host sends itself (packet(7)).
const PACKET_OUTGOING: u8 = 4;
/// How long a receiving thread waits for a frame before it looks whether it is still needed.
const WAIT: TimeVal = TimeVal::new(0, 100_000);

/// Captures, at the far end of an uplink's cable, all that comes out of it.
pub(crate) struct Capture {
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    is_over: AtomicBool,
    tunnel: AtomicU64,
    /// What is neither the tunnel's nor what docs/tunnel/leaks.md lists for every host.
    others: Mutex<Vec<String>>,
}

impl Capture {
    /// Captures in the network namespace of the caller: `server` is the tunnel's.
    pub(crate) fn start(device: &str, server: IpAddr) -> io::Result<Self> {
        let capturing = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll)?;
        let mut addresses = getifaddrs()?.filter(|address| address.interface_name == device);
        let link = addresses.find_map(|address| address.address.as_ref()?.as_link_addr().copied());
        let link = link.ok_or_else(|| io::Error::other(format!("there is no {device}")))?;
        bind(capturing.as_raw_fd(), &link)?;
        setsockopt(&capturing, sockopt::RcvBufForce, &(1 << 24))?;
        setsockopt(&capturing, sockopt::ReceiveTimeout, &WAIT)?;
        let seen = Arc::new(Seen::default());
        let capture = Self { seen: Arc::clone(&seen) };
        thread::spawn(move || receive(&capturing, &seen, link.ifindex(), server));
        Ok(capture)
    }

    /// How many of the tunnel's datagrams have come out.
    pub(crate) fn tunnel_datagrams(&self) -> u64 {
        self.seen.tunnel.load(Ordering::Relaxed)
    }

    /// What has come out besides.
    pub(crate) fn others(&self) -> Vec<String> {
        self.seen.others.lock().unwrap().clone()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.seen.is_over.store(true, Ordering::Relaxed);
    }
}

fn receive(socket: &OwnedFd, seen: &Seen, device: usize, server: IpAddr) {
    let mut buffer = vec![0; 1 << 16];
    while !seen.is_over.load(Ordering::Relaxed) {
        let Ok((len, Some(from))) = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut buffer) else { continue };
        // Before it was bound, the socket got the frames of all devices.
        if from.pkttype() == PACKET_OUTGOING || from.ifindex() != device {
            continue;
        }
        match kind(&buffer[..len], server) {
            Kind::Tunnel => drop(seen.tunnel.fetch_add(1, Ordering::Relaxed)),
            Kind::Listed => {}
            Kind::Other(text) => seen.others.lock().unwrap().push(text),
        }
    }
}

enum Kind {
    Tunnel,
    /// ARP, neighbour discovery, MLD reports, DHCP, empty datagrams to the server.
    Listed,
    Other(String),
}

fn kind(frame: &[u8], server: IpAddr) -> Kind {
    let Some((header, packet)) = frame.split_at_checked(14) else { return Kind::Other(format!("{frame:02x?}")) };
    match (u16::from_be_bytes([header[12], header[13]]), packet.len()) {
        (0x0806, _) => Kind::Listed,
        (0x0800, 24..) => {
            let from_bytes = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).unwrap());
            transport(packet[9], &packet[usize::from(packet[0] & 15) * 4..], from_bytes(12), from_bytes(16), server)
        }
        (0x86dd, 48..) => {
            let from_bytes = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).unwrap());
            // Reports of multicast listeners have a hop-by-hop header of 8 bytes (RFC 3810, section 5).
            let (protocol, start) = if packet[6] == 0 { (packet[40], 48) } else { (packet[6], 40) };
            transport(protocol, &packet[start..], from_bytes(8), from_bytes(24), server)
        }
        (other, _) => Kind::Other(format!("EtherType {other:#06x}")),
    }
}

fn transport(protocol: u8, segment: &[u8], source: IpAddr, destination: IpAddr, server: IpAddr) -> Kind {
    let port = |at: usize| segment.get(at..at + 2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let is_tunnels = || segment.get(8..12).is_some_and(|start| TUNNEL.iter().any(|magic| start == magic));
    match (protocol, port(0), port(2)) {
        (17, _, 4754) if destination == server && is_tunnels() => Kind::Tunnel,
        // An empty one asks whether anything refuses it.
        (17, _, 4754) if destination == server && port(4) == 8 => Kind::Listed,
        (17, 68, 67) | (17, 546, 547) => Kind::Listed,
        // Solicitations of routers and neighbours, advertisements of neighbours, reports of listeners.
        (58, _, _) if [133, 135, 136, 143].contains(&segment[0]) => Kind::Listed,
        (_, from, to) => Kind::Other(format!("protocol {protocol} from {source} {from} to {destination} {to}")),
    }
}
