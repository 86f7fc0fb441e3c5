//! The simulator: lends the core a clock and a network in virtual time. An experiment and a seed in, a record out.
//!
//! - `agenda`: who is due next. Every component (a pipe, an endpoint) has at most one pending instant.
//! - `engine`: takes the component that is due first and moves packets through the pipes of `link`; `topology` says where they go next.
//! - `endpoint`, `tcp`, `connection`, `multipath`, `tunnel`, `ropewalk`: the core's machines with their place in the network; `application`: what runs on TCP.
//! - `meter`, `peak`, `series`, `summary`: what is written down.

mod agenda;
mod application;
mod connection;
mod distribution;
mod endpoint;
mod engine;
mod error;
mod meter;
mod multipath;
mod packet;
mod peak;
mod ropewalk;
mod series;
mod setup;
mod summary;
mod tcp;
mod topology;
mod tunnel;

pub use engine::run;
pub use error::Error;
