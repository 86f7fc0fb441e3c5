//! The simulator: gives the sans-IO machines a clock and a network in virtual time. It takes an experiment and a seed, and
//! returns a record.
//!
//! - `engine`: takes the component that is due first and lets it act; `network`: packets on their way through the crate
//!   `world` and through a tunnel; `topology`: the pipes and paths of an experiment; `run`: a run from experiment to record.
//! - `flow`: the flows of a run. `protocol`: their transport protocols, as the engine sees them: `stream`: TCP, MPTCP and
//!   multipath QUIC, with the applications on top; `udp`; `hosted`: stacks of others. `split_connection`: flows that are
//!   relayed.
//! - `tunnel`: MPT's tunnel and Ropewalk's own, with its relay of TCP connections.
//! - `invariants`: checks that hold in every run.
//! - `meter`, `series`, `histograms`, `summary`: fairness, time series, delays and the record of a run;
//!   `trace`: its packets.

mod daemon;
mod datagrams;
mod engine;
mod error;
mod flow;
mod histograms;
mod hosted;
mod invariants;
mod meter;
mod network;
mod packet;
mod protocol;
mod run;
mod series;
mod split_connection;
mod stream;
mod summary;
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
