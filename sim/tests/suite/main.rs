//! Whole experiments against what is known of their outcome.

#[path = "../common/mod.rs"]
mod common;

mod applications;
mod changes;
mod ecn;
mod fairness;
mod goals;
mod links;
mod mptcp;
mod queues;
mod random_experiments;
mod ropewalk;
mod traffic;
mod tunnel;
mod video;
