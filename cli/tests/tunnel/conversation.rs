//! A connection that goes on while lines, keys and servers change under it.

use crate::internet::{Internet, WEB, WEB_ADDRESS};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use testing::MINUTE;

/// A TCP connection from a host to the web host, which sends everything back.
pub(crate) struct Conversation {
    stream: TcpStream,
    accepted: TcpStream,
    server: Option<JoinHandle<()>>,
    rounds: u8,
}

impl Conversation {
    pub(crate) fn new(internet: &Internet, from: usize) -> Self {
        Self::between(internet, from, WEB, WEB_ADDRESS)
    }

    /// With another host, which has `address`.
    pub(crate) fn between(internet: &Internet, from: usize, to: usize, address: &str) -> Self {
        let address: SocketAddr = format!("{address}:7000").parse().unwrap();
        let listener = internet.testbed.within(to, move || Ok(TcpListener::bind(address)?)).unwrap();
        let connect = move || Ok(TcpStream::connect_timeout(&address, MINUTE)?);
        let stream = internet.testbed.within(from, connect).unwrap();
        // After an interruption TCP's next retransmission may be as far away as the interruption was long.
        stream.set_read_timeout(Some(4 * MINUTE)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let far = accepted.try_clone().unwrap();
        let echo = move || drop(std::io::copy(&mut &far, &mut &far));
        Self { stream, accepted, server: Some(thread::spawn(echo)), rounds: 0 }
    }

    /// Whether 64 kB more come back as they were sent.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.rounds += 1;
        let (sent, mut received) = (vec![self.rounds; 64_000], vec![0; 64_000]);
        self.stream.write_all(&sent).and_then(|()| self.stream.read_exact(&mut received)).is_ok() && received == sent
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // Both: the end of one may not reach the other any more.
        [&self.stream, &self.accepted].iter().for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
        let _ = self.server.take().map(JoinHandle::join);
    }
}
