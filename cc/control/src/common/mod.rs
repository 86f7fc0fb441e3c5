//! Parts that algorithms share.
//!
//! [`CwndController`] owns the congestion window of one path: states, proportional rate reduction, undo. The
//! algorithm states its [`CongestionOps`]. [`CoupledController`] does the same for the paths of a connection, over a
//! [`Coupling`].

mod congestion_ops;
mod coupling;
mod cwnd;
mod path_controllers;
mod prr;
mod rate_halving;
mod reno;
mod round_trip;
pub(crate) mod subflows;
mod vegas_rtt;
mod windowed_max;

pub use congestion_ops::{CongestionOps, CwndController};
pub use coupling::{CoupledController, Coupling};
pub use cwnd::CwndState;
pub use rate_halving::RateHalving;
pub use reno::{cong_avoid_ai, reno_cong_avoid, reno_ssthresh, slow_start};
pub use round_trip::RoundTrip;
pub use subflows::{SubflowGroup, SubflowView};
pub use vegas_rtt::VegasRtt;
pub use windowed_max::WindowedMax;
