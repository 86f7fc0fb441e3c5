//! A non-blocking UDP socket of an uplink, bound to its interface and address, with segmentation offload both ways.
//!
//! Sending hands the kernel up to 64 equal datagrams in one call (`UDP_SEGMENT`); receiving gets up to 64 KiB of
//! datagrams that the kernel has coalesced (`UDP_GRO`), and several of such messages in one call (`recvmmsg`), where
//! links bring datagrams one by one. The kernel coalesces only datagrams with the same TOS byte, so ECN marks are exact.
//! Receiving is `quinn-udp`'s, which keeps the control messages of each message apart.
//!
//! The don't-fragment bit is always set and the kernel's path MTU cache is ignored (`IP_PMTUDISC_PROBE`): path MTU
//! discovery belongs to `machine`.

use super::address::PathAddress;
use super::batch::TransmitBatch;
use super::buffer::{BufferMut, Pool, SizeClass};
use super::config::{Error, SocketConfig};
use super::mark::set_mark;
use super::report::SocketReport;
use super::steering;
use nix::errno::Errno;
use nix::libc;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt, sockopt};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use wire::inner::ecn::Ecn;

/// Requested size of the socket buffers, bytes. A burst of 64 super-packets fits; wireguard-go requests about as much.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// Bytes that one call receives, if messages stay as large as the largest of the call before: half a megabyte.
const RECEIVED_BYTES: usize = 512 * 1024;
/// The fewest messages that one call may receive: as many as have room if each is the largest.
const MIN_MESSAGES: usize = 8;

/// The datagrams of one message: one, or several of one size (the last may be shorter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceivedDatagrams {
    /// Bytes of all datagrams together.
    pub(super) len: usize,
    /// Bytes of each datagram except the last (`gso_size`).
    pub(super) segment_size: usize,
    /// The ECN field of all of them.
    pub(super) ecn: Ecn,
    /// The sender, and the local address that it sent to.
    pub(super) address: PathAddress,
}

/// Buffers for the messages of one call.
pub(super) struct ReceiveBuffers {
    buffers: Vec<BufferMut>,
    meta: [RecvMeta; BATCH_SIZE],
    /// How many messages the next call may receive.
    limit: usize,
}

impl ReceiveBuffers {
    /// Large buffers of a pool that has room for them.
    pub(super) fn new(pool: &mut Pool) -> Self {
        let buffers = std::iter::from_fn(|| pool.take(SizeClass::Large)).take(BATCH_SIZE).collect();
        Self { buffers, meta: [RecvMeta::default(); BATCH_SIZE], limit: MIN_MESSAGES }
    }

    /// The buffer of a message that was received.
    pub(super) fn buffer_mut(&mut self, index: usize) -> &mut BufferMut {
        &mut self.buffers[index]
    }

    /// How many messages a call receives at most.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    fn receive(&mut self, state: &UdpSocketState, raw: &RawSocket) -> std::io::Result<usize> {
        let mut parts = [(); BATCH_SIZE].map(|()| IoSliceMut::new(&mut []));
        let buffers = self.buffers[..self.limit].iter_mut();
        parts.iter_mut().zip(buffers).for_each(|(part, buffer)| *part = IoSliceMut::new(buffer.bytes_mut()));
        state.recv(raw.into(), &mut parts[..self.limit], &mut self.meta)
    }

    fn set_limit(&mut self, count: usize) {
        let largest = self.meta[..count].iter().map(|meta| meta.len).max().unwrap_or(0);
        self.limit = (RECEIVED_BYTES / largest.max(1)).clamp(MIN_MESSAGES, self.buffers.len());
    }
}

/// The result of sending a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// Sent, or dropped and counted.
    Sent,
    /// The socket is full: this many bytes are sent, the rest waits until it is writable.
    Blocked(usize),
    /// A datagram exceeds the interface's MTU and was dropped. The others are sent.
    TooBig,
    /// The interface, address or route no longer exists. The batch was dropped.
    Unreachable,
}

impl SendOutcome {
    /// The result of two batches: the first one that is not `Sent`.
    pub(super) fn and(self, later: Self) -> Self {
        if self == Self::Sent { later } else { self }
    }
}

