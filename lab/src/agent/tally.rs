//! What the threads of a flow have done, for those who ask.

use super::Outcome;
use super::tcp_info::{Connection, Hosts};
use crate::distribution::distribution;
use crate::plan::{Sample, TcpInfo, Times};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// A flow's account. A program that makes the traffic tells only at its end.
#[derive(Default)]
pub(super) struct Tally {
    /// Read by the receiving application, bytes.
    bytes: AtomicU64,
    /// UDP: datagrams sent.
    sent: AtomicU64,
    /// Of each datagram, or of each request, milliseconds.
    times: Mutex<Vec<f64>>,
    /// When a flow of a size had been read, from its start.
    pub(super) completion: OnceLock<Duration>,
    /// The sink's end of the connection, once it has read all. It stays open until the process ends, so that the kernel
    /// can still be asked about the connection. Programs keep theirs to themselves.
    ended: OnceLock<Option<TcpStream>>,
    connections: Mutex<Connections>,
}

/// A flow's connections: one, or one after the other.
#[derive(Default)]
pub(super) struct Connections {
    present: Option<Present>,
    /// The counts of those that are over.
    past: Sample,
    /// There are to be no more data.
    stopped: bool,
}

struct Present {
    ends: Ends,
    /// One of our own, and how it is stopped.
    stream: Option<(Arc<TcpStream>, Shutdown)>,
}

/// From where the data go, of MPTCP on the first subflow, and where to, if that is known.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) source: SocketAddr,
    sink: Option<SocketAddr>,
}

impl Tally {
    /// Bytes have been read. Returns all so far.
    pub(super) fn read(&self, bytes: u64) -> u64 {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    pub(super) fn delivered(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A datagram leaves.
    pub(super) fn send(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// A datagram has arrived, or a request's answer, after this time.
    pub(super) fn time(&self, took: Duration) {
        lock(&self.times).push(took.as_secs_f64() * 1e3);
    }

    /// How many there were so far.
    pub(super) fn count(&self) -> u64 {
        lock(&self.times).len() as u64
    }

    /// The first so many of them.
    pub(super) fn times(&self, count: u64) -> Times {
        let mut all = lock(&self.times).clone();
        all.truncate(count as usize);
        Times { count: all.len() as u64, summary: distribution(all) }
    }

    /// There will be no more.
    pub(super) fn end(&self, stream: Option<TcpStream>) {
        self.ended.get_or_init(|| stream);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// A program's connection will come from here.
    pub(super) fn expect(&self, source: SocketAddr) {
        self.connections().present = Some(Present { ends: Ends { source, sink: None }, stream: None });
    }

    /// A connection stands, of which this is the end of the data's source, or of its sink.
    pub(super) fn open(&self, stream: TcpStream, is_source: bool) -> Outcome<Arc<TcpStream>> {
        let (own, other) = (stream.local_addr()?, stream.peer_addr()?);
        let (source, sink, how) = if is_source { (own, other, Shutdown::Write) } else { (other, own, Shutdown::Both) };
        let stream = Arc::new(stream);
        let mut connections = self.connections();
        let ends = Ends { source, sink: Some(sink) };
        connections.present = Some(Present { ends, stream: Some((stream.clone(), how)) });
        if connections.stopped {
            connections.stop();
        }
        Ok(stream)
    }

    /// A connection is over: its counts stay.
    pub(super) fn close(&self, stream: Arc<TcpStream>, hosts: &mut Hosts) -> Outcome<()> {
        let mut connections = self.connections();
        let (mut last, past) = (Sample::default(), connections.past);
        if let Some(ends) = connections.ends() {
            let [sources, sinks] = hosts.ask(ends.source.is_ipv6())?;
            last = sources.iter().find(|it| ends.are_of(it)).map_or(last, |it| it.sample(&sinks));
        }
        connections.past = sum(&past, last);
        connections.present = None;
        drop(stream);
        Ok(())
    }

    /// While they are looked at none begins or ends.
    pub(super) fn connections(&self) -> MutexGuard<'_, Connections> {
        lock(&self.connections)
    }
}

impl Connections {
    /// Those of the present one.
    pub(super) fn ends(&self) -> Option<Ends> {
        self.present.as_ref().map(|present| present.ends)
    }

    /// `sample` of the present one, and all before it.
    pub(super) fn with_past(&self, sample: Sample) -> Sample {
        sum(&self.past, sample)
    }

    pub(super) fn have_stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
        if let Some((stream, how)) = self.present.as_ref().and_then(|present| present.stream.as_ref()) {
            let _ = stream.shutdown(*how); // fails where the connection has gone by itself
        }
    }
}

impl Ends {
    /// Whether it is the source's end of this connection.
    pub(super) fn are_of(&self, it: &Connection) -> bool {
        it.here == self.source && self.sink.is_none_or(|sink| it.there == sink)
    }
}

/// The counts of past connections, and what is known of the present one.
fn sum(past: &Sample, present: Sample) -> Sample {
    let tcp = match (past.tcp, present.tcp) {
        (Some(past), Some(present)) => Some(present.after(&past)),
        (past, present) => present.or(past.map(TcpInfo::counts)),
    };
    let (arrived, received) = (past.arrived + present.arrived, past.received + present.received);
    Sample { tcp, arrived, received, ..present }
}

/// A thread that has failed leaves a flow that stands still, which the samples show.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_past_connections_stay_and_their_state_does_not() {
        let of = |sent, window| {
            let tcp = TcpInfo { sent, window, rtt: 20_000, min_rtt: 19_000 - sent, ..TcpInfo::default() };
            Sample { arrived: sent, tcp: Some(tcp), ..Sample::default() }
        };
        let past = sum(&sum(&Sample::default(), of(10, 4)), of(5, 6));
        let idle = sum(&past, Sample::default());
        let tcp = idle.tcp.expect("there were connections");
        assert_eq!((tcp.sent, tcp.min_rtt, idle.arrived), (15, 18_990, 15));
        assert!(!tcp.stands() && tcp.rtt == 0, "there is none now");
        let present = sum(&past, of(7, 9)).tcp.expect("there is one");
        assert_eq!((present.sent, present.window, present.stands()), (22, 9, true));
    }
}
