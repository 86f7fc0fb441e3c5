//! Several data threads: each has its own node with its own peers, its own sockets, which share their ports
//! (`SO_REUSEPORT`), and its own queue of the TUN device. Nothing is shared, and no lock is held.
//!
//! The kernel brings a datagram to the thread of its session: session indices begin with the thread's number, which a
//! classic BPF program at the sockets reads ([`steering`](super::steering)). An inner packet comes from the queue to
//! which the last packet of its flow was written (the TUN driver remembers it, `tun_flow_update`), or from one chosen
//! by hash. Packets and datagrams that reach another thread are handed over by a bounded channel: initiations, which
//! name no session and are admitted by the first thread; the first packets of flows; and datagrams that the kernel
//! delivers elsewhere while sockets are replaced.

use super::address::PathAddress;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::time::{ClockId, clock_gettime};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryIter, sync_channel};
use std::time::Duration;
use wire::inner::ecn::Ecn;

/// Maximum number of threads: a session index has four bits for them.
pub const MAX_THREADS: usize = 16;
/// Maximum number of packets and datagrams queued for a thread; further ones are dropped.
const CAPACITY: usize = 1024;

/// A packet or datagram that a thread has received for another one.
#[derive(Debug)]
pub(super) enum HandOver {
    /// A packet or super-packet, as the device gave it.
    Packet(Vec<u8>),
    /// A datagram.
    Datagram {
        /// Index of the socket, which is the same in every thread.
        socket: usize,
        /// The TOS or traffic class byte.
        ecn: Ecn,
        /// The sender, and the local address that it sent to.
        address: PathAddress,
        bytes: Vec<u8>,
        /// Whether it is an initiation that the first thread has admitted.
        is_admitted: bool,
    },
}

/// The channel to a thread.
#[derive(Clone, Debug)]
struct HandOverSender {
    queue: SyncSender<HandOver>,
    wakeup: Arc<EventFd>,
}

/// A thread's number, and the channels to all threads.
#[derive(Debug)]
pub(super) struct OtherThreads {
    pub(super) own: u8,
    senders: Vec<HandOverSender>,
    /// The number of items dropped because a channel was full, or its thread had ended.
    pub(super) dropped: u64,
}

impl OtherThreads {
    /// Whether there is a thread of this number.
    pub(super) fn contains(&self, thread: u8) -> bool {
        usize::from(thread) < self.senders.len()
    }

    pub(super) fn hand_over(&mut self, thread: u8, item: HandOver) {
        let sent = self.senders.get(usize::from(thread)).is_some_and(|sender| {
            let is_queued = sender.queue.try_send(item).is_ok();
            // A full eventfd is readable, too.
            let _ = sender.wakeup.write(1);
            is_queued
        });
        self.dropped += u64::from(!sent);
    }
}

/// The items that other threads have handed over.
#[derive(Debug)]
pub(super) struct Inbox {
    queue: Receiver<HandOver>,
    wakeup: Arc<EventFd>,
}

impl Inbox {
    /// All that is queued. Clears the eventfd.
    pub(super) fn drain(&self) -> TryIter<'_, HandOver> {
        // An eventfd that is not readable is not an error: the queue is read in any case.
        let _ = self.wakeup.read();
        self.queue.try_iter()
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }
}

/// One of several data threads, before it starts.
#[derive(Debug)]
pub struct ThreadLinks {
    pub(super) others: OtherThreads,
    pub(super) inbox: Inbox,
    /// CLOCK_MONOTONIC at the zero of all threads.
    pub(super) epoch: Duration,
}

impl ThreadLinks {
    /// The links of `count` threads, each with all others.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn new(count: usize) -> io::Result<Vec<Self>> {
        let epoch = clock_gettime(ClockId::CLOCK_MONOTONIC)?.into();
        let (mut senders, mut inboxes) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let wakeup = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
            let (sender, queue) = sync_channel(CAPACITY);
            senders.push(HandOverSender { queue: sender, wakeup: Arc::clone(&wakeup) });
            inboxes.push(Inbox { queue, wakeup });
        }
        let links =
            |(own, inbox)| Self { others: OtherThreads { own, senders: senders.clone(), dropped: 0 }, inbox, epoch };
        Ok((0..).zip(inboxes).map(links).collect())
    }
}
