//! A TCP or MPTCP flow in one direction: a source that writes as fast as it can, or at a rate; a sink that reads at
//! once.

use super::flow_counters::FlowCounters;
use super::socket::{listen, socket};
use super::{Outcome, duration, enter, sleep_until, within};
use crate::protocol::{Application, FlowEnd, TcpSpec};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use units::Rate;

/// Bytes written or read at once, as iperf3 does.
const BLOCK: usize = 128 * 1024;

/// Starts sink and source; the source connects at `start`.
pub(super) fn begin(tcp: &TcpSpec, ends: [FlowEnd; 2], start: Instant, counters: &Arc<FlowCounters>) -> Outcome<()> {
    let listener = within(&ends[1].netns, || listen(tcp, ends[1].address))?;
    let (tcp, size) = (tcp.clone(), tcp.size);
    let [reader, writer] = [counters.clone(), counters.clone()];
    thread::spawn(move || receive(&listener, size, start, &reader));
    thread::spawn(move || send(&tcp, &ends, start, &writer));
    Ok(())
}

fn receive(listener: &TcpListener, size: Option<u64>, start: Instant, counters: &FlowCounters) -> Outcome<()> {
    let (mut stream, _) = listener.accept()?;
    let mut block = vec![0; BLOCK];
    loop {
        let bytes = stream.read(&mut block)? as u64;
        let total = counters.read(bytes);
        if size.is_some_and(|size| total >= size) {
            counters.completion.get_or_init(|| start.elapsed());
        }
        if bytes == 0 {
            counters.end(Some(stream));
            return Ok(());
        }
    }
}

fn send(tcp: &TcpSpec, ends: &[FlowEnd; 2], start: Instant, counters: &FlowCounters) -> Outcome<()> {
    enter(&ends[0].netns)?;
    sleep_until(start);
    let socket = socket(tcp, ends[1].address)?;
    socket.connect(&ends[1].address.into())?;
    let stream = counters.open(socket.into(), true)?;
    let (rate, write) = match &tcp.application {
        Application::Steady { rate, write } => (Some(*rate), *write),
        _ => (None, BLOCK as u64),
    };
    let block = vec![0; write as usize];
    let (total, mut written) = (tcp.size.unwrap_or(u64::MAX), 0);
    while written < total {
        // A write that is late is made as soon as possible.
        rate.iter().for_each(|rate: &Rate| sleep_until(start + duration(rate.time_for(written))));
        let write_bytes = (total - written).min(write);
        (&*stream).write_all(&block[..write_bytes as usize])?;
        written += write_bytes;
    }
    Ok(stream.shutdown(Shutdown::Write)?)
}
