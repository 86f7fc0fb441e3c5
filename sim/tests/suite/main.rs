//! Whole experiments against what is known of their outcome.

#[path = "../common/mod.rs"]
mod common;

mod applications;
mod changes;
mod ecn;
mod fairness;
mod goals;
mod mptcp;
mod queues;
mod ropewalk;
mod swarm;
mod traffic;
mod tunnel;
mod video;
mod wires;
