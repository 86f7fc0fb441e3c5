//! Requests and responses, one at a time: the client is at the sink's host and the server at the source's, so that data
//! flow from source to sink. A request carries the size of its response.

use super::flow_counters::FlowCounters;
use super::flow_sockets::FlowSockDiag;
use super::socket::{listen, socket};
use super::{Outcome, duration, enter, sleep_until, within};
use crate::protocol::{FlowEnd, TcpSpec};
use scenario::model::Requests;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Bytes written or read at once.
const BLOCK: usize = 64 * 1024;

/// Starts server and client; the first request is sent at `start`. Sizes and pauses are drawn by the seed and the
/// flow's name.
pub(super) fn begin(
    tcp: &TcpSpec,
    ends: [FlowEnd; 2],
    start: Instant,
    (requests, seed, name): (Requests, u64, &str),
    counters: &Arc<FlowCounters>,
) -> Outcome<()> {
    let listener = within(&ends[0].netns, || listen(tcp, ends[0].address))?;
    thread::spawn(move || serve(&listener));
    let mut hosts = FlowSockDiag::of(&ends)?;
    let (tcp, counters, mut rng) = (tcp.clone(), counters.clone(), Requests::random_stream(seed, name));
    thread::spawn(move || -> Outcome<()> {
        enter(&ends[1].netns)?;
        let (mut next_request, mut idle_connection) = (start, None);
        loop {
            sleep_until(next_request);
            if counters.connections().have_stopped() {
                return Ok(());
            }
            let (sent, size) = (Instant::now(), requests.next_size(&mut rng));
            let stream = match idle_connection.take() {
                Some(stream) => stream,
                None => connect(&tcp, &ends[0], &counters)?,
            };
            request(&stream, size, &counters)?;
            counters.add_time(sent.elapsed());
            next_request = Instant::now() + duration(requests.next_think(&mut rng));
            if requests.new_connections {
                counters.close(stream, &mut hosts)?;
            } else {
                idle_connection = Some(stream);
            }
        }
    });
    Ok(())
}

fn connect(tcp: &TcpSpec, server: &FlowEnd, counters: &FlowCounters) -> Outcome<Arc<TcpStream>> {
    let socket = socket(tcp, server.address)?;
    socket.connect(&server.address.into())?;
    counters.open(socket.into(), false)
}

/// Requests `size` bytes and reads them.
fn request(mut stream: &TcpStream, size: u64, counters: &FlowCounters) -> Outcome<()> {
    let mut message = [0; Requests::REQUEST_BYTES as usize];
    message[..8].copy_from_slice(&size.to_le_bytes());
    stream.write_all(&message)?;
    let (mut block, mut remaining) = (vec![0; BLOCK], size);
    while remaining > 0 {
        let bytes = stream.read(&mut block)? as u64;
        if bytes == 0 {
            return Err("the server has closed the connection".into());
        }
        counters.read(bytes);
        remaining -= bytes;
    }
    Ok(())
}

/// Serves one connection after another.
fn serve(listener: &TcpListener) -> Outcome<()> {
    loop {
        // It fails if the flow stops in the middle of a response.
        let _ = respond(&listener.accept()?.0);
    }
}

fn respond(mut stream: &TcpStream) -> Outcome<()> {
    let (mut message, block) = ([0; Requests::REQUEST_BYTES as usize], vec![0; BLOCK]);
    loop {
        stream.read_exact(&mut message)?;
        let mut remaining = u64::from_le_bytes(message[..8].try_into()?);
        while remaining > 0 {
            let write_bytes = remaining.min(BLOCK as u64);
            stream.write_all(&block[..write_bytes as usize])?;
            remaining -= write_bytes;
        }
    }
}
