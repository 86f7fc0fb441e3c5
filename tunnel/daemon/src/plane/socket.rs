//! One UDP socket of an uplink: bound to its interface and address, never blocking, in super-packets both ways.
//!
//! Sending hands the kernel up to 64 equal datagrams in one call (`UDP_SEGMENT`); receiving gets what the kernel has
//! coalesced (`UDP_GRO`), up to 64 KiB with one TOS byte, so that ECN marks are exact: the kernel coalesces only datagrams
//! whose TOS is the same. One `recvmsg` a super-packet is enough; nix's `recvmmsg` does not restore the length of its
//! control buffers between calls, which would lose ECN marks without a word.
//!
//! The don't-fragment bit is always set and the kernel's path MTU cache is out of play (`IP_PMTUDISC_PROBE`): finding the
//! MTU is the machine's business.

use super::batch::Batch;
use super::report::SocketReport;
use super::setup::{Error, SocketSetup};
use nix::errno::Errno;
use nix::libc;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use nix::{setsockopt_impl, sockopt_impl};
use socket2::{Domain, Protocol, Socket as Raw, Type};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// Wanted size of the kernel's buffers, bytes. A burst of 64 super-packets fits; wireguard-go uses about as much.
const KERNEL_BUFFER: usize = 4 << 20;
/// Room for control messages: GRO size, TOS, packet info and what else the kernel may add (timestamps, drops).
const CONTROL: usize = 256;

sockopt_impl!(
    /// `IP_MTU_DISCOVER`.
    Ipv4MtuDiscover, SetOnly, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, i32
);
sockopt_impl!(
    /// `IPV6_MTU_DISCOVER`.
    Ipv6MtuDiscover, SetOnly, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, i32
);

/// Where datagrams go to, and from which of our addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// The peer's socket.
    pub(super) remote: SocketAddr,
    /// Our address, where the socket has several; unspecified: the kernel's choice.
    pub(super) source: Option<IpAddr>,
}

/// What one system call received: one datagram, or several of one size (the last may be shorter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Bytes of all datagrams together.
    pub(super) len: usize,
    /// Bytes of each datagram but the last.
    pub(super) segment: usize,
    /// The TOS or traffic class byte of all of them.
    pub(super) tos: u8,
    /// Where they come from, and to which of our addresses they were sent.
    pub(super) route: Route,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is out, or was dropped and counted.
    Done,
    /// The socket is full: this many bytes are out, the rest waits until it is writable.
    Blocked(usize),
    /// A datagram is too large for the interface. The others are out.
    TooBig,
    /// The interface or the route is gone. The batch was dropped.
    Gone,
}

impl Sent {
    /// What became of two batches: what went wrong first.
    pub(super) fn and(self, later: Self) -> Self {
        if self == Self::Done { later } else { self }
    }
}

/// One UDP socket.
#[derive(Debug)]
pub(super) struct Socket {
    setup: Option<SocketSetup>,
    /// None while its device or its address is not there.
    raw: Option<Raw>,
    /// The device that it was bound to: one that is made again has another index.
    device: Option<u32>,
    /// What the loop watches it for.
    pub(super) watched: EpollFlags,
    is_v6: bool,
    is_wildcard: bool,
    offload: bool,
    control: Vec<u8>,
    /// What was counted.
    pub(super) report: SocketReport,
}

impl Socket {
    /// One that is closed, with what it may be opened from.
    pub(super) fn closed(setup: Option<SocketSetup>) -> Self {
        Self {
            setup,
            raw: None,
            device: None,
            watched: EpollFlags::empty(),
            is_v6: false,
            is_wildcard: false,
            offload: false,
            control: Vec::new(),
            report: SocketReport::default(),
        }
    }

    /// What it was opened from, or may be.
    pub(super) fn setup(&self) -> Option<&SocketSetup> {
        self.setup.as_ref()
    }

    /// It is open, if it has to be.
    pub(super) fn is_open(&self) -> bool {
        self.raw.is_some()
    }