/// A UDP socket.
#[derive(Debug)]
pub(super) struct Socket {
    config: Option<SocketConfig>,
    /// `None` while its device or its address does not exist.
    raw: Option<RawSocket>,
    /// Index of the device that the socket was bound to. A device that is created again has another index.
    ifindex: Option<u32>,
    /// The events that epoll waits for.
    pub(super) interest: EpollFlags,
    is_v6: bool,
    is_wildcard: bool,
    offload: bool,
    /// How datagrams are received; `None` while it is closed.
    receiver: Option<UdpSocketState>,
    /// Counters.
    pub(super) report: SocketReport,
}

impl Socket {
    /// A closed socket. Without a configuration it is never opened.
    pub(super) fn closed(config: Option<SocketConfig>) -> Self {
        Self {
            config,
            raw: None,
            ifindex: None,
            interest: EpollFlags::empty(),
            is_v6: false,
            is_wildcard: false,
            offload: false,
            receiver: None,
            report: SocketReport::default(),
        }
    }

    pub(super) fn config(&self) -> Option<&SocketConfig> {
        self.config.as_ref()
    }

    pub(super) fn is_open(&self) -> bool {
        self.raw.is_some()
    }

    /// Whether its device was removed. Another device may have the same name.
    pub(super) fn is_stale(&self) -> bool {
        let device = self.config.as_ref().and_then(|config| config.interface.as_deref());
        self.is_open() && device.is_some_and(|device| ifindex(device) != self.ifindex)
    }

    /// Closes the socket. Datagrams sent on it are dropped.
    pub(super) fn close(&mut self) {
        (self.raw, self.receiver) = (None, None);
        self.interest = EpollFlags::empty();
        self.report.up = false;
    }

    /// Closes the socket and opens it again. Its counters continue.
    ///
    /// # Errors
    /// As [`Socket::open`]; then the socket is closed.
    pub(super) fn reopen(&mut self) -> Result<(), Error> {
        self.close();
        let Some(config) = &self.config else { return Ok(()) };
        let opened = Self::open(config)?;
        let report = SocketReport { offload: opened.offload, up: true, ..self.report };
        *self = Self { report, ..opened };
        Ok(())
    }

