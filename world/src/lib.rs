//! A network in virtual time: packets cross paths of the pipes of `link`, and endpoints at the ends of the paths send and
//! receive them. The same calls with the same seeds give the same run.
//!
//! An [`Endpoint`] is a machine without input or output: it says when its timer is due, and gets packets and
//! expired timers together with an [`Outbox`]. [`Hosts`] runs several of them:
//!
//! ```
//! use link::PipeConfig;
//! use ropewalk_world::{Arrival, Endpoint, Hosts, Outbox, Outgoing, Topology};
//! use units::{Instant, RngStream, Span};
//!
//! /// Sends a number to the other end at one second, and returns each number that it gets, plus one, below ten.
//! struct Counter {
//!     deadline: Instant,
//!     latest: u32,
//! }
//!
//! impl Endpoint for Counter {
//!     type Content = u32;
//!
//!     fn deadline(&self, _now: Instant) -> Instant {
//!         self.deadline
//!     }
//!
//!     fn on_timeout(&mut self, outbox: &mut Outbox<'_, u32>) {
//!         self.deadline = Instant::NEVER;
//!         outbox.send(Outgoing::new(0, 100, 0));
//!     }
//!
//!     fn receive(&mut self, arrival: Arrival<u32>, outbox: &mut Outbox<'_, u32>) {
//!         self.latest = arrival.content;
//!         if self.latest < 9 {
//!             outbox.send(Outgoing::new(0, 100, self.latest + 1));
//!         }
//!     }
//! }
//!
//! let link = PipeConfig { delay: Span::from_millis(10), ..PipeConfig::default() };
//! let mut topology = Topology::default();
//! let there = topology.add_pipe(&link, RngStream::named(1, "there"));
//! let back = topology.add_pipe(&link, RngStream::named(1, "back"));
//! let path = topology.add_path([vec![there], vec![back]]);
//!
//! let start = Instant::ZERO + Span::from_secs(1);
//! let ends = [start, Instant::NEVER].map(|deadline| Counter { deadline, latest: 0 });
//! let mut hosts = Hosts::new(topology, vec![[0, 1]], ends.into());
//! hosts.run_until(start + Span::from_millis(95));
//! assert_eq!((path, hosts.hosts[0].latest, hosts.hosts[1].latest), (0, 7, 8));
//! hosts.assert_conserved();
//! ```
//!
//! [`World`] is what lies below: it has no endpoints, and its driver takes each packet that has crossed its path. The
//! simulator of `ropewalk-sim` is such a driver. A [`Tap`] sees what happens to the packets of either.
//!
//! - `event_queue`: which pipe or timer is due next. `packet`: packets, and the descriptors that pipes carry. `topology`:
//!   pipes and paths. `chains`: pipes that forward without an event. `store`: what packets carry.

mod chains;
mod event_queue;
mod hosts;
mod packet;
mod progress;
mod store;
mod tap;
#[cfg(test)]
mod tests;
mod topology;
mod world;

pub use hosts::{Arrival, Endpoint, Hosts, HostsWorld, Outbox, Outgoing};
pub use packet::{Direction, Packet, PacketDescriptor, Slab};
pub use store::{Plain, Store};
pub use tap::{LossCause, Step, Tap, Untapped};
pub use topology::Topology;
pub use world::{Due, Sent, Work, World};
