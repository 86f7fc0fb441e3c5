//! Packet schedulers, which choose the path of the next packet.
//!
//! A [`Scheduler`] gets a [`SchedulerView`]: the state of each path, and the amount of data to send. It answers with a
//! [`Pick`], or with `None` to wait. The sender (a tunnel or an MPTCP connection) sends the packet and asks again,
//! until the answer is `None` or nothing is left.
//!
//! A new scheduler needs its own file and one line of [`REGISTRY`]. A plug-in or a notebook calls [`register`] instead.

mod adaptive_redundant;
mod blest;
mod byte_deficit;
mod choices;
mod daps;
mod earliest;
mod ecf;
mod entry;
mod fixed;
mod linger;
mod min_rtt;
mod overflow;
mod packet_round_robin;
mod redundant;
mod round_robin;
mod stms;
mod view;
mod weighted;

pub use adaptive_redundant::AdaptiveRedundant;
pub use blest::Blest;
pub use byte_deficit::ByteDeficit;
pub use choices::{Choice, Choices};
pub use daps::Daps;
pub use earliest::Earliest;
pub use ecf::Ecf;
pub use entry::{Constructor, DynConstructor, Fill, Needs, SchedulerEntry, SchedulerSetup};
pub use fixed::Fixed;
pub use linger::Linger;
pub use min_rtt::MinRtt;
pub use overflow::Overflow;
pub use packet_round_robin::PacketRoundRobin;
pub use redundant::Redundant;
pub use round_robin::RoundRobin;
pub use stms::Stms;
pub use view::{PacketChoice, PathView, Pick, SchedulerView};
pub use weighted::Weighted;

use control::Controller;
use params::{Entry, RegisterError, Registered};

/// Chooses the next packet and its path. The trait extends [`Any`](std::any::Any), so that a driver can steer a
/// scheduler at run time.
pub trait Scheduler: std::any::Any + std::fmt::Debug + Send + Sync {
    /// Picks the next packet and its path. `None` means to wait, although a path may have room.
    ///
    /// The sender asks after each possible change: new data, an acknowledgement, a timer. If no path has room, it need
    /// not ask. If the picked path has no such packet, the sender counts the path as full until the next change and
    /// asks again.
    ///
    /// A scheduler must not pick a path that is not among the [paths with room](SchedulerView::paths_with_room), or new
    /// data if none are [sendable](SchedulerView::sendable_packets). It must not wait while no path has a packet
    /// buffered, since no acknowledgement would come.
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick>;

    /// Whether the scheduler [watches](Self::watch) the events of congestion control, without which it cannot decide.
    fn watches(&self) -> bool {
        false
    }

    /// The controller of the connection, or one around it that observes its events for the scheduler. The connection calls
    /// this once, before its first event.
    fn watch(&mut self, controller: Box<dyn Controller>) -> Box<dyn Controller> {
        controller
    }

    /// The reason why another scheduler has replaced this one, if any: a learned policy can fail. Drivers report it.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Notes on the parameters for the user, one sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The schedulers that were registered at run time.
static REGISTERED: Registered<SchedulerEntry> = Registered::new();

/// Every built-in scheduler, one line each.
pub const REGISTRY: &[&SchedulerEntry] = &[
    &min_rtt::ENTRY,
    &linger::ENTRY,
    &round_robin::ENTRY,
    &redundant::ENTRY,
    &adaptive_redundant::ENTRY,
    &blest::ENTRY,
    &ecf::ENTRY,
    &daps::ENTRY,
    &stms::ENTRY,
    &earliest::ENTRY,
    &overflow::ENTRY,
    &weighted::ENTRY,
    &packet_round_robin::ENTRY,
    &byte_deficit::ENTRY,
    &fixed::ENTRY,
];

/// Every scheduler: the built-in ones, then those that were registered at run time.
#[must_use]
pub fn entries() -> Vec<&'static SchedulerEntry> {
    REGISTERED.after(REGISTRY)
}

/// The names and aliases of all schedulers.
pub fn names() -> impl Iterator<Item = &'static str> {
    entries().into_iter().flat_map(Entry::names)
}

/// The scheduler with the name or alias `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static SchedulerEntry> {
    REGISTERED.find(name, REGISTRY)
}

/// Adds a scheduler at run time, or replaces one of the same name that was added before.
///
/// # Errors
/// The name is built in, taken or not allowed, a parameter is wrong, or the [code
/// version](SchedulerEntry::code_version) is missing.
pub fn register(entry: SchedulerEntry) -> Result<&'static SchedulerEntry, RegisterError> {
    REGISTERED.register(entry, REGISTRY)
}
