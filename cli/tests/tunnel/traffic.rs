//! What runs through the tunnel: a TCP connection whose every byte is compared, and echoed datagrams.

use crate::ends::Ends;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use testing::{MINUTE, eventually};

/// Ports of the tests' listeners, so that a closed connection's does not matter.
static PORTS: AtomicU16 = AtomicU16::new(5000);

/// Byte `8 n + k` of the content is byte `k` of the `n`-th number of SplitMix64: no place looks like another one.
fn fill(from: u64, block: &mut [u8]) {
    for (number, word) in (from / 8..).zip(block.chunks_exact_mut(8)) {
        let mut z = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
}

/// What the receiver saw so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Bytes, all of them right.
    pub(crate) bytes: AtomicU64,
    stopped: AtomicBool,
}

/// A transfer through the tunnel that goes on by itself.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) tally: Arc<Tally>,
    threads: [JoinHandle<()>; 2],
}

impl Transfer {
    /// Sends `bytes`, a multiple of 64 KiB, over one TCP connection from a host to the other one.
    pub(crate) fn start(ends: &Ends, from: usize, bytes: u64) -> Self {
        let address = SocketAddr::new(ends.plan.inside(1 - from), PORTS.fetch_add(1, Relaxed));
        let listener = ends.testbed.within(1 - from, || Ok(TcpListener::bind(address)?)).unwrap();
        let outgoing = ends.testbed.within(from, || Ok(TcpStream::connect_timeout(&address, MINUTE)?)).unwrap();
        let (incoming, _) = listener.accept().unwrap();
        incoming.set_read_timeout(Some(MINUTE)).unwrap();
        outgoing.set_write_timeout(Some(MINUTE)).unwrap();
        let tally = Arc::new(Tally::default());
        let (sending, receiving) = (Arc::clone(&tally), Arc::clone(&tally));
        let threads = [
            thread::spawn(move || send(outgoing, bytes, &sending)),
            thread::spawn(move || receive(incoming, &receiving)),
        ];
        Self { tally, threads }
    }

    /// As [`Transfer::start`], until it is stopped.
    pub(crate) fn endless(ends: &Ends, from: usize) -> Self {
        Self::start(ends, from, u64::MAX)
    }

    /// Until so many more bytes have come.
    pub(crate) fn wait_for(&self, bytes: u64) {
        let before = self.tally.bytes.load(Relaxed);
        assert!(eventually(|| self.tally.bytes.load(Relaxed) >= before + bytes), "no {bytes} bytes come");
    }

    /// Ends an endless one; how many bytes came, all of them right.
    pub(crate) fn stop(self) -> u64 {
        self.tally.stopped.store(true, Relaxed);
        self.finish()
    }

    /// Waits for the end; how many bytes came, all of them right.
    pub(crate) fn finish(self) -> u64 {
        let [sending, receiving] = self.threads;
        receiving.join().expect("every byte is right");
        sending.join().expect("the connection holds");
        self.tally.bytes.load(Relaxed)
    }
}

fn send(mut stream: TcpStream, bytes: u64, tally: &Tally) {
    let (mut block, mut at) = (vec![0; 1 << 16], 0);
    while at < bytes && !tally.stopped.load(Relaxed) {
        fill(at, &mut block);
        stream.write_all(&block).expect("the connection holds");
        at += block.len() as u64;
    }
}

fn receive(mut stream: TcpStream, tally: &Tally) {
    let (mut block, mut right) = (vec![0; 1 << 16], vec![0; (1 << 16) + 16]);
    let mut at = 0;
    loop {
        let bytes = stream.read(&mut block).expect("the connection holds");
        if bytes == 0 {
            return;
        }
        let skip = (at % 8) as usize;
        let room = (skip + bytes).next_multiple_of(8);
        fill(at - skip as u64, &mut right[..room]);
        assert!(block[..bytes] == right[skip..skip + bytes], "a wrong byte behind {at} right ones");
        at += bytes as u64;
        tally.bytes.store(at, Relaxed);
    }
}

/// Datagrams through the tunnel that the other host sends back.
#[derive(Debug)]
pub(crate) struct Echo {
    here: UdpSocket,
    far: Option<JoinHandle<()>>,
    stopped: Arc<AtomicBool>,
    count: u32,
}

impl Echo {
    /// Asks from a host.
    pub(crate) fn start(ends: &Ends, from: usize) -> Self {
        let port = PORTS.fetch_add(1, Relaxed);
        let socket = |host| {
            let address = SocketAddr::new(ends.plan.inside(host), port);
            let socket = ends.testbed.within(host, || Ok(UdpSocket::bind(address)?)).unwrap();
            socket.connect(SocketAddr::new(ends.plan.inside(1 - host), port)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            socket
        };
        let (here, there) = (socket(from), socket(1 - from));
        let stopped = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stopped);
        let far = thread::spawn(move || {
            let mut room = [0; 2048];
            while !until.load(Relaxed) {
                // Nothing came, or the tunnel is away for a while: then the answer is lost.
                let _ = there.recv(&mut room).and_then(|bytes| there.send(&room[..bytes]));
            }
        });
        Self { here, far: Some(far), stopped, count: 0 }
    }

    /// Sends datagrams until one has come back: an answer may be lost, or late on a busy machine.
    pub(crate) fn answers(&mut self) -> bool {
        eventually(|| self.ask())
    }

    /// Datagrams sent.
    pub(crate) fn asked(&self) -> u64 {
        self.count.into()
    }

    /// Sends a datagram of 1000 bytes; whether it came back within 200 ms.
    fn ask(&mut self) -> bool {
        self.count += 1;
        let mut question = [0; 1000];
        question[..4].copy_from_slice(&self.count.to_le_bytes());
        let start = Instant::now();
        let mut room = [0; 2048];
        if self.here.send(&question).is_err() {
            return false;
        }
        while start.elapsed() < Duration::from_millis(200) {
            match self.here.recv(&mut room) {
                Ok(bytes) if room[..bytes] == question => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        false
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
        let _ = self.far.take().map(JoinHandle::join);
    }
}
