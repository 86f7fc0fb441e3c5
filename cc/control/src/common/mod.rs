//! Parts that algorithms share.
//!
//! [`CwndController`] owns the congestion window of one path: congestion states, proportional rate reduction, undo. It
//! calls the algorithm's [`CongestionOps`]. [`CoupledController`] does the same for the paths of a connection with the
//! algorithm's [`Coupling`]. [`careful_resume`] starts a path's window from that of an earlier flow.

pub mod careful_resume;
mod congestion_ops;
mod coupling;
mod cwnd;
mod path_controllers;
mod prr;
mod rate_halving;
mod reno;
mod round_trip;
pub(crate) mod subflows;
mod usage;
mod vegas_rtt;
mod windowed_max;

pub use congestion_ops::{CongestionOps, CwndController};
pub use coupling::{CoupledController, Coupling};
pub use cwnd::CwndState;
pub use reno::{cong_avoid_ai, reno_cong_avoid, reno_cong_avoid_if_limited, reno_ssthresh, slow_start};
pub use round_trip::RoundTrip;
pub use subflows::{SubflowGroup, SubflowView};
pub(crate) use usage::Usage;
pub use vegas_rtt::VegasRtt;
pub use windowed_max::WindowedMax;
