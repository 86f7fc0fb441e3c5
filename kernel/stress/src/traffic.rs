//! Connections from client to server, and the sink that reads them.

use crate::network::{Host, Network};
use crate::observe::{list_sockets, sockets};
use crate::trial::wait_until;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum time of a socket's call before its thread checks whether to stop.
const POLL: Duration = Duration::from_millis(100);
/// Maximum time of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The server's sink: accepts, and reads until each connection's end.
#[derive(Debug)]
pub struct Sink {
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The counters of a sink.
#[derive(Debug, Default)]
struct Counters {
    bytes: AtomicU64,
    accepted: AtomicU64,
    ended: AtomicU64,
}

impl Sink {
    /// Starts it in the server.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn start(network: &Network) -> Result<Self, String> {
        let (counters, stop) = (Arc::new(Counters::default()), Arc::new(AtomicBool::new(false)));
        let (ready, listening) = std::sync::mpsc::channel();
        let (of_thread, stop_of_thread) = (counters.clone(), stop.clone());
        let thread = network.spawn(Host::Server, move || match listen() {
            Ok(listener) => {
                let _ = ready.send(Ok(()));
                accept(&listener, &of_thread, &stop_of_thread);
            }
            Err(error) => drop(ready.send(Err(format!("the sink cannot listen: {error}")))),
        });
        listening.recv().map_err(|error| error.to_string())??;
        Ok(Self { counters, stop, thread: Some(thread) })
    }

    /// Bytes that it has read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.counters.bytes.load(Ordering::Relaxed)
    }

    /// Connections that it has accepted.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.counters.accepted.load(Ordering::Relaxed)
    }

    /// Connections that have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.counters.ended.load(Ordering::Relaxed)
    }

    /// Ends the sink after the connections that the client has closed, and waits until no socket of either host is
    /// left.
    ///
    /// The sink reads all remaining data: if it closed earlier, the client would probe a closed window for minutes, at
    /// doubling intervals. So would a client whose network is removed before its sockets are closed.
    ///
    /// # Errors
    /// The sockets that are left.
    pub fn close(self, network: &Network) -> Result<(), String> {
        let hosts = [Host::Client, Host::Server];
        let ended = wait_until(|| self.ended() == self.accepted());
        drop(self);
        if ended && wait_until(|| hosts.iter().all(|host| sockets(network, *host) == Ok(0))) {
            return Ok(());
        }
        let left: String = hosts.iter().map(|host| list_sockets(network, *host)).collect();
        Err(format!("sockets are left:\n{left}"))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen() -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from(([0, 0, 0, 0], crate::network::PORT)).into())?;
    socket.listen(1024)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn accept(listener: &Socket, counters: &Arc<Counters>, stop: &Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let Ok((socket, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        counters.accepted.fetch_add(1, Ordering::Relaxed);
        let (counters, stop) = (counters.clone(), stop.clone());
        std::thread::spawn(move || {
            let _ = socket.set_nonblocking(false);
            let _ = socket.set_read_timeout(Some(POLL));
            drain(&mut TcpStream::from(socket), &counters.bytes, &stop);
            counters.ended.fetch_add(1, Ordering::Relaxed);
        });
    }
}

fn drain(stream: &mut TcpStream, bytes: &AtomicU64, stop: &AtomicBool) {
    let mut buffer = vec![0; 1 << 18];
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => drop(bytes.fetch_add(read as u64, Ordering::Relaxed)),
            Err(error) if is_timeout(error.kind()) => {}
            Err(_) => return,
        }
    }
}

fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The protocol that a connection asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Multipath TCP.
    Mptcp,
    /// Plain TCP.
    Tcp,
}

/// A connection to the sink.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects from this thread's host, by the first link, with a congestion control from the start.
    ///
    /// # Errors
    /// If the kernel has no such algorithm, or the handshake does not succeed.
    pub fn open(kind: Kind, congestion: &str) -> Result<Self, String> {
        Self::open_by(0, kind, congestion)
    }

    /// As [`Connection::open`], by another link.
    ///
    /// # Errors
    /// As there.
    pub fn open_by(link: usize, kind: Kind, congestion: &str) -> Result<Self, String> {
        let io_error = |error: std::io::Error| format!("{congestion}: {error}");
        let protocol = if kind == Kind::Mptcp { Protocol::MPTCP } else { Protocol::TCP };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).map_err(io_error)?;
        socket.set_tcp_congestion(congestion.as_bytes()).map_err(io_error)?;
        socket.bind(&SocketAddr::from((Network::client_address(link), 0)).into()).map_err(io_error)?;
        socket.connect_timeout(&Network::server().into(), HANDSHAKE).map_err(io_error)?;
        socket.set_write_timeout(Some(POLL)).map_err(io_error)?;
        Ok(Self { stream: socket.into() })
    }

    /// The connection's congestion control.
    ///
    /// # Errors
    /// If the connection no longer has a socket.
    pub fn congestion(&self) -> Result<String, String> {
        let name = SockRef::from(&self.stream).tcp_congestion().map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
    }

    /// Switches to another congestion control, on all subflows.
    ///
    /// # Errors
    /// If the kernel has no such algorithm.
    pub fn switch(&self, congestion: &str) -> Result<(), String> {
        let socket = SockRef::from(&self.stream);
        socket.set_tcp_congestion(congestion.as_bytes()).map_err(|error| format!("{congestion}: {error}"))
    }

    /// Makes the connection end with a reset instead of sending its remaining data.
    pub fn reset_on_close(&self) {
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }

    /// Sends bytes; fewer if `stop` returns true or the connection breaks. Returns the number of bytes sent.
    pub fn send(&mut self, bytes: u64, stop: &dyn Fn() -> bool) -> u64 {
        let buffer = vec![0; 1 << 17];
        let mut sent = 0;
        while sent < bytes && !stop() {
            let part = buffer.len().min(usize::try_from(bytes - sent).unwrap_or(usize::MAX));
            match self.stream.write(&buffer[..part]) {
                Ok(written) => sent += written as u64,
                Err(error) if is_timeout(error.kind()) => {}
                Err(_) => break,
            }
        }
        sent
    }
}
