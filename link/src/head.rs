//! Management at the head of a lane: CoDel, COBALT.

use super::Packet;
use super::lane::{Lane, Waiting};
use super::outlet::Outlet;
use std::fmt::Debug;
use units::{Instant, Rate};

/// What decides at departure which packets of a lane leave, and which are dropped or marked.
pub(super) trait Head: Clone + Debug {
    /// The packet that leaves `lane` at `now`, after those before it that had to be dropped.
    fn leave<P: Packet>(
        &mut self,
        now: Instant,
        lane: &mut Lane<P>,
        around: Around,
        outlet: &mut Outlet<P>,
    ) -> Option<Waiting<P>>;

    /// So many packets had to be dropped because the queue was full.
    fn on_overflow(&mut self, now: Instant, packets: u32);

    /// The lane's turn came, and it was empty.
    fn on_empty(&mut self, _now: Instant) {}

    /// The lane was off the list of those that take turns, and will be on it.
    fn on_return(&mut self, _now: Instant) {}

    /// The link's rate, `None` for no limit.
    fn set_rate(&mut self, _rate: Option<Rate>) {}
}

/// What else there is in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// Bytes in other lanes.
    pub(super) others: u64,
    /// The largest packet so far, bytes: what CoDel leaves in the queue \[`maxpacket_`\].
    pub(super) largest: u64,
}
