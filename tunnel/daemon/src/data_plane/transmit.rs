//! The transmit queue of a path: datagrams are added to the current batch, several batches are sent at once, and
//! batches that a full socket refuses wait until it is writable. Beyond [`MAX_QUEUED`] waiting batches, further ones
//! are dropped, as by a full device queue.

use super::address::PathAddress;
use super::batch::TransmitBatch;
use super::socket::{SendOutcome, Socket};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Full batches that are gathered before any is sent, so that the receiver wakes up once for all of them.
const BATCHES_PER_FLUSH: usize = 4;
/// Maximum number of batches that wait for a full socket, beyond the kernel's own buffer of about sixty.
const MAX_QUEUED: usize = 16;
/// Maximum number of batches kept for any queue: 4 MiB.
const MAX_FREE: usize = 64;

/// Batches that no queue uses. An empty queue holds no batch, so that idle peers cost no memory.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeBatches(Rc<RefCell<Vec<TransmitBatch>>>);

impl FreeBatches {
    fn take(&self, address: PathAddress) -> TransmitBatch {
        let Some(mut batch) = self.0.borrow_mut().pop() else { return TransmitBatch::new(address) };
        batch.reset(address);
        batch
    }

    fn put(&self, batch: TransmitBatch) {
        let mut free = self.0.borrow_mut();
        if free.len() < MAX_FREE {
            free.push(batch);
        }
    }
}

/// The transmit queue of a path.
#[derive(Debug)]
pub(super) struct TransmitQueue {
    address: PathAddress,
    current: Option<TransmitBatch>,
    /// Full batches that are not sent yet, or that a full socket refused.
    queued: VecDeque<TransmitBatch>,
    /// Bytes of the first queued batch that are sent.
    first_sent_bytes: usize,
    free_batches: FreeBatches,
}

impl TransmitQueue {
    /// An empty queue to `address`.
    pub(super) fn new(address: PathAddress, free_batches: FreeBatches) -> Self {
        Self { address, current: None, queued: VecDeque::new(), first_sent_bytes: 0, free_batches }
    }

    #[cfg(feature = "mpt")]
    pub(super) fn address(&self) -> &PathAddress {
        &self.address
    }

    /// Changes the destination, from the next batch on.
    pub(super) fn set_address(&mut self, socket: &mut Socket, address: PathAddress) {
        if self.address != address {
            self.flush(socket);
            self.address = address;
        }
    }

    /// As [`TransmitBatch::padded_len`], for the current batch.
    pub(super) fn padded_len(&self, len: usize) -> usize {
        self.current.as_ref().map_or(len, |current| current.padded_len(len))
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
        let fits = self.current.as_ref().is_none_or(|current| current.fits(max_len, tos));
        let outcome = if fits { SendOutcome::Sent } else { self.end_batch(socket) };
        let Self { current, free_batches, address, .. } = self;
        current.get_or_insert_with(|| free_batches.take(*address)).push(max_len, tos, write);
        outcome
    }

    /// Queues the current batch, and sends all once there are [`BATCHES_PER_FLUSH`].
    fn end_batch(&mut self, socket: &mut Socket) -> SendOutcome {
        if self.queued.len() + 1 >= BATCHES_PER_FLUSH {
            return self.flush(socket);
        }
        if let Some(batch) = self.current.take() {
            self.enqueue(socket, batch);
        }
        SendOutcome::Sent
    }

    /// Sends everything. `Blocked` if some of it has to wait for the socket.
    pub(super) fn flush(&mut self, socket: &mut Socket) -> SendOutcome {
        let result = self.send_queued(socket);
        let Some(batch) = self.current.take() else { return result };
        if batch.is_empty() {
            self.free_batches.put(batch);
            return result;
        }
        if !self.queued.is_empty() {
            self.enqueue(socket, batch);
            return result;
        }
        let outcome = socket.send(&batch, 0);
        match outcome {
            SendOutcome::Blocked(sent_bytes) => {
                self.first_sent_bytes = sent_bytes;
                self.enqueue(socket, batch);
            }
            _ => self.free_batches.put(batch),
        }
        result.and(outcome)
    }

    /// Sends queued batches; called when the socket is writable again, too.
    pub(super) fn send_queued(&mut self, socket: &mut Socket) -> SendOutcome {
        let mut result = SendOutcome::Sent;
        while let Some(first) = self.queued.pop_front() {
            let outcome = socket.send(&first, self.first_sent_bytes);
            result = result.and(outcome);
            if let SendOutcome::Blocked(sent_bytes) = outcome {
                self.first_sent_bytes = sent_bytes;
                self.queued.push_front(first);
                break;
            }
            self.first_sent_bytes = 0;
            self.free_batches.put(first);
        }
        result
    }

    /// Whether batches wait for the socket, after a [`flush`](Self::flush).
    pub(super) fn is_blocked(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Queues a batch, or drops it if the queue is full.
    fn enqueue(&mut self, socket: &mut Socket, batch: TransmitBatch) {
        if self.queued.len() < MAX_QUEUED {
            self.queued.push_back(batch);
        } else {
            socket.report.send_buffer_full += batch.datagrams_from(0) as u64;
            self.free_batches.put(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_plane::buffer::Pool;
    use crate::data_plane::config::SocketConfig;
    use crate::data_plane::socket::ReceiveBuffers;

    #[test]
    fn batches_are_sent_together_and_in_order() {
        let socket = || {
            let (name, bind) = ("test".to_owned(), ([127, 0, 0, 1], 0).into());
            Socket::open(&SocketConfig { name, interface: None, bind, offload: true, shares_port: false })
                .expect("loopback")
        };
        let (mut sender, mut receiver) = (socket(), socket());
        let mut queue =
            TransmitQueue::new(PathAddress::to_remote(receiver.local().expect("bound")), FreeBatches::default());
        // Each is larger than the one before, and joins no batch.
        for size in 1..BATCHES_PER_FLUSH {
            queue.push(&mut sender, size, 0, |_| size);
        }
        assert_eq!(sender.report.sends, 0);
        queue.push(&mut sender, BATCHES_PER_FLUSH, 0, |_| BATCHES_PER_FLUSH);
        queue.push(&mut sender, BATCHES_PER_FLUSH + 1, 0, |_| BATCHES_PER_FLUSH + 1);
        assert_eq!(sender.report.sends, BATCHES_PER_FLUSH as u64);
        assert_eq!((queue.flush(&mut sender), queue.is_blocked()), (SendOutcome::Sent, false));
        assert!(queue.current.is_none(), "an idle queue holds no batch");
        let mut buffers = ReceiveBuffers::new(&mut Pool::new(0, 64));
        let mut sizes = Vec::new();
        loop {
            let count = receiver.receive(&mut buffers);
            sizes.extend((0..count).map(|index| receiver.received(&buffers, index).len));
            if count == 0 {
                break;
            }
        }
        assert_eq!(sizes, (1..=BATCHES_PER_FLUSH + 1).collect::<Vec<_>>());
    }
}
