//! A sock_diag client. It reads the kernel's state of TCP connections, as `ss -i` shows it. Starting `ss` for each
//! sample would cost more CPU time than the traffic.

use netlink_packet_core::{
    DefaultNla, NLA_TYPE_MASK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload, Nla as _,
    NlasIterator,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

pub use netlink_packet_sock_diag::inet::nlas::TcpInfo;

/// The constants `INET_DIAG_ULP_INFO`, `INET_ULP_INFO_MPTCP` and `MPTCP_SUBFLOW_ATTR_TOKEN_LOC` of the kernel's
/// `inet_diag.h` and `mptcp.h`.
const ULP_INFO: u16 = 19;
const ULP_INFO_MPTCP: u16 = 3;
const SUBFLOW_TOKEN_LOCAL: u16 = 2;

/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY` of its `sock_diag.h`.
const DESTROYED: [u32; 2] = [1, 3];

/// A sock_diag client of the network namespace in which it was made.
#[derive(Debug)]
pub struct SockDiag {
    socket: Socket,
    /// The socket for destroy notifications, which report a connection's last state.
    destroy_notifications: Option<Socket>,
    destroyed: Vec<SocketInfo>,
}

/// A TCP socket: its local and remote address, and its state.
#[derive(Clone, Debug)]
pub struct SocketInfo {
    /// The local address.
    pub local: SocketAddr,
    /// The remote address.
    pub remote: SocketAddr,
    /// The kernel's `tcp_info`.
    pub info: TcpInfo,
    /// The congestion control, by the kernel's name.
    pub congestion: String,
    /// The MPTCP token, which all open subflows of a connection share.
    pub token: Option<u32>,
}

impl SockDiag {
    /// A client of the network namespace of the current thread.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&netlink_sys::SocketAddr::new(0, 0))?;
        Ok(Self { socket, destroy_notifications: None, destroyed: Vec::new() })
    }

    /// Subscribes to destroy notifications: the client then also lists connections that have been destroyed, with their
    /// last state.
    pub fn with_destroy_notifications(self) -> io::Result<Self> {
        let mut destroy_notifications = Socket::new(NETLINK_SOCK_DIAG)?;
        destroy_notifications.bind_auto()?;
        destroy_notifications.set_non_blocking(true)?;
        DESTROYED.iter().try_for_each(|group| destroy_notifications.add_membership(*group))?;
        Ok(Self { destroy_notifications: Some(destroy_notifications), ..self })
    }

    /// Looks up one TCP connection.
    ///
    /// # Errors
    /// The errors of the netlink socket.
    pub fn find(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<SocketInfo>> {
        self.socket.send(&find_request(local, remote), 0)?;
        let mut sockets = Vec::new();
        match read_into(&mut sockets, &self.socket.recv_from_full()?.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            outcome => outcome.map(|_| sockets.pop()),
        }
    }

    /// All open TCP connections of an IP version, including MPTCP subflows, followed by those that have been destroyed.
    pub fn dump(&mut self, is_v6: bool) -> io::Result<Vec<SocketInfo>> {
        self.socket.send(&dump_request(is_v6), 0)?;
        let mut sockets = Vec::new();
        while !read_into(&mut sockets, &self.socket.recv_from_full()?.0)? {}
        while let Some(destroy_notifications) = &self.destroy_notifications {
            match destroy_notifications.recv_from_full() {
                Ok((words, _)) => read_into(&mut self.destroyed, &words)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
        }
        sockets.extend(self.destroyed.iter().cloned());
        Ok(sockets)
    }
}

/// Adds the connections of a netlink datagram; returns whether it was the last of a dump.
fn read_into(sockets: &mut Vec<SocketInfo>, datagram: &[u8]) -> io::Result<bool> {
    let mut remaining = datagram;
    while !remaining.is_empty() {
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(remaining).map_err(io::Error::other)?;
        let length = (message.header.length as usize).next_multiple_of(4).clamp(4, remaining.len());
        remaining = &remaining[length..];
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                sockets.extend(connection(*response));
            }
            _ => {}
        }
    }
    Ok(false)
}

fn connection(answer: InetResponse) -> Option<SocketInfo> {
    let id = &answer.header.socket_id;
    let local = SocketAddr::new(id.source_address, id.source_port);
    let remote = SocketAddr::new(id.destination_address, id.destination_port);
    let token = answer.nlas.iter().find_map(|nla| match nla {
        Nla::Other(other) if other.kind() == ULP_INFO => token(other),
        _ => None,
    });
    let congestion = answer.nlas.iter().find_map(|nla| match nla {
        Nla::Congestion(name) => Some(name.clone()),
        _ => None,
    });
    answer.nlas.into_iter().find_map(|nla| match nla {
        // A socket without a peer is a listener that was destroyed.
        Nla::TcpInfo(info) if remote.port() != 0 => {
            Some(SocketInfo { local, remote, info, congestion: congestion.clone().unwrap_or_default(), token })
        }
        _ => None,
    })
}

/// The local token in the ULP information of an MPTCP subflow.
fn token(ulp: &DefaultNla) -> Option<u32> {
    let mut value = vec![0; ulp.value_len()];
    ulp.emit_value(&mut value);
    let attribute = |bytes: &[u8], kind: u16| {
        let found = NlasIterator::new(bytes).flatten().find(|nla| nla.kind() & NLA_TYPE_MASK == kind);
        found.map(|nla| nla.value().to_vec())
    };
    let token = attribute(&attribute(&value, ULP_INFO_MPTCP)?, SUBFLOW_TOKEN_LOCAL)?;
    Some(u32::from_ne_bytes(token.try_into().ok()?))
}

fn dump_request(is_v6: bool) -> Vec<u8> {
    let socket_id = if is_v6 { SocketId::new_v6() } else { SocketId::new_v4() };
    request(is_v6, socket_id, NLM_F_REQUEST | NLM_F_DUMP)
}

fn find_request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let socket_id = SocketId {
        source_port: local.port(),
        destination_port: remote.port(),
        source_address: local.ip(),
        destination_address: remote.ip(),
        interface_id: 0,
        cookie: [0xff; 8],
    };
    request(local.is_ipv6(), socket_id, NLM_F_REQUEST)
}

fn request(is_v6: bool, socket_id: SocketId, flags: u16) -> Vec<u8> {
    let family = if is_v6 { AF_INET6 } else { AF_INET };
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO | ExtensionFlags::CONG,
        states: StateFlags::all() - StateFlags::LISTEN,
        socket_id,
    };
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}