    /// It is bound to a device that is not there any more, though another one may have its name.
    pub(super) fn is_stale(&self) -> bool {
        let device = self.setup.as_ref().and_then(|setup| setup.interface.as_deref());
        self.is_open() && device.is_some_and(|device| index(device) != self.device)
    }

    /// Closes it. What is sent by it is lost, as by a device that is gone.
    pub(super) fn close(&mut self) {
        self.raw = None;
        self.watched = EpollFlags::empty();
        self.report.up = false;
    }

    /// Opens it again from what it was opened from; its numbers go on.
    ///
    /// # Errors
    /// As [`Socket::open`]; then it is closed.
    pub(super) fn reopen(&mut self) -> Result<(), Error> {
        self.close();
        let Some(setup) = &self.setup else { return Ok(()) };
        let new = Self::open(setup)?;
        let report = SocketReport { offload: new.offload, up: true, ..self.report };
        *self = Self { report, ..new };
        Ok(())
    }

    /// Opens and binds.
    ///
    /// # Errors
    /// What the kernel refuses, named by the socket's name.
    pub(super) fn open(setup: &SocketSetup) -> Result<Self, Error> {
        let fail = |what: &str| {
            let what = format!("socket {}: {what}", setup.name);
            move |error| Error::new(what, error)
        };
        let is_v6 = setup.bind.is_ipv6();
        let domain = if is_v6 { Domain::IPV6 } else { Domain::IPV4 };
        let raw = Raw::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP));
        let raw = raw.map_err(fail("cannot be made"))?;
        if is_v6 {
            raw.set_only_v6(true).map_err(fail("IPV6_V6ONLY"))?;
        }
        if let Some(interface) = &setup.interface {
            let what = format!("cannot be bound to interface {interface}");
            raw.bind_device(Some(interface.as_bytes())).map_err(fail(&what))?;
        }
        if let Some(mark) = setup.mark {
            raw.set_mark(mark).map_err(fail("SO_MARK"))?;
        }
        options(&raw, is_v6, setup.offload).map_err(|errno| fail("options")(errno.into()))?;
        raw.bind(&setup.bind.into()).map_err(fail(&format!("cannot be bound to {}", setup.bind)))?;
        // Probed: kernels before 4.18 do not know the option at all. What fails later switches it off, too.
        let offload = setup.offload && setsockopt(&raw, sockopt::UdpGsoSegment, &0).is_ok();
        if setup.offload {
            // Without it (before 5.0) the kernel hands over single datagrams.
            let _ = setsockopt(&raw, sockopt::UdpGroSegment, &true);
        }
        let report = SocketReport { offload, up: true, ..SocketReport::default() };
        let is_wildcard = setup.bind.ip().is_unspecified();
        let device = setup.interface.as_deref().and_then(index);
        let (raw, control) = (Some(raw), vec![0; CONTROL]);
        Ok(Self { raw, device, is_v6, is_wildcard, offload, control, report, ..Self::closed(Some(setup.clone())) })
    }

    /// It speaks IPv4; none without any setup.
    pub(super) fn is_ipv4(&self) -> Option<bool> {
        self.setup.as_ref().map(|setup| setup.bind.is_ipv4())
    }

    /// For the loop to watch.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.raw.as_ref().map(AsFd::as_fd)
    }

    /// Receives what is there into `into`; `None` if nothing is.
    pub(super) fn receive(&mut self, into: &mut [u8]) -> Option<Arrival> {
        let fd = self.raw.as_ref()?.as_raw_fd();
        let arrival = loop {
            match receive(fd, into, &mut self.control) {
                Ok(arrival) => break arrival?,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return None,
                // An ICMP error or a lost interface: told when sending, and by netlink.
                Err(_) => {
                    self.report.failed += 1;
                    return None;
                }
            }
        };
        self.report.receives += 1;
        self.report.received.add(arrival.len.div_ceil(arrival.segment.max(1)), arrival.len);
        let source = arrival.route.source.filter(|_| self.is_wildcard);
        Some(Arrival { route: Route { source, ..arrival.route }, ..arrival })
    }

    /// Sends the datagrams of a batch from byte `from` on.
    pub(super) fn send(&mut self, batch: &Batch, from: usize) -> Sent {
        let rest = &batch.bytes()[from..];
        if !self.offload || rest.len() <= batch.segment() {
            return self.send_one_by_one(batch, from);
        }
        match self.transmit(batch, rest, true) {
            Ok(()) => Sent::Done,
            Err(Errno::EAGAIN | Errno::ENOBUFS) => Sent::Blocked(from),
            // EIO: a NIC without checksum offload. EINVAL, EMSGSIZE: datagrams beyond the MTU, or no support.
            Err(errno @ (Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE)) => {
                let sent = self.send_one_by_one(batch, from);
                self.offload &= errno != Errno::EIO && !(errno == Errno::EINVAL && sent == Sent::Done);
                self.report.offload = self.offload;
                sent
            }
            Err(errno) => self.lost(errno, batch.count_from(from)),
        }
    }

    fn send_one_by_one(&mut self, batch: &Batch, from: usize) -> Sent {
        let mut result = Sent::Done;
        let mut at = from;
        for datagram in batch.bytes()[from..].chunks(batch.segment().max(1)) {
            match self.transmit(batch, datagram, false) {
                Ok(()) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => return Sent::Blocked(at),
                Err(errno) => result = self.lost(errno, 1),
            }
            at += datagram.len();
        }
        result
    }

    /// Datagrams are lost by this error.
    fn lost(&mut self, errno: Errno, datagrams: usize) -> Sent {
        let datagrams = datagrams as u64;
        match errno {
            Errno::EMSGSIZE => {
                self.report.too_big += datagrams;
                Sent::TooBig
            }
            Errno::ENODEV
            | Errno::ENXIO
            | Errno::ENETDOWN
            | Errno::ENETUNREACH
            | Errno::EHOSTUNREACH
            | Errno::EADDRNOTAVAIL => {
                self.report.failed += datagrams;
                Sent::Gone
            }
            _ => {
                self.report.failed += datagrams;
                Sent::Done
            }
        }
    }

    /// One system call.
    fn transmit(&mut self, batch: &Batch, bytes: &[u8], cut: bool) -> Result<(), Errno> {
        let size = batch.segment() as u16;
        let (tos, class) = (batch.tos(), i32::from(batch.tos()));
        let route = batch.route();
        let source = route.source.and_then(packet_info);
        // The widest case has three messages; the first is always there.
        let mark = if self.is_v6 { ControlMessage::Ipv6TClass(&class) } else { ControlMessage::Ipv4Tos(&tos) };
        let mut messages = [mark; 3];
        let mut count = 1;
        if cut {
            messages[count] = ControlMessage::UdpGsoSegments(&size);
            count += 1;
        }
        if let Some(source) = &source {
            messages[count] = source.message();
            count += 1;
        }
        let to = SockaddrStorage::from(route.remote);
        let parts = [IoSlice::new(bytes)];
        let raw = self.raw.as_ref().ok_or(Errno::ENODEV)?;
        self.report.sends += 1;
        sendmsg(raw.as_raw_fd(), &parts, &messages[..count], MsgFlags::MSG_DONTWAIT, Some(&to))?;
        self.report.sent.add(bytes.len().div_ceil(batch.segment().max(1)), bytes.len());
        Ok(())
    }
}