    /// Opens and binds a socket.
    ///
    /// # Errors
    /// The kernel's, with the socket's name.
    pub(super) fn open(config: &SocketConfig) -> Result<Self, Error> {
        let to_error = |action: &str| {
            let action = format!("socket {}: {action}", config.name);
            move |error| Error::new(action, error)
        };
        let is_v6 = config.bind.is_ipv6();
        let domain = if is_v6 { Domain::IPV6 } else { Domain::IPV4 };
        let raw = RawSocket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP));
        let raw = raw.map_err(to_error("cannot be created"))?;
        if is_v6 {
            raw.set_only_v6(true).map_err(to_error("IPV6_V6ONLY"))?;
        }
        if config.shares_port {
            raw.set_reuse_port(true).map_err(to_error("SO_REUSEPORT"))?;
        }
        if let Some(interface) = &config.interface {
            let action = format!("cannot be bound to interface {interface}");
            raw.bind_device(Some(interface.as_bytes())).map_err(to_error(&action))?;
        }
        set_mark(&raw);
        // No fragments, ECN field and destination of received datagrams, coalescing where the kernel has it (5.0).
        let receiver = UdpSocketState::new((&raw).into()).map_err(to_error("options"))?;
        if !config.offload {
            let _ = setsockopt(&raw, sockopt::UdpGroSegment, &false);
        }
        set_buffers(&raw, config.offload).map_err(|errno| to_error("options")(errno.into()))?;
        raw.bind(&config.bind.into()).map_err(to_error(&format!("cannot be bound to {}", config.bind)))?;
        if config.shares_port {
            steering::attach(&raw).map_err(|errno| to_error("steering")(errno.into()))?;
        }
        // Kernels before 4.18 do not know the option. A failure to send switches it off later.
        let offload = config.offload && setsockopt(&raw, sockopt::UdpGsoSegment, &0).is_ok();
        let report = SocketReport { offload, up: true, ..SocketReport::default() };
        let is_wildcard = config.bind.ip().is_unspecified();
        let ifindex = config.interface.as_deref().and_then(ifindex);
        let (raw, receiver) = (Some(raw), Some(receiver));
        Ok(Self { raw, receiver, ifindex, is_v6, is_wildcard, offload, report, ..Self::closed(Some(config.clone())) })
    }

    /// Whether the socket is an IPv4 one; `None` without a configuration.
    #[cfg(feature = "mpt")]
    pub(super) fn is_ipv4(&self) -> Option<bool> {
        self.config.as_ref().map(|config| config.bind.is_ipv4())
    }

    /// The descriptor of an open socket.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.raw.as_ref().map(AsFd::as_fd)
    }

    /// Receives messages into `buffers`, and returns their number; none if the socket's queue is empty.
    pub(super) fn receive(&mut self, buffers: &mut ReceiveBuffers) -> usize {
        let (Some(raw), Some(receiver)) = (&self.raw, &self.receiver) else { return 0 };
        let count = match buffers.receive(receiver, raw) {
            Ok(count) => count,
            Err(error) => {
                // Others are an ICMP error or a removed interface: reported when sending, and by netlink.
                self.report.failed += u64::from(error.kind() != ErrorKind::WouldBlock);
                0
            }
        };
        buffers.set_limit(count);
        count
    }

    /// What message `index` of those that were just received has; counts it.
    pub(super) fn received(&mut self, buffers: &ReceiveBuffers, index: usize) -> ReceivedDatagrams {
        let meta = &buffers.meta[index];
        let segment_size = meta.stride.max(1);
        self.report.received.add(meta.len.div_ceil(segment_size), meta.len);
        let source = meta.dst_ip.filter(|_| self.is_wildcard);
        let ecn = meta.ecn.map_or(Ecn::NotEct, |ecn| match ecn {
            EcnCodepoint::Ect0 => Ecn::Ect0,
            EcnCodepoint::Ect1 => Ecn::Ect1,
            EcnCodepoint::Ce => Ecn::Ce,
        });
        ReceivedDatagrams { len: meta.len, segment_size, ecn, address: PathAddress { source, remote: meta.addr } }
    }

    /// Sends the datagrams of a batch from byte `start` on.
    pub(super) fn send(&mut self, batch: &TransmitBatch, start: usize) -> SendOutcome {
        let bytes = &batch.bytes()[start..];
        if !self.offload || bytes.len() <= batch.segment_size() {
            return self.send_one_by_one(batch, start);
        }
        match self.transmit(batch, bytes, true) {
            Ok(()) => SendOutcome::Sent,
            Err(Errno::EAGAIN | Errno::ENOBUFS) => SendOutcome::Blocked(start),
            // EIO: a NIC without checksum offload. EINVAL, EMSGSIZE: datagrams larger than the MTU, or no support.
            Err(errno @ (Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE)) => {
                let outcome = self.send_one_by_one(batch, start);
                self.offload &= errno != Errno::EIO && !(errno == Errno::EINVAL && outcome == SendOutcome::Sent);
                self.report.offload = self.offload;
                outcome
            }
            Err(errno) => self.on_send_error(errno, batch.datagrams_from(start)),
        }
    }

    fn send_one_by_one(&mut self, batch: &TransmitBatch, start: usize) -> SendOutcome {
        let mut result = SendOutcome::Sent;
        let mut offset = start;
        for datagram in batch.bytes()[start..].chunks(batch.segment_size().max(1)) {
            match self.transmit(batch, datagram, false) {
                Ok(()) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => return SendOutcome::Blocked(offset),
                Err(errno) => result = self.on_send_error(errno, 1),
            }
            offset += datagram.len();
        }
        result
    }

    /// Counts datagrams that were dropped because of `errno`.
    fn on_send_error(&mut self, errno: Errno, datagrams: usize) -> SendOutcome {
        let datagrams = datagrams as u64;
        match errno {
            Errno::EMSGSIZE => {
                self.report.too_big += datagrams;
                SendOutcome::TooBig
            }
            Errno::ENODEV
            | Errno::ENXIO
            | Errno::ENETDOWN
            | Errno::ENETUNREACH
            | Errno::EHOSTUNREACH
            | Errno::EADDRNOTAVAIL => {
                self.report.failed += datagrams;
                SendOutcome::Unreachable
            }
            _ => {
                self.report.failed += datagrams;
                SendOutcome::Sent
            }
        }
    }

    /// One `sendmsg`, with UDP GSO if `segment`.
    fn transmit(&mut self, batch: &TransmitBatch, bytes: &[u8], segment: bool) -> Result<(), Errno> {
        let size = batch.segment_size() as u16;
        let (tos, class) = (batch.tos(), i32::from(batch.tos()));
        let address = batch.address();
        let source = address.source.and_then(packet_info);
        // At most three messages; the first is always there.
        let class = if self.is_v6 { ControlMessage::Ipv6TClass(&class) } else { ControlMessage::Ipv4Tos(&tos) };
        let mut messages = [class; 3];
        let mut count = 1;
        if segment {
            messages[count] = ControlMessage::UdpGsoSegments(&size);
            count += 1;
        }
        if let Some(source) = &source {
            messages[count] = source.message();
            count += 1;
        }
        let destination = SockaddrStorage::from(address.remote);
        let parts = [IoSlice::new(bytes)];
        let raw = self.raw.as_ref().ok_or(Errno::ENODEV)?;
        self.report.sends += 1;
        sendmsg(raw.as_raw_fd(), &parts, &messages[..count], MsgFlags::MSG_DONTWAIT, Some(&destination))?;
        self.report.sent.add(bytes.len().div_ceil(batch.segment_size().max(1)), bytes.len());
        Ok(())
    }
}

