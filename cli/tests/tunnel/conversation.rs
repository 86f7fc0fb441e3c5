//! A connection that goes on while lines change under it.

use crate::internet::{Internet, WEB, WEB_ADDRESS};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use testing::MINUTE;

/// A TCP connection from a host to the web host, which sends everything back.
pub(crate) struct Conversation {
    stream: TcpStream,
    server: Option<JoinHandle<()>>,
    rounds: u8,
}

impl Conversation {
    pub(crate) fn new(internet: &Internet, from: usize) -> Self {
        let address: SocketAddr = format!("{WEB_ADDRESS}:7000").parse().unwrap();
        let listener = internet.testbed.within(WEB, move || Ok(TcpListener::bind(address)?)).unwrap();
        let connect = move || Ok(TcpStream::connect_timeout(&address, MINUTE)?);
        let stream = internet.testbed.within(from, connect).unwrap();
        stream.set_read_timeout(Some(MINUTE)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let echo = move || drop(std::io::copy(&mut &accepted, &mut &accepted));
        Self { stream, server: Some(thread::spawn(echo)), rounds: 0 }
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
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let _ = self.server.take().map(JoinHandle::join);
    }
}
