//! The counters of a flow's threads, shared with its sampler.

use super::Outcome;
use super::flow_sockets::{FlowSockDiag, sample_of};
use crate::protocol::{Sample, TcpInfo, TimeSummary};
use record::distribution::summary_of;
use sock_diag::SocketInfo;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The counters of a flow. An external program reports only when it ends.
#[derive(Default)]
pub(super) struct FlowCounters {
    /// Read by the receiving application, bytes.
    bytes: AtomicU64,
    /// UDP: datagrams sent.
    sent: AtomicU64,
    /// Delays of datagrams, or durations of requests, milliseconds.
    times: Mutex<Vec<f64>>,
    /// Time at which a flow of a given size was complete, counted from its start.
    pub(super) completion: OnceLock<Duration>,
    /// The sink's socket, once it has read all. It stays open until the process ends, so that the kernel still knows
    /// the connection. None for an external program.
    ended: OnceLock<Option<TcpStream>>,
    connections: Mutex<Connections>,
}

/// A flow's connections: one, or one after the other.
#[derive(Default)]
pub(super) struct Connections {
    current: Option<CurrentConnection>,
    /// The counters of closed connections.
    closed: Sample,
    /// Whether the flow's stop has passed.
    stopped: bool,
}

/// The current connection.
struct CurrentConnection {
    ends: ConnectionAddresses,
    /// The agent's own socket, and how it is shut down.
    stream: Option<(Arc<TcpStream>, Shutdown)>,
}

/// The addresses of a connection's source and, if known, sink; with MPTCP those of the first subflow.
#[derive(Clone, Copy)]
pub(super) struct ConnectionAddresses {
    pub(super) source: SocketAddr,
    sink: Option<SocketAddr>,
}

impl FlowCounters {
    /// Counts bytes that the sink has read; returns the total.
    pub(super) fn read(&self, bytes: u64) -> u64 {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    pub(super) fn delivered(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts a sent datagram.
    pub(super) fn send(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Adds the delay of a datagram, or the duration of a request.
    pub(super) fn add_time(&self, duration: Duration) {
        lock(&self.times).push(duration.as_secs_f64() * 1e3);
    }

    /// The number of delays or durations so far.
    pub(super) fn count(&self) -> u64 {
        lock(&self.times).len() as u64
    }

    /// A summary of the first `count` delays or durations.
    pub(super) fn times(&self, count: u64) -> TimeSummary {
        let mut times = lock(&self.times).clone();
        times.truncate(count as usize);
        TimeSummary { count: times.len() as u64, summary: summary_of(times) }
    }

    /// Called when the sink has read all.
    pub(super) fn end(&self, stream: Option<TcpStream>) {
        self.ended.get_or_init(|| stream);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Sets the address from which an external program will connect.
    pub(super) fn expect_connection(&self, source: SocketAddr) {
        self.connections().current =
            Some(CurrentConnection { ends: ConnectionAddresses { source, sink: None }, stream: None });
    }

    /// Makes an established connection the current one; `stream` is the source's end or the sink's.
    pub(super) fn open(&self, stream: TcpStream, is_source: bool) -> Outcome<Arc<TcpStream>> {
        let (local, remote) = (stream.local_addr()?, stream.peer_addr()?);
        let (source, sink, shutdown) =
            if is_source { (local, remote, Shutdown::Write) } else { (remote, local, Shutdown::Both) };
        let stream = Arc::new(stream);
        let mut connections = self.connections();
        let ends = ConnectionAddresses { source, sink: Some(sink) };
        connections.current = Some(CurrentConnection { ends, stream: Some((stream.clone(), shutdown)) });
        if connections.stopped {
            connections.stop();
        }
        Ok(stream)
    }

    /// Closes the current connection and keeps its counters.
    pub(super) fn close(&self, stream: Arc<TcpStream>, hosts: &mut FlowSockDiag) -> Outcome<()> {
        let mut connections = self.connections();
        let (mut last, closed) = (Sample::default(), connections.closed);
        if let Some(ends) = connections.ends() {
            let [sources, sinks] = hosts.dump(ends.source.is_ipv6())?;
            last = sources
                .iter()
                .find(|socket| ends.is_source_of(socket))
                .map_or(last, |socket| sample_of(socket, &sinks));
        }
        connections.closed = sum(&closed, last);
        connections.current = None;
        drop(stream);
        Ok(())
    }

    /// Locks the connections: none is opened or closed while the lock is held.
    pub(super) fn connections(&self) -> MutexGuard<'_, Connections> {
        lock(&self.connections)
    }
}

impl Connections {
    /// The addresses of the current connection.
    pub(super) fn ends(&self) -> Option<ConnectionAddresses> {
        self.current.as_ref().map(|current| current.ends)
    }

    /// Adds the counters of the closed connections to `sample`, which is of the current connection.
    pub(super) fn with_closed(&self, sample: Sample) -> Sample {
        sum(&self.closed, sample)
    }

    pub(super) fn have_stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
        if let Some((stream, shutdown)) = self.current.as_ref().and_then(|current| current.stream.as_ref()) {
            let _ = stream.shutdown(*shutdown); // fails if the connection has already ended
        }
    }
}

impl ConnectionAddresses {
    /// Whether `socket` is the source's socket of this connection.
    pub(super) fn is_source_of(&self, socket: &SocketInfo) -> bool {
        socket.local == self.source && self.sink.is_none_or(|sink| socket.remote == sink)
    }
}

/// The counters of closed connections, and the state of the current one.
fn sum(closed: &Sample, current: Sample) -> Sample {
    let tcp = match (closed.tcp, current.tcp) {
        (Some(closed), Some(current)) => Some(current.with_closed(&closed)),
        (closed, current) => current.or(closed.map(TcpInfo::counters)),
    };
    let (arrived, received) = (closed.arrived + current.arrived, closed.received + current.received);
    Sample { tcp, arrived, received, ..current }
}

/// Locks even if a thread has panicked: its flow then stops, which the samples show.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_closed_connections_are_kept_and_their_state_is_not() {
        let sample = |sent, snd_cwnd| {
            let tcp = TcpInfo { sent, snd_cwnd, rtt: 20_000, min_rtt: 19_000 - sent, ..TcpInfo::default() };
            Sample { arrived: sent, tcp: Some(tcp), ..Sample::default() }
        };
        let closed = sum(&sum(&Sample::default(), sample(10, 4)), sample(5, 6));
        let without_connections = sum(&closed, Sample::default());
        let tcp = without_connections.tcp.expect("there were connections");
        assert_eq!((tcp.sent, tcp.min_rtt, without_connections.arrived), (15, 18_990, 15));
        assert!(!tcp.is_established() && tcp.rtt == 0, "there is no connection now");
        let current = sum(&closed, sample(7, 9)).tcp.expect("there is one");
        assert_eq!((current.sent, current.snd_cwnd, current.is_established()), (22, 9, true));
    }
}
