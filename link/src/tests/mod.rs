//! Pipes against closed forms, and under random operations.

mod aqm;
mod change;
mod closed_form;
mod dualpi2;
mod fair;
mod grants;
mod impairments;
mod property;

use super::{EcnField, Packet, Pipe, Verdict};
use crate::config::*;
use units::{Instant, Rate, RngStream, Span};

/// Nanoseconds in a microsecond and in a millisecond.
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestPacket {
    number: u64,
    bytes: u32,
    flow: u16,
    ecn: EcnField,
    corrupted: bool,
    copy: bool,
}

impl Packet for TestPacket {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flow(&self) -> u16 {
        self.flow
    }
    fn ecn(&self) -> EcnField {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = self.ecn.marked();
    }
    fn duplicate(&mut self) -> Self {
        Self { copy: true, ..*self }
    }
    fn corrupt(&mut self) {
        self.corrupted = true;
    }
}

fn packet(number: u64, bytes: u32) -> TestPacket {
    TestPacket { number, bytes, flow: 0, ecn: EcnField::NotEct, corrupted: false, copy: false }
}

/// 100 Mbit/s (a 1500-byte packet takes 120 us), 10 ms, a queue that never fills.
fn link() -> PipeConfig {
    PipeConfig {
        rate: Some(Rate::from_mbit(100)),
        delay: Span::from_millis(10),
        queue: QueueConfig { limit: QueueLimit::Packets(u64::MAX), ..QueueConfig::default() },
        ..PipeConfig::default()
    }
}

fn pipe(config: &PipeConfig) -> Pipe<TestPacket> {
    Pipe::new(config, RngStream::named(1, "link test forward"))
}

/// Everything that arrives until `end`, with its time in ns.
fn arrivals(pipe: &mut Pipe<TestPacket>, end: u64) -> Vec<(u64, TestPacket)> {
    let mut arrived = Vec::new();
    while pipe.next_event_at() <= Instant(end) {
        let now = pipe.next_event_at();
        arrived.extend(pipe.dequeue_arrived(now).map(|packet| (now.0, packet)));
    }
    arrived
}

/// The times of all further arrivals, ns.
fn arrival_times(pipe: &mut Pipe<TestPacket>) -> Vec<u64> {
    arrivals(pipe, Instant::NEVER.0 - 1).into_iter().map(|(time, _)| time).collect()
}

/// Offers `count` packets of 1500 bytes at once.
fn burst(pipe: &mut Pipe<TestPacket>, now: u64, count: u64) -> Vec<Verdict> {
    (0..count).map(|number| pipe.enqueue(Instant(now), packet(number, 1500))).collect()
}

fn is_conserved(pipe: &Pipe<TestPacket>) -> bool {
    let counters = pipe.counters();
    counters.offered + counters.duplicated
        == counters.delivered + counters.dropped + counters.lost + pipe.packets_inside()
}
