//! Packets that wait for the transmitter, first in, first out.

use std::collections::VecDeque;
use units::Instant;

/// A packet that waits.
#[derive(Debug)]
pub(super) struct Waiting<P> {
    pub(super) arrived: Instant,
    /// Bytes, with the link's overhead.
    pub(super) size: u64,
    pub(super) packet: P,
}

/// A line of packets, which knows its length in bytes.
#[derive(Debug)]
pub(super) struct Lane<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
}

impl<P> Default for Lane<P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0 }
    }
}

impl<P> Lane<P> {
    pub(super) fn push(&mut self, last: Waiting<P>) {
        self.bytes += last.size;
        self.waiting.push_back(last);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting<P>> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.size;
        Some(head)
    }

    pub(super) fn first(&self) -> Option<&Waiting<P>> {
        self.waiting.front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
