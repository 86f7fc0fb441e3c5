//! Which path carries the next packet: a choice made from views of the paths, by name from one table.

mod byte_deficit;
mod packet_round_robin;

pub use byte_deficit::ByteDeficit;
pub use packet_round_robin::PacketRoundRobin;

use units::PathId;

/// Chooses the path of each packet. The next packet's size is known, its content is not.
pub trait Scheduler: std::fmt::Debug + Send {
    /// The path for a packet of `bytes`, among those for which `usable` holds; `None` if none is.
    fn pick(&mut self, bytes: u32, usable: &dyn Fn(PathId) -> bool) -> Option<PathId>;
}

/// What the registry knows of one scheduler.
#[derive(Debug)]
pub struct Entry {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// One line: what it does.
    pub title: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Builds one for paths with these weights, starting at a position of its cycle.
    pub make: fn(weights: &[u32], first: u32) -> Box<dyn Scheduler>,
}

/// Every scheduler, one line each.
pub const REGISTRY: &[&Entry] = &[&packet_round_robin::ENTRY, &byte_deficit::ENTRY];

/// The scheduler called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().copied().find(|entry| entry.name == name || entry.aliases.contains(&name))
}
