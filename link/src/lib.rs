//! Links: queues, transmitters, wires, for whoever has a clock, virtual or real.
//!
//! [`Pipe`] is one direction of a link. Its queue either decides on arrival (`fused`) or at departure (`serviced`, in
//! one line, `fifo`, or a lane for each flow, `fair`); the rest is one file a concept. [`codel::Law`] is CoDel's
//! control law by itself, for queues elsewhere.

pub mod codel;

mod bound;
mod cobalt;
mod counters;
mod fair;
mod fifo;
mod fused;
mod head;
mod lane;
mod loss;
mod outlet;
mod pie;
mod pipe;
mod red;
mod serviced;
#[cfg(test)]
mod tests;
mod trace;
mod transmitter;
mod wire;

pub use counters::Counters;
pub use pipe::{Packet, Pipe, Verdict};
