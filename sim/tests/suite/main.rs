//! Whole experiments against known outcomes.

#[path = "../common/mod.rs"]
mod common;

mod applications;
mod bbr3_draft;
mod changes;
mod clean_path;
mod closed_forms;
mod copa;
mod determinism;
mod ecn;
mod fairness;
mod goals;
mod hosted;
mod kernel;
mod ledbat;
mod limits;
mod links;
mod mptcp;
mod ns2;
mod policy;
mod queues;
mod quic;
mod random_experiments;
mod relay;
mod ropewalk;
mod shipped;
mod siblings;
mod slow_start;
mod traffic;
mod tunnel;
mod video;
