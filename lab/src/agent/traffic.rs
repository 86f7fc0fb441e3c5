//! A flow's traffic, whoever makes it: the threads of a source and a sink of our own, or programs.

use super::tally::Tally;
use super::tool::Tool;
use super::{Outcome, datagrams, requests, stream};
use crate::plan::{Application, Kind, Tcp, Traffic};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Instant;

/// The kernel's own backlog of connections to accept.
const BACKLOG: i32 = 8;

/// A flow under way, or about to be.
pub(super) trait Flow {
    /// Its traffic begins at `start`, which is yet to come, and does not go on after `end`.
    fn begin(&self, times: [Instant; 2]) -> Outcome<()>;

    /// Its account.
    fn tally(&self) -> &Tally;

    /// The source writes no more.
    fn stop(&self);

    /// The run is over. Comes back when the flow no longer needs the network; tells what went wrong with it.
    fn finish(&self) -> Outcome<()>;
}

/// A flow of the agent's own.
struct Own {
    traffic: Traffic,
    tally: Arc<Tally>,
}

/// A flow that is ready to begin.
pub(super) fn open(traffic: &Traffic) -> Outcome<Box<dyn Flow>> {
    Ok(match traffic.tool() {
        Some((tcp, tool)) => Box::new(Tool::open(traffic, tcp, tool)?),
        None => Box::new(Own { traffic: traffic.clone(), tally: Arc::default() }),
    })
}

impl Flow for Own {
    /// Starts the flow's threads, which end with the process.
    fn begin(&self, [start, end]: [Instant; 2]) -> Outcome<()> {
        let (sides, tally) = (self.traffic.sides.clone(), &self.tally);
        match &self.traffic.kind {
            Kind::Udp(udp) => datagrams::begin(*udp, sides, [start, end], tally),
            Kind::Tcp(tcp) => match &tcp.application {
                Application::Requests { requests, seed, name } => {
                    requests::begin(tcp, sides, start, (*requests, *seed, name), tally)
                }
                _ => stream::begin(tcp, sides, start, tally),
            },
        }
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn stop(&self) {
        self.tally.connections().stop();
    }

    fn finish(&self) -> Outcome<()> {
        Ok(())
    }
}

/// A socket with the flow's congestion control. Set there it needs no more than this process's privileges; as a default of
/// the namespace it would have to be allowed for the whole machine.
pub(super) fn socket(tcp: &Tcp, address: SocketAddr) -> Outcome<Socket> {
    let protocol = if tcp.subflows.is_some() { Protocol::MPTCP } else { Protocol::TCP };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
    let set = socket.set_tcp_congestion(tcp.congestion.as_bytes());
    set.map_err(|why| format!("no congestion control {}: {why}", tcp.congestion))?;
    Ok(socket)
}

/// Subflows of MPTCP come to all addresses of the host.
pub(super) fn listen(tcp: &Tcp, mut address: SocketAddr) -> Outcome<TcpListener> {
    if tcp.subflows.is_some() {
        address.set_ip(if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() });
    }
    let socket = socket(tcp, address)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
