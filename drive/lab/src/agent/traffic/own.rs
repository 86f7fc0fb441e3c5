//! A bulk TCP or MPTCP flow of the agent's own: a source that writes as fast as it may, a sink that reads at once.

use super::{Flow, Outcome, enter, within};
use crate::plan::Traffic;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes written or read at once, as iperf3 does.
const BLOCK: usize = 128 * 1024;
/// The kernel's own backlog of connections to accept.
const BACKLOG: i32 = 8;

/// A flow of the agent's own.
pub(super) struct Own {
    traffic: Traffic,
    stream: Arc<OnceLock<TcpStream>>,
    tally: Arc<Tally>,
}

/// What the sink has read.
#[derive(Default)]
struct Tally {
    bytes: AtomicU64,
    completion: OnceLock<Duration>,
    /// The sink's end of the connection, once it has read all. It stays open until the process ends, so that the kernel
    /// can still be asked about the connection.
    ended: OnceLock<TcpStream>,
}

impl Own {
    pub(super) fn new(traffic: &Traffic) -> Self {
        Self { traffic: traffic.clone(), stream: Arc::default(), tally: Arc::default() }
    }
}

impl Flow for Own {
    /// Starts the flow's threads, which end with the process. If one fails, its flow stands still, and the samples show it.
    fn begin(&self, start: Instant) -> Outcome<()> {
        let (traffic, stream, tally) = (self.traffic.clone(), self.stream.clone(), self.tally.clone());
        let (listener, size) = (within(&traffic.sides[1].space, || listen(&traffic))?, traffic.size);
        thread::spawn(move || tally.receive(&listener, size, start));
        thread::spawn(move || send(&traffic, start, &stream));
        Ok(())
    }

    fn source(&self) -> Option<SocketAddr> {
        self.stream.get()?.local_addr().ok()
    }

    fn delivered(&self) -> Option<u64> {
        Some(self.tally.bytes.load(Ordering::Relaxed))
    }

    fn completion(&self) -> Option<Duration> {
        self.tally.completion.get().copied()
    }

    fn has_ended(&self) -> bool {
        self.tally.ended.get().is_some()
    }

    fn stop(&self) {
        if let Some(stream) = self.stream.get() {
            let _ = stream.shutdown(Shutdown::Write); // fails where the connection has gone by itself
        }
    }

    fn finish(&self) -> Outcome<()> {
        Ok(())
    }
}

impl Tally {
    fn receive(&self, listener: &TcpListener, size: Option<u64>, start: Instant) -> Outcome<()> {
        let (mut stream, _) = listener.accept()?;
        let mut block = vec![0; BLOCK];
        loop {
            let bytes = stream.read(&mut block)? as u64;
            let all = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
            if size.is_some_and(|size| all >= size) {
                self.completion.get_or_init(|| start.elapsed());
            }
            if bytes == 0 {
                self.ended.get_or_init(|| stream);
                return Ok(());
            }
        }
    }
}

/// A socket with the flow's congestion control. Set there it needs no more than this process's privileges; as a default of
/// the namespace it would have to be allowed for the whole machine.
fn socket(traffic: &Traffic) -> Outcome<Socket> {
    let protocol = if traffic.subflows.is_some() { Protocol::MPTCP } else { Protocol::TCP };
    let socket = Socket::new(Domain::for_address(traffic.sides[1].address), Type::STREAM, Some(protocol))?;
    let set = socket.set_tcp_congestion(traffic.congestion.as_bytes());
    set.map_err(|why| format!("no congestion control {}: {why}", traffic.congestion))?;
    Ok(socket)
}

/// Subflows of MPTCP come to all addresses of the host.
fn listen(traffic: &Traffic) -> Outcome<TcpListener> {
    let mut address = traffic.sides[1].address;
    if traffic.subflows.is_some() {
        address.set_ip(if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() });
    }
    let socket = socket(traffic)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn send(traffic: &Traffic, start: Instant, slot: &OnceLock<TcpStream>) -> Outcome<()> {
    enter(&traffic.sides[0].space)?;
    thread::sleep(start.saturating_duration_since(Instant::now()));
    let socket = socket(traffic)?;
    socket.connect(&traffic.sides[1].address.into())?;
    let mut stream = slot.get_or_init(|| socket.into());
    let block = vec![0; BLOCK];
    let mut left = traffic.size.unwrap_or(u64::MAX);
    while left > 0 {
        let part = left.min(BLOCK as u64);
        stream.write_all(&block[..part as usize])?;
        left -= part;
    }
    Ok(stream.shutdown(Shutdown::Write)?)
}
