//! Loss recovery and path measurement: the scoreboard, loss detection by time (RACK) or by count (FACK), round-trip
//! time, delivery rate, pacing, congestion window validation.

mod cwnd_validation;
mod delivery_rate;
mod fack;
mod pacer;
mod rack;
mod rtt;
mod scoreboard;
mod windowed_min;

pub use cwnd_validation::CwndValidation;
pub use delivery_rate::{PendingRateSample, RateSampler, SendSnapshot, SendTotals};
pub use fack::Fack;
pub use pacer::Pacer;
pub use rack::Rack;
pub use rtt::RttEstimator;
pub use scoreboard::{PacketCounts, Scoreboard, SentPacket};
pub use windowed_min::WindowedMin;
