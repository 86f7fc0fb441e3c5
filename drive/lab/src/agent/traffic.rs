//! A bulk TCP flow: a source that writes as fast as it may, a sink that reads at once.

use super::{Outcome, enter, within};
use crate::layout::{PORT, addresses};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

/// Bytes written or read at once, as iperf3 does.
const BLOCK: usize = 128 * 1024;

/// A flow under way.
pub(super) struct Flow {
    stream: Arc<OnceLock<TcpStream>>,
    delivered: Arc<AtomicU64>,
}

impl Flow {
    /// Starts the threads of flow `k`; its source connects at `start`.
    pub(super) fn begin(k: usize, start: Instant) -> Outcome<Self> {
        let [_, sink] = addresses(k);
        let listener = within(&format!("d{k}"), || Ok(TcpListener::bind((sink, PORT))?))?;
        let flow = Self { stream: Arc::default(), delivered: Arc::default() };
        let (stream, delivered) = (flow.stream.clone(), flow.delivered.clone());
        // The threads end with the process. If one fails, its flow stands still, and the samples show it.
        thread::spawn(move || receive(&listener, &delivered));
        thread::spawn(move || send(k, start, &stream));
        Ok(flow)
    }

    /// The addresses of source and sink, once they are connected.
    pub(super) fn ends(&self) -> Option<[SocketAddr; 2]> {
        let stream = self.stream.get()?;
        Some([stream.local_addr().ok()?, stream.peer_addr().ok()?])
    }

    /// Bytes that the sink has read.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// The source writes no more.
    pub(super) fn stop(&self) {
        if let Some(stream) = self.stream.get() {
            let _ = stream.shutdown(Shutdown::Write); // fails where the connection has gone by itself
        }
    }
}

fn receive(listener: &TcpListener, delivered: &AtomicU64) -> Outcome<()> {
    let (mut stream, _) = listener.accept()?;
    let mut block = vec![0; BLOCK];
    loop {
        match stream.read(&mut block)? {
            0 => return Ok(()),
            bytes => delivered.fetch_add(bytes as u64, Ordering::Relaxed),
        };
    }
}

fn send(k: usize, start: Instant, slot: &OnceLock<TcpStream>) -> Outcome<()> {
    enter(&format!("s{k}"))?;
    thread::sleep(start.saturating_duration_since(Instant::now()));
    let stream = TcpStream::connect((addresses(k)[1], PORT))?;
    let mut stream = slot.get_or_init(|| stream);
    let block = vec![0; BLOCK];
    loop {
        stream.write_all(&block)?;
    }
}
