//! Loss recovery and path measurement. Loss detection is by time (RACK), by count (FACK) or by packet numbers
//! (RFC 9002); there are also the scoreboard, the undo of false losses, RTT, delivery rate, pacing and congestion
//! window validation.

mod cwnd_validation;
mod delivery_rate;
mod fack;
mod loss_thresholds;
mod pacer;
mod rack;
mod recovery_period;
mod rtt;
mod scoreboard;
mod segment_counter;
mod windowed_min;

pub use cwnd_validation::CwndValidation;
pub use delivery_rate::{PendingRateSample, RateSampler, SendSnapshot, SendTotals};
pub use fack::Fack;
pub use loss_thresholds::LossThresholds;
pub use pacer::Pacer;
pub use rack::Rack;
pub use recovery_period::RecoveryPeriod;
pub use rtt::RttEstimator;
pub use scoreboard::{PacketCounts, Scoreboard, SentPacket};
pub use segment_counter::SegmentCounter;
pub use windowed_min::WindowedMin;