/// The index of a device; none if it is not there.
fn index(device: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(device).ok()
}

/// What every socket has: no fragments, TOS and destination of what arrives, large buffers.
fn options(raw: &Raw, is_v6: bool, batches: bool) -> Result<(), Errno> {
    if is_v6 {
        setsockopt(raw, Ipv6MtuDiscover, &libc::IPV6_PMTUDISC_PROBE)?;
        setsockopt(raw, sockopt::Ipv6RecvTClass, &true)?;
        setsockopt(raw, sockopt::Ipv6RecvPacketInfo, &true)?;
    } else {
        setsockopt(raw, Ipv4MtuDiscover, &libc::IP_PMTUDISC_PROBE)?;
        setsockopt(raw, sockopt::IpRecvTos, &true)?;
        setsockopt(raw, sockopt::Ipv4PacketInfo, &true)?;
    }
    // Beyond the system's limit with CAP_NET_ADMIN, up to it without.
    if setsockopt(raw, sockopt::RcvBufForce, &KERNEL_BUFFER).is_err() {
        setsockopt(raw, sockopt::RcvBuf, &KERNEL_BUFFER)?;
    }
    if batches && setsockopt(raw, sockopt::SndBufForce, &KERNEL_BUFFER).is_err() {
        setsockopt(raw, sockopt::SndBuf, &KERNEL_BUFFER)?;
    }
    Ok(())
}

