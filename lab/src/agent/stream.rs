//! A TCP or MPTCP flow in one direction: a source that writes as fast as it may, or at a rate; a sink that reads at once.

use super::tally::Tally;
use super::traffic::{listen, socket};
use super::{Outcome, duration, enter, until, within};
use crate::plan::{Application, Side, Tcp};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use units::Rate;

/// Bytes written or read at once, as iperf3 does.
const BLOCK: usize = 128 * 1024;

/// Starts sink and source; the source connects at `start`.
pub(super) fn begin(tcp: &Tcp, sides: [Side; 2], start: Instant, tally: &Arc<Tally>) -> Outcome<()> {
    let listener = within(&sides[1].space, || listen(tcp, sides[1].address))?;
    let (tcp, size) = (tcp.clone(), tcp.size);
    let [reader, writer] = [tally.clone(), tally.clone()];
    thread::spawn(move || receive(&listener, size, start, &reader));
    thread::spawn(move || send(&tcp, &sides, start, &writer));
    Ok(())
}

fn receive(listener: &TcpListener, size: Option<u64>, start: Instant, tally: &Tally) -> Outcome<()> {
    let (mut stream, _) = listener.accept()?;
    let mut block = vec![0; BLOCK];
    loop {
        let bytes = stream.read(&mut block)? as u64;
        let all = tally.read(bytes);
        if size.is_some_and(|size| all >= size) {
            tally.completion.get_or_init(|| start.elapsed());
        }
        if bytes == 0 {
            tally.end(Some(stream));
            return Ok(());
        }
    }
}

fn send(tcp: &Tcp, sides: &[Side; 2], start: Instant, tally: &Tally) -> Outcome<()> {
    enter(&sides[0].space)?;
    until(start);
    let socket = socket(tcp, sides[1].address)?;
    socket.connect(&sides[1].address.into())?;
    let stream = tally.open(socket.into(), true)?;
    let (rate, write) = match &tcp.application {
        Application::Steady { rate, write } => (Some(*rate), *write),
        _ => (None, BLOCK as u64),
    };
    let block = vec![0; write as usize];
    let (all, mut written) = (tcp.size.unwrap_or(u64::MAX), 0);
    while written < all {
        // What could not be written in time is written as soon as it can be.
        rate.iter().for_each(|rate: &Rate| until(start + duration(rate.time_for(written))));
        let part = (all - written).min(write);
        (&*stream).write_all(&block[..part as usize])?;
        written += part;
    }
    Ok(stream.shutdown(Shutdown::Write)?)
}
