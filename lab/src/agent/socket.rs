//! Sockets of a flow's own connections.

use super::Outcome;
use crate::protocol::TcpSpec;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// The length of a listener's accept queue.
const BACKLOG: i32 = 8;

/// A socket with the flow's congestion control. A socket option needs only this process's privileges; to be a namespace's
/// default, the algorithm would have to be allowed on the whole machine.
pub(super) fn socket(tcp: &TcpSpec, address: SocketAddr) -> Outcome<Socket> {
    let protocol = if tcp.subflows.is_some() { Protocol::MPTCP } else { Protocol::TCP };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
    let set = socket.set_tcp_congestion(tcp.congestion.as_bytes());
    set.map_err(|error| format!("no congestion control {}: {error}", tcp.congestion))?;
    // An MPTCP socket takes any name and reports no error if the kernel has no such algorithm.
    let (wanted, actual) = (tcp.congestion.as_bytes(), socket.tcp_congestion()?);
    if actual.split(|byte| *byte == 0).next() != Some(wanted) {
        let actual = String::from_utf8_lossy(&actual).trim_end_matches('\0').to_owned();
        return Err(format!("no congestion control {}: the socket uses {actual}", tcp.congestion).into());
    }
    Ok(socket)
}

/// A listener; with MPTCP on all addresses of the host, for its subflows.
pub(super) fn listen(tcp: &TcpSpec, mut address: SocketAddr) -> Outcome<TcpListener> {
    if tcp.subflows.is_some() {
        address.set_ip(if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() });
    }
    let socket = socket(tcp, address)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