/// The index of a network device; `None` if there is none of this name.
fn ifindex(device: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(device).ok()
}

/// Requests large buffers.
fn set_buffers(raw: &RawSocket, large_send_buffer: bool) -> Result<(), Errno> {
    // With CAP_NET_ADMIN the system's limit does not apply.
    if setsockopt(raw, sockopt::RcvBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        setsockopt(raw, sockopt::RcvBuf, &SOCKET_BUFFER_BYTES)?;
    }
    if large_send_buffer && setsockopt(raw, sockopt::SndBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        setsockopt(raw, sockopt::SndBuf, &SOCKET_BUFFER_BYTES)?;
    }
    Ok(())
}

/// The source address of a datagram, as a control message.
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
    let unspecified = libc::in_addr { s_addr: 0 };
    match source {
        _ if source.is_unspecified() => None,
        IpAddr::V4(v4) => {
            let source = libc::in_addr { s_addr: u32::from_ne_bytes(v4.octets()) };
            Some(PacketInfo::V4(libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: unspecified }))
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
    use std::net::SocketAddr;
    use std::time::Instant;
    use testing::MINUTE;

    impl Socket {
        pub(crate) fn local(&self) -> Option<SocketAddr> {
            self.raw.as_ref()?.local_addr().ok()?.as_socket()
        }
    }

    fn socket(bind: &str, offload: bool) -> Socket {
        let bind = bind.parse().expect("an address");
        let config = SocketConfig { name: "test".into(), interface: None, bind, offload, shares_port: false };
        Socket::open(&config).expect("loopback is there")
    }

    /// The datagrams received, as (datagram, ECN field), and the messages.
    fn receive_all(socket: &mut Socket, wanted: usize) -> (Vec<(Vec<u8>, Ecn)>, Vec<ReceivedDatagrams>) {
        let (mut datagrams, mut messages) = (Vec::new(), Vec::new());
        let mut buffers = ReceiveBuffers::new(&mut Pool::new(0, BATCH_SIZE));
        let start = Instant::now();
        while datagrams.len() < wanted && start.elapsed() < MINUTE {
            for index in 0..socket.receive(&mut buffers) {
                let received = socket.received(&buffers, index);
                let bytes = &buffers.buffer_mut(index)[..received.len];
                datagrams.extend(bytes.chunks(received.segment_size).map(|bytes| (bytes.to_vec(), received.ecn)));
                messages.push(received);
            }
        }
        (datagrams, messages)
    }

    fn batch(destination: SocketAddr, tos: u8, sizes: &[usize]) -> TransmitBatch {
        let mut batch = TransmitBatch::new(PathAddress::to_remote(destination));
        for (index, size) in sizes.iter().enumerate() {
            assert!(batch.fits(*size, tos));
            batch.push(*size, tos, |bytes| {
                bytes.fill(index as u8);
                *size
            });
        }
        batch
    }

    /// The TOS byte of expedited forwarding (DSCP 46) with CE.
    const EF_CE: u8 = 46 << 2 | 3;

    #[test]
    fn ecn_marks_of_coalesced_datagrams_are_kept() {
        for (address, offload) in [("127.0.0.1:0", true), ("[::1]:0", true), ("127.0.0.1:0", false), ("[::1]:0", false)]
        {
            let (mut sender, mut receiver) = (socket(address, offload), socket(address, true));
            let destination = receiver.local().expect("bound");
            let sizes = [1200, 1200, 1200, 700];
            assert_eq!(sender.send(&batch(destination, EF_CE, &sizes), 0), SendOutcome::Sent);
            assert_eq!(sender.send(&batch(destination, 0, &[5]), 0), SendOutcome::Sent);
            let (datagrams, messages) = receive_all(&mut receiver, 5);
            let received: Vec<_> = datagrams.iter().map(|(bytes, ecn)| (bytes.len(), bytes[0], *ecn)).collect();
            let marked = [(1200, 0), (1200, 1), (1200, 2), (700, 3)].map(|(len, first)| (len, first, Ecn::Ce));
            assert_eq!(received, [&marked[..], &[(5, 0, Ecn::NotEct)]].concat());
            assert_eq!(messages.len(), if offload { 2 } else { 5 }, "{address}: loopback does not segment");
            assert_eq!(sender.report.sent.packets, 5);
            assert_eq!(sender.report.sends, if offload { 2 } else { 5 });
        }
    }

    #[test]
    fn a_reply_has_the_address_that_the_request_was_sent_to() {
        for (wildcard, server_address) in [("0.0.0.0:0", "127.0.0.7"), ("[::]:0", "::1")] {
            let mut server = socket(wildcard, true);
            let port = server.local().expect("bound").port();
            let server_address: IpAddr = server_address.parse().expect("an address");
            let mut client = socket(if server_address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }, true);
            client.send(&batch((server_address, port).into(), 0, &[9]), 0);
            let (_, calls) = receive_all(&mut server, 1);
            assert_eq!(calls[0].address.source, Some(server_address));
            let mut reply = TransmitBatch::new(calls[0].address);
            reply.push(9, 0, |_| 9);
            assert_eq!(server.send(&reply, 0), SendOutcome::Sent);
            let (_, calls) = receive_all(&mut client, 1);
            assert_eq!(calls[0].address.remote, SocketAddr::from((server_address, port)));
        }
    }

    #[test]
    fn a_datagram_larger_than_the_mtu_is_reported_and_the_others_are_sent() {
        let (mut sender, mut receiver) = (socket("127.0.0.1:0", true), socket("127.0.0.1:0", true));
        let destination = receiver.local().expect("bound");
        // Loopback's MTU is 65536, a UDP datagram over IPv4 carries 65507 at most.
        assert_eq!(sender.send(&batch(destination, 0, &[65_508]), 0), SendOutcome::TooBig);
        assert_eq!(sender.send(&batch(destination, 0, &[65_507]), 0), SendOutcome::Sent);
        assert_eq!(receive_all(&mut receiver, 1).0[0].0.len(), 65_507);
        assert_eq!((sender.report.too_big, sender.report.sent.packets), (1, 1));
    }

    #[test]
    fn a_missing_interface_is_named() {
        let bind = "127.0.0.1:0".parse().expect("an address");
        let interface = Some("no-such-0".to_owned());
        let config = SocketConfig { name: "dsl".into(), interface, bind, offload: true, shares_port: false };
        let error = Socket::open(&config).expect_err("there is none").to_string();
        assert!(error.starts_with("socket dsl: cannot be bound to interface no-such-0"), "{error}");
    }
}
