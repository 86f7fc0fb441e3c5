//! The event loop of the daemon at one end of a Ropewalk tunnel: it pauses to coalesce wake-ups, and what arrives during a
//! pause waits for the next iteration.

use crate::packet::{Packet, PacketDescriptor};
use crate::tunnel::payload::Datagram;
use machine::{Coalescing, Reads};
use units::{Instant, Span};

/// By how much the kernel lets a pause be longer (Linux `timer_slack_ns`).
const TIMER_SLACK: Span = Span::from_micros(50);

/// An input of the loop.
#[derive(Debug)]
pub(crate) enum Input {
    /// A packet of the host, from the device.
    Packet(Packet, PacketDescriptor),
    /// A datagram, from a socket, and whether it carries CE.
    Datagram(Datagram, bool),
}

/// An event loop.
#[derive(Debug, Default)]
pub(crate) struct EventLoop {
    inputs: Vec<Input>,
    /// The end of the present pause.
    resumes: Instant,
    coalescing: Coalescing,
}

impl EventLoop {
    /// Keeps an input for the next iteration.
    pub(crate) fn push(&mut self, input: Input) {
        self.inputs.push(input);
    }

    /// Whether the loop pauses.
    pub(crate) fn is_paused(&self, now: Instant) -> bool {
        now < self.resumes
    }

    /// The time of the next iteration if a timer is due at `deadline`.
    pub(crate) fn next_iteration(&self, deadline: Instant) -> Instant {
        let due = if self.inputs.is_empty() { deadline } else { Instant::ZERO };
        due.max(self.resumes)
    }

    /// The inputs of an iteration, whose buffer is to be given back by [`finish`](Self::finish).
    pub(crate) fn take(&mut self) -> Vec<Input> {
        std::mem::take(&mut self.inputs)
    }

    /// Ends an iteration that read `count` inputs (all that were waiting) and carried `bytes` bytes; the next timer is due
    /// at `deadline`.
    pub(crate) fn finish(&mut self, now: Instant, buffer: Vec<Input>, count: usize, bytes: u64, deadline: Instant) {
        self.inputs = buffer;
        let mut reads = Reads::default();
        reads.add(count, usize::MAX);
        let pause = self.coalescing.pause(now, &reads, bytes).min(deadline.since(now));
        if pause > Span::ZERO {
            self.resumes = now + pause + TIMER_SLACK;
        }
    }
}
