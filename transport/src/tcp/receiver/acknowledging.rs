//! Acknowledgements: whether one is sent when data arrives or is read, and what it says.

use super::ack_policy::{AckTiming, NewData};
use super::{DataArrival, Receiver};
use crate::tcp::{Ack, SackBlocks, timestamp};
use control::Ecn;
use units::Instant;

/// SACK blocks that fit into a header in addition to timestamps (RFC 2018 section 3).
const BLOCKS_WITH_TIMESTAMPS: usize = 3;

impl Receiver {
    /// The acknowledgement of arrived segments that must be sent at once, after `prior_ack`.
    #[inline(always)]
    pub(super) fn acknowledge_arrival(
        &mut self,
        now: Instant,
        prior_ack: Option<Ack>,
        arrival: DataArrival,
    ) -> Option<Ack> {
        let (timing, window) = self.timing(now, &arrival);
        let ack = match (prior_ack, timing) {
            (None, AckTiming::Now) => {
                let window = window.unwrap_or_else(|| self.select(self.window.has_unread(now)));
                let window = self.window.advertise(self.reassembly.next(), window);
                Some(self.acknowledge_with(now, window))
            }
            (Some(prior_ack), AckTiming::Now) => {
                self.ack_policy.expire(now);
                return Some(prior_ack);
            }
            (prior_ack, AckTiming::Later) => prior_ack.or(arrival.first_ack),
        };
        self.read_at_once(now, &arrival);
        ack
    }

    /// The application that reads at once sends an acknowledgement if that is due then: when the last segment of an instant
    /// has arrived, when it wakes, or before the next packet if it preempts the process that delivers packets.
    fn read_at_once(&mut self, now: Instant, arrival: &DataArrival) {
        if arrival.is_new && self.read.is_none() && self.is_acknowledged_by_reading(true) {
            self.ack_policy.expire(self.next_read.unwrap_or(now));
        }
    }

    /// The timing of the acknowledgement of arrived segments, and the window that it would offer now, if that has been
    /// selected.
    #[inline(always)]
    fn timing(&mut self, now: Instant, arrival: &DataArrival) -> (AckTiming, Option<u64>) {
        if arrival.acknowledge_now {
            return (AckTiming::Now, None);
        }
        // Nothing is left to acknowledge after the compressed acknowledgement that was sent first, even if that lacks this
        // segment.
        if !self.ack_policy.is_scheduled() {
            return (AckTiming::Later, None);
        }
        let next = self.reassembly.next();
        let unacked = next - self.last_ack_sent;
        // An acknowledgement that would offer less than the latest one waits until the application reads.
        let may_wait = !self.is_subflow && self.ack_policy.is_due(unacked);
        let window = may_wait.then(|| self.select(self.window.has_unread(now)));
        let data = NewData {
            unacked,
            keeps_window: window.is_none_or(|window| window >= self.window.offered(self.last_ack_sent)),
            is_out_of_order: !self.reassembly.is_empty(),
            next,
            rtt: self.window.rtt(),
        };
        let timing = self.ack_policy.timing(now, &data);
        let preempts = self.read.is_none() && self.next_read.is_none() && self.counters.acks >= self.preemption;
        if timing == AckTiming::Later && preempts && arrival.is_new && self.is_acknowledged_by_reading(true) {
            return (AckTiming::Now, window);
        }
        (timing, window)
    }

    /// Whether the application's read is followed by an acknowledgement: of more than one segment, of data with PSH that
    /// has been read completely, or of a window that has opened to twice its size (Linux 6.1.192 `tcp_cleanup_rbuf`).
    pub(super) fn is_acknowledged_by_reading(&mut self, has_read: bool) -> bool {
        let (next, out_of_order, unread) = (self.reassembly.next(), self.reassembly.out_of_order(), self.unread());
        if self.ack_policy.is_scheduled() {
            let is_all_read = unread == 0 && out_of_order == 0;
            if self.ack_policy.is_due(next - self.last_ack_sent)
                || has_read && self.ack_policy.is_pushed() && is_all_read
            {
                return true;
            }
        }
        has_read && self.window.has_opened(next, out_of_order, unread)
    }

    pub(super) fn acknowledge(&mut self, now: Instant) -> Ack {
        let window = self.select(false);
        let window = self.window.advertise(self.reassembly.next(), window);
        self.acknowledge_with(now, window)
    }

    /// The window that the buffer allows now. Quick-ack mode ends once half of the buffer is occupied.
    fn select(&mut self, before_reading: bool) -> u64 {
        let selected = self.window.select(self.reassembly.out_of_order(), self.unread(), before_reading);
        if selected.is_half_occupied {
            self.ack_policy.end_quickacks();
        }
        selected.window
    }

    #[inline(never)]
    pub(super) fn acknowledge_with(&mut self, now: Instant, receive_window: u64) -> Ack {
        let next = self.reassembly.next();
        self.last_ack_sent = next;
        self.counters.acks += 1;
        self.ack_policy.on_ack();
        self.marks_since_ack = 0;
        let mut blocks = SackBlocks::default();
        if self.config.sack {
            if let Some(dsack) = self.dsack.take() {
                blocks.push(dsack);
            }
            self.blocks.iter().for_each(|block| blocks.push(block));
            blocks.truncate(if self.config.timestamps { BLOCKS_WITH_TIMESTAMPS } else { blocks.len() });
        }
        Ack {
            syn: false,
            ack: next,
            receive_window,
            tsval: timestamp(now),
            tsecr: self.ts_recent,
            sack_blocks: blocks,
            ece: self.ece && self.config.ecn != Ecn::L4s,
            ace: self.ace,
            one_way_delay_ms: self.one_way_delay_ms,
        }
    }
}
