//! Parts that algorithms share.
//!
//! [`Windowed`] is the frame of every window-based algorithm: it owns the window, walks through the phases, reduces
//! proportionally, restores after spurious loss. The algorithm states its [`WindowRule`].
//!
//! [`Coupled`] is the same for algorithms that couple the windows of several paths, and state a [`Coupling`].

mod coupled;
mod cwnd;
mod filter;
mod pair;
pub(crate) mod paths;
mod round;
mod round_delay;
mod steps;
mod windowed;

pub use coupled::{Coupled, Coupling};
pub use cwnd::CwndState;
pub use filter::WindowedMax;
pub use paths::{SubflowGroup, SubflowView};
pub use round::Round;
pub use round_delay::RoundDelay;
pub use steps::{additive_increase, reno_increase, reno_threshold, slow_start};
pub use windowed::{WindowRule, Windowed};