/// One `recvmsg`. `Ok(None)`: what came cannot be used, as its sender or its control messages are not whole.
fn receive(fd: RawFd, into: &mut [u8], control: &mut [u8]) -> Result<Option<Arrival>, Errno> {
    let mut parts = [IoSliceMut::new(into)];
    let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(control), MsgFlags::MSG_DONTWAIT)?;
    let Some(remote) = message.address.as_ref().and_then(address) else { return Ok(None) };
    let route = Route { remote, source: None };
    let mut arrival = Arrival { len: message.bytes, segment: message.bytes, tos: 0, route };
    // Fails if the kernel had to leave control messages out.
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::UdpGroSegments(size) => arrival.segment = usize::try_from(size).unwrap_or(0).max(1),
            ControlMessageOwned::Ipv4Tos(tos) => arrival.tos = tos,
            ControlMessageOwned::Ipv6TClass(class) => arrival.tos = class as u8,
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                arrival.route.source = Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                arrival.route.source = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            _ => {}
        }
    }
    Ok(Some(arrival))
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    match (storage.as_sockaddr_in(), storage.as_sockaddr_in6()) {
        (Some(v4), _) => Some(SocketAddr::V4((*v4).into())),
        (_, Some(v6)) => Some(SocketAddr::V6((*v6).into())),
        _ => None,
    }
}

/// The address that a datagram is sent from.
enum PacketInfo {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

impl PacketInfo {
    fn message(&self) -> ControlMessage<'_> {
        match self {
            Self::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            Self::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        }
    }
}

