//! Traffic through the tunnel: a TCP connection whose every byte is compared, and echoed datagrams.

use crate::tunnel_pair::TunnelPair;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use testing::{MINUTE, eventually};

/// The next port of a listener: no port is used twice.
static PORTS: AtomicU16 = AtomicU16::new(5000);

/// Byte `8 n + k` of the content is byte `k` of the `n`-th number of SplitMix64, so that no position looks like
/// another.
fn fill(from: u64, block: &mut [u8]) {
    for (number, word) in (from / 8..).zip(block.chunks_exact_mut(8)) {
        let mut z = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
}

/// The receiver's state.
#[derive(Debug, Default)]
pub(crate) struct ReceiverState {
    /// Bytes received, all of them correct.
    pub(crate) bytes: AtomicU64,
    stopped: AtomicBool,
}

/// A transfer through the tunnel on threads of its own.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) state: Arc<ReceiverState>,
    threads: [JoinHandle<()>; 2],
}

impl Transfer {
    /// Sends `bytes`, a multiple of 64 KiB, over one TCP connection from a host to the other one.
    pub(crate) fn start(pair: &TunnelPair, from: usize, bytes: u64) -> Self {
        let address = SocketAddr::new(pair.families.inner_address(1 - from), PORTS.fetch_add(1, Relaxed));
        let listener = pair.testbed.within(1 - from, || Ok(TcpListener::bind(address)?)).unwrap();
        let outgoing = pair.testbed.within(from, || Ok(TcpStream::connect_timeout(&address, MINUTE)?)).unwrap();
        let (incoming, _) = listener.accept().unwrap();
        incoming.set_read_timeout(Some(MINUTE)).unwrap();
        outgoing.set_write_timeout(Some(MINUTE)).unwrap();
        let state = Arc::new(ReceiverState::default());
        let (sending, receiving) = (Arc::clone(&state), Arc::clone(&state));
        let threads = [
            thread::spawn(move || send(outgoing, bytes, &sending)),
            thread::spawn(move || receive(incoming, &receiving)),
        ];
        Self { state, threads }
    }

    /// As [`Transfer::start`], until it is stopped.
    pub(crate) fn endless(pair: &TunnelPair, from: usize) -> Self {
        Self::start(pair, from, u64::MAX)
    }

    /// Waits until so many more bytes have arrived.
    pub(crate) fn wait_for(&self, bytes: u64) {
        let prior_bytes = self.state.bytes.load(Relaxed);
        assert!(eventually(|| self.state.bytes.load(Relaxed) >= prior_bytes + bytes), "{bytes} bytes do not arrive");
    }

    /// Ends an endless transfer; returns the bytes received.
    pub(crate) fn stop(self) -> u64 {
        self.state.stopped.store(true, Relaxed);
        self.finish()
    }

    /// Waits for the end; returns the bytes received.
    pub(crate) fn finish(self) -> u64 {
        let [sending, receiving] = self.threads;
        receiving.join().expect("every byte is correct");
        sending.join().expect("the connection holds");
        self.state.bytes.load(Relaxed)
    }
}

fn send(mut stream: TcpStream, bytes: u64, state: &ReceiverState) {
    let (mut block, mut position) = (vec![0; 1 << 16], 0);
    while position < bytes && !state.stopped.load(Relaxed) {
        fill(position, &mut block);
        stream.write_all(&block).expect("the connection holds");
        position += block.len() as u64;
    }
}

fn receive(mut stream: TcpStream, state: &ReceiverState) {
    let (mut block, mut expected) = (vec![0; 1 << 16], vec![0; (1 << 16) + 16]);
    let mut position = 0;
    loop {
        let bytes = stream.read(&mut block).expect("the connection holds");
        if bytes == 0 {
            return;
        }
        let skip = (position % 8) as usize;
        let len = (skip + bytes).next_multiple_of(8);
        fill(position - skip as u64, &mut expected[..len]);
        assert!(block[..bytes] == expected[skip..skip + bytes], "a wrong byte after {position} correct ones");
        position += bytes as u64;
        state.bytes.store(position, Relaxed);
    }
}

/// Datagrams through the tunnel that the other host sends back.
#[derive(Debug)]
pub(crate) struct EchoClient {
    client: UdpSocket,
    server: Option<JoinHandle<()>>,
    stopped: Arc<AtomicBool>,
    count: u32,
}

impl EchoClient {
    /// A client on a host, and a server on the other one.
    pub(crate) fn start(pair: &TunnelPair, from: usize) -> Self {
        let port = PORTS.fetch_add(1, Relaxed);
        let socket = |host| {
            let address = SocketAddr::new(pair.families.inner_address(host), port);
            let socket = pair.testbed.within(host, || Ok(UdpSocket::bind(address)?)).unwrap();
            socket.connect(SocketAddr::new(pair.families.inner_address(1 - host), port)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            socket
        };
        let (client, server_socket) = (socket(from), socket(1 - from));
        let stopped = Arc::new(AtomicBool::new(false));
        let server_stopped = Arc::clone(&stopped);
        let server = thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !server_stopped.load(Relaxed) {
                // A timeout, or the tunnel is down: then the answer is lost.
                let _ = server_socket.recv(&mut buffer).and_then(|bytes| server_socket.send(&buffer[..bytes]));
            }
        });
        Self { client, server: Some(server), stopped, count: 0 }
    }

    /// Sends datagrams until one has come back: an answer may be lost, or late on a busy machine.
    pub(crate) fn gets_answer(&mut self) -> bool {
        eventually(|| self.exchange())
    }

    /// Datagrams sent.
    pub(crate) fn sent_datagrams(&self) -> u64 {
        self.count.into()
    }

    /// Sends a datagram of 1000 bytes; whether it came back within 200 ms.
    fn exchange(&mut self) -> bool {
        self.count += 1;
        let mut request = [0; 1000];
        request[..4].copy_from_slice(&self.count.to_le_bytes());
        let start = Instant::now();
        let mut buffer = [0; 2048];
        if self.client.send(&request).is_err() {
            return false;
        }
        while start.elapsed() < Duration::from_millis(200) {
            match self.client.recv(&mut buffer) {
                Ok(bytes) if buffer[..bytes] == request => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        false
    }
}

impl Drop for EchoClient {
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
        let _ = self.server.take().map(JoinHandle::join);
    }
}
