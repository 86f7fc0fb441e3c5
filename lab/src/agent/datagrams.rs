//! UDP at a constant rate: each datagram carries the time of its sending, by the clock that both ends have.

use super::tally::Tally;
use super::{Outcome, duration, enter, until, within};
use crate::packet::STAMP;
use crate::plan::{Side, Udp};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBufForce, SndBufForce};
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Buffers of the sockets, bytes: neither a sink that waits for the CPU nor a source whose host has a long queue is what
/// loses or delays datagrams.
const BUFFER: usize = 64 << 20;

/// Starts sink and source; datagrams leave from `start` on, and before `end`.
pub(super) fn begin(udp: Udp, sides: [Side; 2], [start, end]: [Instant; 2], tally: &Arc<Tally>) -> Outcome<()> {
    let sink = within(&sides[1].space, || {
        let socket = UdpSocket::bind(sides[1].address)?;
        setsockopt(&socket, RcvBufForce, &BUFFER)?;
        Ok(socket)
    })?;
    let [reader, writer] = [tally.clone(), tally.clone()];
    thread::spawn(move || receive(&sink, udp, start, &reader));
    thread::spawn(move || send(udp, &sides, [start, end], &writer));
    Ok(())
}

fn receive(socket: &UdpSocket, udp: Udp, start: Instant, tally: &Tally) -> Outcome<()> {
    let mut datagram = vec![0; udp.payload as usize];
    loop {
        let bytes = socket.recv(&mut datagram)?;
        let Some(stamp) = datagram[..bytes].first_chunk::<{ STAMP as usize }>() else { continue };
        let sent = Duration::from_nanos(u64::from_le_bytes(*stamp));
        tally.time(start.elapsed().saturating_sub(sent));
        tally.read(udp.packet.into());
    }
}

fn send(udp: Udp, sides: &[Side; 2], [start, end]: [Instant; 2], tally: &Tally) -> Outcome<()> {
    enter(&sides[0].space)?;
    nix::sys::prctl::set_timerslack(1)?; // else each may be 50 us late
    let socket = UdpSocket::bind((sides[0].address.ip(), 0))?;
    setsockopt(&socket, SndBufForce, &BUFFER)?;
    socket.connect(sides[1].address)?;
    let (mut due, mut datagram) = (start, vec![0; udp.payload as usize]);
    while due < end {
        until(due);
        let stamp = start.elapsed().as_nanos() as u64;
        datagram[..STAMP as usize].copy_from_slice(&stamp.to_le_bytes());
        // What the host itself cannot send is lost, too.
        tally.send();
        let _ = socket.send(&datagram);
        due += duration(udp.interval);
    }
    Ok(())
}
