//! UDP at a constant rate: each datagram carries its sending time, by the clock that both ends share.

use super::flow_counters::FlowCounters;
use super::{Outcome, duration, enter, sleep_until, within};
use crate::packet_size::TIMESTAMP_LEN;
use crate::protocol::{FlowEnd, UdpSpec};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBufForce, SndBufForce};
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Size of the socket buffers, bytes: large enough to drop nothing while the sink waits for the CPU or the source's
/// host has a long queue.
const BUFFER: usize = 64 << 20;

/// Starts sink and source; datagrams are sent from `start` until `end`.
pub(super) fn begin(
    udp: UdpSpec,
    ends: [FlowEnd; 2],
    [start, end]: [Instant; 2],
    counters: &Arc<FlowCounters>,
) -> Outcome<()> {
    let sink = within(&ends[1].netns, || {
        let socket = UdpSocket::bind(ends[1].address)?;
        setsockopt(&socket, RcvBufForce, &BUFFER)?;
        Ok(socket)
    })?;
    let [reader, writer] = [counters.clone(), counters.clone()];
    thread::spawn(move || receive(&sink, udp, start, &reader));
    thread::spawn(move || send(udp, &ends, [start, end], &writer));
    Ok(())
}

fn receive(socket: &UdpSocket, udp: UdpSpec, start: Instant, counters: &FlowCounters) -> Outcome<()> {
    let mut datagram = vec![0; udp.payload as usize];
    loop {
        let bytes = socket.recv(&mut datagram)?;
        let Some(stamp) = datagram[..bytes].first_chunk::<{ TIMESTAMP_LEN as usize }>() else { continue };
        let sent = Duration::from_nanos(u64::from_le_bytes(*stamp));
        counters.add_time(start.elapsed().saturating_sub(sent));
        counters.read(udp.packet.into());
    }
}

fn send(udp: UdpSpec, ends: &[FlowEnd; 2], [start, end]: [Instant; 2], counters: &FlowCounters) -> Outcome<()> {
    enter(&ends[0].netns)?;
    nix::sys::prctl::set_timerslack(1)?; // otherwise each may be 50 us late
    let socket = UdpSocket::bind((ends[0].address.ip(), 0))?;
    setsockopt(&socket, SndBufForce, &BUFFER)?;
    socket.connect(ends[1].address)?;
    let (mut next_send, mut datagram) = (start, vec![0; udp.payload as usize]);
    while next_send < end {
        sleep_until(next_send);
        let stamp = start.elapsed().as_nanos() as u64;
        datagram[..TIMESTAMP_LEN as usize].copy_from_slice(&stamp.to_le_bytes());
        // A datagram that the host itself cannot send counts as lost.
        counters.send();
        let _ = socket.send(&datagram);
        next_send += duration(udp.interval);
    }
    Ok(())
}
