//! The transmit queue of a path: fills one batch after another, sends several at once, and keeps what a full socket refuses
//! until the socket is writable. Beyond [`MAX_QUEUED`] batches it drops, as a full device queue does.

use super::address::PathAddress;
use super::batch::TransmitBatch;
use super::socket::{SendOutcome, Socket};
use std::collections::VecDeque;

/// Full batches that are gathered before any is sent, so that the receiver wakes up once for all of them.
const BATCHES_PER_FLUSH: usize = 4;
/// The most batches that wait for a full socket, beyond the kernel's own buffer of about sixty.
const MAX_QUEUED: usize = 16;

/// The transmit queue of a path.
#[derive(Debug)]
pub(super) struct TransmitQueue {
    address: PathAddress,
    filling: TransmitBatch,
    /// Full batches that are not sent yet, or that a full socket refused.
    queued: VecDeque<TransmitBatch>,
    /// Bytes of the first queued batch that are sent.
    first_sent_bytes: usize,
    free: Vec<TransmitBatch>,
}

impl TransmitQueue {
    /// An empty queue to `address`.
    pub(super) fn new(address: PathAddress) -> Self {
        let filling = TransmitBatch::new(address);
        Self { address, filling, queued: VecDeque::new(), first_sent_bytes: 0, free: Vec::new() }
    }

    pub(super) fn address(&self) -> &PathAddress {
        &self.address
    }

    /// Changes the destination, from the next batch on.
    pub(super) fn set_address(&mut self, socket: &mut Socket, address: PathAddress) {
        if self.address != address {
            self.flush(socket);
            self.address = address;
            self.filling.reset(address);
        }
    }

    /// As [`TransmitBatch::padded_len`], for the batch that is being filled.
    pub(super) fn padded_len(&self, len: usize) -> usize {
        self.filling.padded_len(len)
    }

    /// Adds a datagram of at most `max` bytes; `write` fills it in and returns its length, 0 for none. If it does not fit
    /// the present batch, that one ends first.
    pub(super) fn push(
        &mut self,
        socket: &mut Socket,
        max: usize,
        tos: u8,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> SendOutcome {
        let sent = if self.filling.fits(max, tos) { SendOutcome::Sent } else { self.end_batch(socket) };
        self.filling.push(max, tos, write);
        sent
    }

    /// Queues the present batch, and sends all once there are [`BATCHES_PER_FLUSH`].
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
        if self.filling.is_empty() {
            return result;
        }
        if self.queued.is_empty() {
            let sent = socket.send(&self.filling, 0);
            result = result.and(sent);
            let SendOutcome::Blocked(at) = sent else {
                self.filling.reset(self.address);
                return result;
            };
            self.first_sent_bytes = at;
        }
        self.enqueue(socket);
        result
    }

    /// Sends queued batches; called when the socket is writable again, too.
    pub(super) fn send_queued(&mut self, socket: &mut Socket) -> SendOutcome {
        let mut result = SendOutcome::Sent;
        while let Some(mut first) = self.queued.pop_front() {
            let sent = socket.send(&first, self.first_sent_bytes);
            result = result.and(sent);
            if let SendOutcome::Blocked(at) = sent {
                self.first_sent_bytes = at;
                self.queued.push_front(first);
                break;
            }
            self.first_sent_bytes = 0;
            first.reset(self.address);
            self.free.push(first);
        }
        result
    }

    /// Whether batches wait for the socket, after a [`flush`](Self::flush).
    pub(super) fn is_blocked(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Queues the filled batch, or drops it if the queue is full.
    fn enqueue(&mut self, socket: &mut Socket) {
        if self.queued.len() < MAX_QUEUED {
            let empty = self.free.pop().unwrap_or_else(|| TransmitBatch::new(self.address));
            self.queued.push_back(std::mem::replace(&mut self.filling, empty));
        } else {
            socket.report.send_buffer_full += self.filling.datagrams_from(0) as u64;
        }
        self.filling.reset(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_plane::config::SocketConfig;

    #[test]
    fn batches_leave_together_and_in_order() {
        let socket = || {
            let (name, bind) = ("test".to_owned(), ([127, 0, 0, 1], 0).into());
            Socket::open(&SocketConfig { name, interface: None, bind, offload: true }).expect("loopback")
        };
        let (mut from, mut to) = (socket(), socket());
        let mut queue = TransmitQueue::new(PathAddress::to_remote(to.local().expect("bound")));
        // Each is larger than the one before, and joins no batch.
        for size in 1..BATCHES_PER_FLUSH {
            queue.push(&mut from, size, 0, |_| size);
        }
        assert_eq!(from.report.sends, 0);
        queue.push(&mut from, BATCHES_PER_FLUSH, 0, |_| BATCHES_PER_FLUSH);
        queue.push(&mut from, BATCHES_PER_FLUSH + 1, 0, |_| BATCHES_PER_FLUSH + 1);
        assert_eq!(from.report.sends, BATCHES_PER_FLUSH as u64);
        assert_eq!((queue.flush(&mut from), queue.is_blocked()), (SendOutcome::Sent, false));
        let mut buffer = [0; 64];
        let sizes: Vec<_> = std::iter::from_fn(|| to.receive(&mut buffer)).map(|received| received.len).collect();
        assert_eq!(sizes, (1..=BATCHES_PER_FLUSH + 1).collect::<Vec<_>>());
    }
}
