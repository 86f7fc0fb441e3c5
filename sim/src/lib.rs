//! The simulator: gives the sans-IO machines a clock and a network in virtual time. It takes an experiment and a seed, and
//! returns a record.
//!
//! - `event_queue`: which component is due next. Every component (a pipe, a flow's source) has at most one pending
//!   instant.
//! - `engine`: takes the component that is due first and lets it act; `network`: packets on their way through the pipes
//!   of `link` and through a tunnel; `topology`: which pipe comes next; `run`: a run from experiment to record.
//! - `flow`, `connection`, `tcp`, `super_segment`, `split_connection`, `mptcp`: the flows and their transport machines;
//!   `tcp_config`: their configuration; `application`: the applications on top of TCP. `protocol`: all other protocols
//!   (`udp`; `hosted`: stacks of others), as the engine sees them.
//! - `tunnel`: MPT's tunnel; `ropewalk`: Ropewalk's own; `event_loop`: how its daemon reads; `relay`: its relay of TCP
//!   connections.
//! - `invariants`: checks that hold in every run.
//! - `meter`, `peak`, `series`, `histograms`, `summary`: fairness, peak rates, time series, delays and the record of a run;
//!   `trace`: its packets.

mod application;
mod connection;
mod daemon;
mod datagrams;
mod engine;
mod error;
mod event_loop;
mod event_queue;
mod flow;
mod histograms;
mod hosted;
mod invariants;
mod limits;
mod meter;
mod mptcp;
mod multipath;
mod network;
mod packet;
mod peak;
mod protocol;
mod quic;
mod relay;
mod ropewalk;
mod run;
mod series;
mod split_connection;
mod summary;
mod super_segment;
mod tcp;
mod tcp_config;
mod topology;
mod trace;
mod tunnel;
mod udp;

pub use error::Error;
pub use packet::Direction;
pub use run::{Simulation, run};
pub use trace::{
    Crossing, CrossingStep, HeaderSizes, LossCause, TraceEvent, Traced, TracedContent, TracedPacket, TracedSender,
};
