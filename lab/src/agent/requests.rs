//! Requests and answers, one at a time: the client at the sink's host asks, the server at the source's answers, so that data
//! flows as a flow's data does. A request says how much it asks for.

use super::tally::Tally;
use super::tcp_info::Hosts;
use super::traffic::{listen, socket};
use super::{Outcome, duration, enter, until, within};
use crate::plan::{Side, Tcp};
use scenario::model::Requests;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Bytes written or read at once.
const BLOCK: usize = 64 * 1024;

/// Starts server and client; the first request leaves at `start`. Seed and name of the flow are those of its luck.
pub(super) fn begin(
    tcp: &Tcp,
    sides: [Side; 2],
    start: Instant,
    (requests, seed, name): (Requests, u64, &str),
    tally: &Arc<Tally>,
) -> Outcome<()> {
    let listener = within(&sides[0].space, || listen(tcp, sides[0].address))?;
    thread::spawn(move || serve(&listener));
    let mut hosts = Hosts::of(&sides)?;
    let (tcp, tally, mut luck) = (tcp.clone(), tally.clone(), Requests::luck(seed, name));
    thread::spawn(move || -> Outcome<()> {
        enter(&sides[1].space)?;
        let (mut next, mut open) = (start, None);
        loop {
            until(next);
            if tally.connections().have_stopped() {
                return Ok(());
            }
            let (asked, size) = (Instant::now(), requests.next_size(&mut luck));
            let stream = match open.take() {
                Some(stream) => stream,
                None => connect(&tcp, &sides[0], &tally)?,
            };
            ask(&stream, size, &tally)?;
            tally.time(asked.elapsed());
            next = Instant::now() + duration(requests.next_think(&mut luck));
            if requests.new_connections {
                tally.close(stream, &mut hosts)?;
            } else {
                open = Some(stream);
            }
        }
    });
    Ok(())
}

fn connect(tcp: &Tcp, server: &Side, tally: &Tally) -> Outcome<Arc<TcpStream>> {
    let socket = socket(tcp, server.address)?;
    socket.connect(&server.address.into())?;
    tally.open(socket.into(), false)
}

/// Asks for so many bytes, and reads them.
fn ask(mut stream: &TcpStream, size: u64, tally: &Tally) -> Outcome<()> {
    let mut request = [0; Requests::ASK as usize];
    request[..8].copy_from_slice(&size.to_le_bytes());
    stream.write_all(&request)?;
    let (mut block, mut left) = (vec![0; BLOCK], size);
    while left > 0 {
        let bytes = stream.read(&mut block)? as u64;
        if bytes == 0 {
            return Err("the server has gone".into());
        }
        tally.read(bytes);
        left -= bytes;
    }
    Ok(())
}

/// One connection after the other, as they come.
fn serve(listener: &TcpListener) -> Outcome<()> {
    loop {
        // It ends with the client, in the middle of an answer where the flow stops.
        let _ = answer(&listener.accept()?.0);
    }
}

fn answer(mut stream: &TcpStream) -> Outcome<()> {
    let (mut request, block) = ([0; Requests::ASK as usize], vec![0; BLOCK]);
    loop {
        stream.read_exact(&mut request)?;
        let mut left = u64::from_le_bytes(request[..8].try_into()?);
        while left > 0 {
            let part = left.min(BLOCK as u64);
            stream.write_all(&block[..part as usize])?;
            left -= part;
        }
    }
}
