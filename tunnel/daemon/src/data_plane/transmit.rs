//! The transmit queue of a path: datagrams are added to the current batch, several batches are sent at once, and
//! batches that a full socket refuses wait until it is writable. Beyond [`MAX_QUEUED`] batches they are dropped, as by
//! a full device queue.

use super::address::PathAddress;
use super::batch::TransmitBatch;
use super::socket::{SendOutcome, Socket};
use std::collections::VecDeque;

/// Full batches that are gathered before any is sent, so that the receiver wakes up once for all of them.
const BATCHES_PER_FLUSH: usize = 4;
/// Maximum number of batches that wait for a full socket, beyond the kernel's own buffer of about sixty.
const MAX_QUEUED: usize = 16;

/// The transmit queue of a path.
#[derive(Debug)]
pub(super) struct TransmitQueue {
    address: PathAddress,
    current: TransmitBatch,
    /// Full batches that are not sent yet, or that a full socket refused.
    queued: VecDeque<TransmitBatch>,
    /// Bytes of the first queued batch that are sent.
    first_sent_bytes: usize,
    free_batches: Vec<TransmitBatch>,
}

impl TransmitQueue {
    /// An empty queue to `address`.
    pub(super) fn new(address: PathAddress) -> Self {
        let current = TransmitBatch::new(address);
        Self { address, current, queued: VecDeque::new(), first_sent_bytes: 0, free_batches: Vec::new() }
    }

    pub(super) fn address(&self) -> &PathAddress {
        &self.address
    }

    /// Changes the destination, from the next batch on.
    pub(super) fn set_address(&mut self, socket: &mut Socket, address: PathAddress) {
        if self.address != address {
            self.flush(socket);
            self.address = address;
            self.current.reset(address);
        }
    }

    /// As [`TransmitBatch::padded_len`], for the current batch.
    pub(super) fn padded_len(&self, len: usize) -> usize {
        self.current.padded_len(len)
    }

    /// Adds a datagram of at most `max_len` bytes; `write` fills it in and returns its length, 0 for none. If it does
    /// not fit the current batch, that one ends first.
    pub(super) fn push(
        &mut self,
        socket: &mut Socket,
        max_len: usize,
        tos: u8,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> SendOutcome {
        let outcome = if self.current.fits(max_len, tos) { SendOutcome::Sent } else { self.end_batch(socket) };
        self.current.push(max_len, tos, write);
        outcome
    }

    /// Queues the current batch, and sends all once there are [`BATCHES_PER_FLUSH`].
    fn end_batch(&mut self, socket: &mut Socket) -> SendOutcome {
        if self.queued.len() + 1 >= BATCHES_PER_FLUSH {
            return self.flush(socket);
        }
        self.enqueue(socket);
        SendOutcome::Sent
    }

    /// Sends everything. `Blocked` if some of it has to wait for the socket.
    pub(super) fn flush(&mut self, socket: &mut Socket) -> SendOutcome {
        let mut result = self.send_queued(socket);
        if self.current.is_empty() {
            return result;
        }
        if self.queued.is_empty() {
            let outcome = socket.send(&self.current, 0);
            result = result.and(outcome);
            let SendOutcome::Blocked(sent_bytes) = outcome else {
                self.current.reset(self.address);
                return result;
            };
            self.first_sent_bytes = sent_bytes;
        }
        self.enqueue(socket);
        result
    }

    /// Sends queued batches; called when the socket is writable again, too.
    pub(super) fn send_queued(&mut self, socket: &mut Socket) -> SendOutcome {
        let mut result = SendOutcome::Sent;
        while let Some(mut first) = self.queued.pop_front() {
            let outcome = socket.send(&first, self.first_sent_bytes);
            result = result.and(outcome);
            if let SendOutcome::Blocked(sent_bytes) = outcome {
                self.first_sent_bytes = sent_bytes;
                self.queued.push_front(first);
                break;
            }
            self.first_sent_bytes = 0;
            first.reset(self.address);
            self.free_batches.push(first);
        }
        result
    }

    /// Whether batches wait for the socket, after a [`flush`](Self::flush).
    pub(super) fn is_blocked(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Queues the current batch, or drops it if the queue is full.
    fn enqueue(&mut self, socket: &mut Socket) {
        if self.queued.len() < MAX_QUEUED {
            let empty = self.free_batches.pop().unwrap_or_else(|| TransmitBatch::new(self.address));
            self.queued.push_back(std::mem::replace(&mut self.current, empty));
        } else {
            socket.report.send_buffer_full += self.current.datagrams_from(0) as u64;
        }
        self.current.reset(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_plane::config::SocketConfig;

    #[test]
    fn batches_are_sent_together_and_in_order() {
        let socket = || {
            let (name, bind) = ("test".to_owned(), ([127, 0, 0, 1], 0).into());
            Socket::open(&SocketConfig { name, interface: None, bind, offload: true }).expect("loopback")
        };
        let (mut sender, mut receiver) = (socket(), socket());
        let mut queue = TransmitQueue::new(PathAddress::to_remote(receiver.local().expect("bound")));
        // Each is larger than the one before, and joins no batch.
        for size in 1..BATCHES_PER_FLUSH {
            queue.push(&mut sender, size, 0, |_| size);
        }
        assert_eq!(sender.report.sends, 0);
        queue.push(&mut sender, BATCHES_PER_FLUSH, 0, |_| BATCHES_PER_FLUSH);
        queue.push(&mut sender, BATCHES_PER_FLUSH + 1, 0, |_| BATCHES_PER_FLUSH + 1);
        assert_eq!(sender.report.sends, BATCHES_PER_FLUSH as u64);
        assert_eq!((queue.flush(&mut sender), queue.is_blocked()), (SendOutcome::Sent, false));
        let mut buffer = [0; 64];
        let sizes: Vec<_> = std::iter::from_fn(|| receiver.receive(&mut buffer)).map(|received| received.len).collect();
        assert_eq!(sizes, (1..=BATCHES_PER_FLUSH + 1).collect::<Vec<_>>());
    }
}
