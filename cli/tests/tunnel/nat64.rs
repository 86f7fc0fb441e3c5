//! A network's NAT64 for UDP to the server, and its resolver that tells the prefix, on the router of [`Internet`].

use crate::internet::{Internet, ROUTER, SERVER_ADDRESS};
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a thread waits for datagrams before it looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(2);

/// A thread that ends with this value.
struct Service {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Calls `serve` again and again.
    fn new(mut serve: impl FnMut() + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let is_told = Arc::clone(&is_over);
        let work = move || {
            while !is_told.load(Ordering::Relaxed) {
                serve();
            }
        };
        Self { is_over, thread: Some(thread::spawn(work)) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A socket of a host.
fn socket(internet: &Internet, host: usize, address: &str) -> UdpSocket {
    let address: SocketAddr = address.parse().unwrap();
    let socket = internet.testbed.within(host, move || Ok(UdpSocket::bind(address)?)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Datagrams to an address go to the server, each sender's from a port of its own, and the answers back.
pub(crate) struct Translator {
    _service: Service,
}

impl Translator {
    pub(crate) fn new(internet: &Internet, address: &str) -> Self {
        let front = socket(internet, ROUTER, address);
        // The sockets of senders, which are made in the router's namespace: a few are enough.
        let mut free: Vec<UdpSocket> = (0..16).map(|_| socket(internet, ROUTER, "0.0.0.0:0")).collect();
        let mut mappings: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
        let server = format!("{SERVER_ADDRESS}:4754");
        let serve = move || {
            let mut buffer = [0; 65_536];
            if let Ok((len, source)) = front.recv_from(&mut buffer) {
                if !mappings.contains_key(&source) {
                    mappings.extend(free.pop().map(|socket| (source, socket)));
                }
                let _ = mappings.get(&source).map(|socket| socket.send_to(&buffer[..len], &server));
            }
            for (source, socket) in &mappings {
                while let Ok(len) = socket.recv(&mut buffer) {
                    let _ = front.send_to(&buffer[..len], source);
                }
            }
        };
        Self { _service: Service::new(serve) }
    }
}

/// A resolver that answers everything with the addresses of `ipv4only.arpa` in a prefix of 96 bits.
pub(crate) struct Resolver {
    _service: Service,
}

impl Resolver {
    /// At the router.
    pub(crate) fn new(internet: &Internet, address: &str, prefix: &str) -> Self {
        Self::at(internet, ROUTER, address, prefix)
    }

    pub(crate) fn at(internet: &Internet, host: usize, address: &str, prefix: &str) -> Self {
        let socket = socket(internet, host, address);
        let mut octets = prefix.parse::<Ipv6Addr>().unwrap().octets();
        octets[12..].copy_from_slice(&[192, 0, 0, 170]);
        let serve = move || {
            let mut buffer = [0; 512];
            let Ok((len, source)) = socket.recv_from(&mut buffer) else { return };
            let mut answer = buffer[..len].to_vec();
            // A response with one answer: the name of the question, AAAA, IN, 60 s, 16 bytes.
            (answer[2], answer[3], answer[7]) = (0x81, 0x80, 1);
            answer.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
            answer.extend(octets);
            let _ = socket.send_to(&answer, source);
        };
        Self { _service: Service::new(serve) }
    }
}
