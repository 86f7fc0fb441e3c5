//! Datagrams that leave together: equal in size, destination and TOS, so that one system call sends them all.
//!
//! An [`Outlet`] is a path's way out. It fills one batch after another, sends a few of them at once, and keeps what a full
//! socket does not take until the socket is writable again; beyond a bound it drops, as a full device queue does.

use super::socket::{Route, Sent, Socket};
use std::collections::VecDeque;

/// The most bytes in one batch: what UDP over IPv4 carries.
const MOST_BYTES: usize = 65_507;
/// Room in a batch: a lone datagram may be larger than a batch of several.
const CAPACITY: usize = 1 << 16;
/// The most datagrams in one batch (Linux `UDP_MAX_SEGMENTS`; newer kernels take 128).
const MOST_DATAGRAMS: usize = 64;
/// The most bytes of padding. A parcel's pieces are equal, and the last one is shorter by less than there are pieces.
const MOST_PADDING: usize = 64;
/// Batches that are gathered before any is sent: whoever waits for them is woken once for all.
const GROUP: usize = 4;
/// Batches that wait for a full socket: beyond the kernel's own buffer of about sixty.
const MOST_WAITING: usize = 16;

/// Datagrams that leave together.
#[derive(Debug)]
pub(super) struct Batch {
    bytes: Box<[u8]>,
    len: usize,
    segment: usize,
    tos: u8,
    /// A shorter datagram ends a batch.
    is_closed: bool,
    route: Route,
}

impl Batch {
    /// An empty batch to this destination.
    pub(super) fn new(route: Route) -> Self {
        let bytes = vec![0; CAPACITY].into();
        Self { bytes, len: 0, segment: 0, tos: 0, is_closed: false, route }
    }

    /// Whether a datagram of `len` bytes can join.
    pub(super) fn fits(&self, len: usize, tos: u8) -> bool {
        self.is_empty()
            || !self.is_closed
                && self.tos == tos
                && len <= self.segment
                && self.len + len <= MOST_BYTES
                && self.len < MOST_DATAGRAMS * self.segment
    }

    /// What a datagram of `len` bytes is padded to: a few bytes, lest it ends the batch.
    pub(super) fn even(&self, len: usize) -> usize {
        let is_near = !self.is_empty() && len <= self.segment && self.segment - len <= MOST_PADDING;
        if is_near { self.segment } else { len }
    }

    /// Adds a datagram of at most `most` bytes, with which it must [fit](Self::fits). `write` fills it in and says its
    /// length; 0 adds none.
    ///
    /// # Panics
    /// If `most` is more than a datagram of UDP can hold.
    pub(super) fn push(&mut self, most: usize, tos: u8, write: impl FnOnce(&mut [u8]) -> usize) {
        debug_assert!(self.fits(most, tos));
        let len = write(&mut self.bytes[self.len..self.len + most]);
        if self.is_empty() {
            (self.segment, self.tos) = (len, tos);
        }
        self.is_closed = len < self.segment;
        self.len += len;
    }

    /// Empties it, for this destination.
    pub(super) fn aim(&mut self, route: Route) {
        (self.len, self.is_closed, self.route) = (0, false, route);
    }

    /// Whether it holds no datagram.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All datagrams.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Bytes of each datagram but the last.
    pub(super) fn segment(&self) -> usize {
        self.segment
    }

    /// Their TOS or traffic class.
    pub(super) fn tos(&self) -> u8 {
        self.tos
    }

    /// Where they go.
    pub(super) fn route(&self) -> &Route {
        &self.route
    }

    /// Datagrams from byte `from` on.
    pub(super) fn count_from(&self, from: usize) -> usize {
        (self.len - from).div_ceil(self.segment.max(1))
    }
}

/// A path's way out.
#[derive(Debug)]
pub(super) struct Outlet {
    route: Route,
    filling: Batch,
    /// What is full and not sent yet, or a full socket did not take; the first one from this byte on.
    waiting: VecDeque<Batch>,
    sent_of_first: usize,
    spare: Vec<Batch>,
}

impl Outlet {
    /// To this destination.
    pub(super) fn new(route: Route) -> Self {
        let filling = Batch::new(route);
        Self { route, filling, waiting: VecDeque::new(), sent_of_first: 0, spare: Vec::new() }
    }

    /// Where it leads.
    pub(super) fn route(&self) -> &Route {
        &self.route
    }

    /// It leads elsewhere from the next batch on.
    pub(super) fn set_route(&mut self, socket: &mut Socket, route: Route) {
        if self.route != route {
            self.flush(socket);
            self.route = route;
            self.filling.aim(route);
        }
    }

    /// What a datagram of `len` bytes is padded to, lest it ends a batch.
    pub(super) fn even(&self, len: usize) -> usize {
        self.filling.even(len)
    }

