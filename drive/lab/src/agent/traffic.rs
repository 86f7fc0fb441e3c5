//! A flow under way: the threads of its source and its sink.

use super::tally::{Connections, Tally};
use super::{Outcome, datagrams, requests, stream};
use crate::plan::{Application, Kind, Tcp, Times, Traffic};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

/// The kernel's own backlog of connections to accept.
const BACKLOG: i32 = 8;

/// A flow under way. Its threads end with the process.
pub(super) struct Flow(Arc<Tally>);

impl Flow {
    /// Starts the threads of a flow; its traffic begins at `start` and does not go on after `end`.
    pub(super) fn begin(traffic: &Traffic, start: Instant, end: Instant) -> Outcome<Self> {
        let tally = Arc::<Tally>::default();
        let sides = traffic.sides.clone();
        match &traffic.kind {
            Kind::Udp(udp) => datagrams::begin(*udp, sides, [start, end], &tally)?,
            Kind::Tcp(tcp) => match &tcp.application {
                Application::Requests { requests, seed, name } => {
                    requests::begin(tcp, sides, start, (*requests, *seed, name), &tally)?;
                }
                Application::Greedy | Application::Steady { .. } => stream::begin(tcp, sides, start, &tally)?,
            },
        }
        Ok(Self(tally))
    }

    /// Its connections, for a look.
    pub(super) fn connections(&self) -> MutexGuard<'_, Connections> {
        self.0.connections()
    }

    /// Bytes that the sink has read; of UDP with their headers.
    pub(super) fn delivered(&self) -> u64 {
        self.0.delivered()
    }

    /// Datagrams sent.
    pub(super) fn sent(&self) -> u64 {
        self.0.sent()
    }

    /// Datagrams that have arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.0.count()
    }

    /// Times of datagrams or requests.
    pub(super) fn times(&self) -> Times {
        self.0.times()
    }

    /// When all of a flow of a size had been read, from its start.
    pub(super) fn completion(&self) -> Option<Duration> {
        self.0.completion.get().copied()
    }

    /// The sink has read all that there will be.
    pub(super) fn has_ended(&self) -> bool {
        self.0.ended.get().is_some()
    }

    /// The source writes no more.
    pub(super) fn stop(&self) {
        self.0.connections().stop();
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
