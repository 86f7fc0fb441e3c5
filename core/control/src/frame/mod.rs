//! Parts that algorithms share.
//!
//! [`Windowed`] is the frame of every window-based algorithm: it owns the window, walks through the phases, reduces
//! proportionally, restores after spurious loss. The algorithm states its [`Growth`].

mod filter;
mod round;
mod round_delay;
mod steps;
mod window;
mod windowed;

pub use filter::WindowedMax;
pub use round::Round;
pub use round_delay::RoundDelay;
pub use steps::{additive_increase, reno_increase, reno_threshold, slow_start};
pub use window::Window;
pub use windowed::{Growth, Windowed};