    /// Adds a datagram of at most `most` bytes; `write` fills it in and says its length, 0 for none. Sends what must go
    /// before.
    pub(super) fn push(
        &mut self,
        socket: &mut Socket,
        most: usize,
        tos: u8,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> Sent {
        let sent = if self.filling.fits(most, tos) { Sent::Done } else { self.end_batch(socket) };
        self.filling.push(most, tos, write);
        sent
    }

    /// Nothing more joins the batch. It is sent once there are several.
    fn end_batch(&mut self, socket: &mut Socket) -> Sent {
        if self.waiting.len() + 1 >= GROUP {
            return self.flush(socket);
        }
        self.wait(socket);
        Sent::Done
    }

    /// Sends what is there. `Blocked` if anything has to wait for the socket.
    pub(super) fn flush(&mut self, socket: &mut Socket) -> Sent {
        let mut result = self.retry(socket);
        if self.filling.is_empty() {
            return result;
        }
        if self.waiting.is_empty() {
            let sent = socket.send(&self.filling, 0);
            result = result.and(sent);
            let Sent::Blocked(at) = sent else {
                self.filling.aim(self.route);
                return result;
            };
            self.sent_of_first = at;
        }
        self.wait(socket);
        result
    }

    /// The socket is writable again.
    pub(super) fn retry(&mut self, socket: &mut Socket) -> Sent {
        let mut result = Sent::Done;
        while let Some(mut first) = self.waiting.pop_front() {
            let sent = socket.send(&first, self.sent_of_first);
            result = result.and(sent);
            if let Sent::Blocked(at) = sent {
                self.sent_of_first = at;
                self.waiting.push_front(first);
                break;
            }
            self.sent_of_first = 0;
            first.aim(self.route);
            self.spare.push(first);
        }
        result
    }

    /// Whether something waits for the socket, after all was [flushed](Self::flush).
    pub(super) fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The filled batch joins those that wait, or is dropped if too many do.
    fn wait(&mut self, socket: &mut Socket) {
        if self.waiting.len() < MOST_WAITING {
            let empty = self.spare.pop().unwrap_or_else(|| Batch::new(self.route));
            self.waiting.push_back(std::mem::replace(&mut self.filling, empty));
        } else {
            socket.report.blocked += self.filling.count_from(0) as u64;
        }
        self.filling.aim(self.route);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::setup::SocketSetup;

    fn batch() -> Batch {
        Batch::new(Route { remote: ([127, 0, 0, 1], 9).into(), source: None })
    }

    #[test]
    fn a_batch_holds_64_equal_datagrams_and_one_shorter_ends_it() {
        let mut many = batch();
        (0..64).for_each(|_| many.push(1000, 2, |_| 1000));
        assert!(!many.fits(1000, 2), "64 is the most");
        let mut short = batch();
        short.push(1000, 2, |_| 1000);
        assert!(!short.fits(1001, 2), "larger than the first");
        assert!(!short.fits(1000, 3), "another TOS");
        short.push(1000, 2, |_| 999);
        assert!(!short.fits(999, 2), "a shorter one was the last");
        assert_eq!((short.count_from(0), short.count_from(1000)), (2, 1));
    }

    #[test]
    fn a_batch_ends_before_udp_does() {
        let mut large = batch();
        (0..7).for_each(|_| large.push(9000, 0, |_| 9000));
        assert!(!large.fits(9000, 0), "72000 bytes are more than a datagram of UDP");
        assert!(large.fits(2000, 0), "65000 bytes are allowed");
    }

    #[test]
    fn a_datagram_a_few_bytes_short_is_padded_lest_it_ends_the_batch() {
        let mut batch = batch();
        assert_eq!(batch.even(1000), 1000, "a lone one need not be");
        batch.push(1000, 0, |_| 1000);
        assert_eq!([1000, 999, 936, 935, 1001].map(|len| batch.even(len)), [1000, 1000, 1000, 935, 1001]);
    }

    #[test]
    fn batches_leave_together_and_in_order() {
        let socket = || {
            let (name, bind) = ("test".to_owned(), ([127, 0, 0, 1], 0).into());
            Socket::open(&SocketSetup { name, interface: None, bind, mark: None, offload: true }).expect("loopback")
        };
        let (mut from, mut to) = (socket(), socket());
        let mut outlet = Outlet::new(Route { remote: to.local().expect("bound"), source: None });
        // Each is larger than the one before, and joins no batch.
        for size in 1..GROUP {
            outlet.push(&mut from, size, 0, |_| size);
        }
        assert_eq!(from.report.sends, 0);
        outlet.push(&mut from, GROUP, 0, |_| GROUP);
        outlet.push(&mut from, GROUP + 1, 0, |_| GROUP + 1);
        assert_eq!(from.report.sends, GROUP as u64);
        assert_eq!((outlet.flush(&mut from), outlet.is_blocked()), (Sent::Done, false));
        let mut buffer = [0; 64];
        let sizes: Vec<_> = std::iter::from_fn(|| to.receive(&mut buffer)).map(|arrival| arrival.len).collect();
        assert_eq!(sizes, (1..=GROUP + 1).collect::<Vec<_>>());
    }
}