fn packet_info(source: IpAddr) -> Option<PacketInfo> {
    let none = libc::in_addr { s_addr: 0 };
    match source {
        _ if source.is_unspecified() => None,
        IpAddr::V4(v4) => {
            let spec = libc::in_addr { s_addr: u32::from_ne_bytes(v4.octets()) };
            Some(PacketInfo::V4(libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: spec, ipi_addr: none }))
        }
        IpAddr::V6(v6) => {
            let address = libc::in6_addr { s6_addr: v6.octets() };
            Some(PacketInfo::V6(libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    impl Socket {
        pub(crate) fn local(&self) -> Option<SocketAddr> {
            self.raw.as_ref()?.local_addr().ok()?.as_socket()
        }
    }

    fn socket(bind: &str, offload: bool) -> Socket {
        let bind = bind.parse().expect("an address");
        let setup = SocketSetup { name: "test".into(), interface: None, bind, mark: None, offload };
        Socket::open(&setup).expect("loopback is there")
    }

    /// What arrives within a second, as (datagram, TOS).
    fn arrivals(socket: &mut Socket, wanted: usize) -> (Vec<(Vec<u8>, u8)>, Vec<Arrival>) {
        let (mut datagrams, mut calls) = (Vec::new(), Vec::new());
        let mut buffer = vec![0; 1 << 16];
        let start = Instant::now();
        while datagrams.len() < wanted && start.elapsed() < Duration::from_secs(1) {
            let Some(arrival) = socket.receive(&mut buffer) else { continue };
            datagrams.extend(buffer[..arrival.len].chunks(arrival.segment).map(|bytes| (bytes.to_vec(), arrival.tos)));
            calls.push(arrival);
        }
        (datagrams, calls)
    }

    fn batch(to: SocketAddr, tos: u8, sizes: &[usize]) -> Batch {
        let mut batch = Batch::new(Route { remote: to, source: None });
        for (index, size) in sizes.iter().enumerate() {
            assert!(batch.fits(*size, tos));
            batch.push(*size, tos, |bytes| {
                bytes.fill(index as u8);
                *size
            });
        }
        batch
    }

    /// CE (both ECN bits) with a DSCP of 46.
    const MARKED: u8 = 46 << 2 | 3;

    #[test]
    fn marks_of_coalesced_datagrams_are_kept() {
        for (address, offload) in [("127.0.0.1:0", true), ("[::1]:0", true), ("127.0.0.1:0", false), ("[::1]:0", false)]
        {
            let (mut from, mut to) = (socket(address, offload), socket(address, true));
            let there = to.local().expect("bound");
            let sizes = [1200, 1200, 1200, 700];
            assert_eq!(from.send(&batch(there, MARKED, &sizes), 0), Sent::Done);
            assert_eq!(from.send(&batch(there, 0, &[5]), 0), Sent::Done);
            let (datagrams, calls) = arrivals(&mut to, 5);
            let seen: Vec<_> = datagrams.iter().map(|(bytes, tos)| (bytes.len(), bytes[0], *tos)).collect();
            assert_eq!(seen, [(1200, 0, MARKED), (1200, 1, MARKED), (1200, 2, MARKED), (700, 3, MARKED), (5, 0, 0)]);
            assert_eq!(calls.len(), if offload { 2 } else { 5 }, "{address}: loopback does not cut what it need not");
            assert_eq!(from.report.sent.packets, 5);
            assert_eq!(from.report.sends, if offload { 2 } else { 5 });
        }
    }

    #[test]
    fn an_answer_leaves_from_the_address_that_was_asked() {
        for (wildcard, asked) in [("0.0.0.0:0", "127.0.0.7"), ("[::]:0", "::1")] {
            let mut server = socket(wildcard, true);
            let port = server.local().expect("bound").port();
            let asked: IpAddr = asked.parse().expect("an address");
            let mut client = socket(if asked.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }, true);
            client.send(&batch((asked, port).into(), 0, &[9]), 0);
            let (_, calls) = arrivals(&mut server, 1);
            assert_eq!(calls[0].route.source, Some(asked));
            let mut answer = Batch::new(calls[0].route);
            answer.push(9, 0, |_| 9);
            assert_eq!(server.send(&answer, 0), Sent::Done);
            let (_, calls) = arrivals(&mut client, 1);
            assert_eq!(calls[0].route.remote, SocketAddr::from((asked, port)));
        }
    }

    #[test]
    fn what_exceeds_the_mtu_is_told_and_the_rest_goes() {
        let (mut from, mut to) = (socket("127.0.0.1:0", true), socket("127.0.0.1:0", true));
        let there = to.local().expect("bound");
        // Loopback's MTU is 65536, a UDP datagram over IPv4 carries 65507 at most.
        assert_eq!(from.send(&batch(there, 0, &[65_508]), 0), Sent::TooBig);
        assert_eq!(from.send(&batch(there, 0, &[65_507]), 0), Sent::Done);
        assert_eq!(arrivals(&mut to, 1).0[0].0.len(), 65_507);
        assert_eq!((from.report.too_big, from.report.sent.packets), (1, 1));
    }

    #[test]
    fn a_missing_interface_is_named() {
        let bind = "127.0.0.1:0".parse().expect("an address");
        let interface = Some("no-such-0".to_owned());
        let setup = SocketSetup { name: "dsl".into(), interface, bind, mark: None, offload: true };
        let error = Socket::open(&setup).expect_err("there is none").to_string();
        assert!(error.starts_with("socket dsl: cannot be bound to interface no-such-0"), "{error}");
    }
}
