//! The record of a path, a peer or a flow class for one second or one minute, in 16 bytes.

use crate::status::Condition;

/// Length of an encoded sample, bytes.
pub(super) const LEN: usize = 16;
/// The unit of stored delays: 0.1 ms, so that 16 bits hold 6.5 s.
const DELAY_UNITS_PER_MS: f64 = 10.0;
/// An unknown delay or loss. The largest stored one is one less.
const UNKNOWN: u16 = u16::MAX;
/// The stored share of all of the time, less the 1 that tells it from an unknown one.
const WORKED_ONE: f64 = 254.0;
/// The stored loss of 1.
const LOSS_ONE: f64 = 65_534.0;

/// The state of a series in a step. A minute has the one that most of its seconds had. The numbers are those of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not recorded: the daemon did not run, or the series was not there.
    #[default]
    Absent = 0,
    /// Works, and carries data.
    Up = 1,
    /// Works, and carries data only while no other path works.
    Backup = 2,
    /// No probe was answered yet.
    Validating = 3,
    /// Does not answer, or its device is down.
    Down = 4,
    /// Works badly: see [`Condition`].
    Degraded = 5,
}

impl State {
    /// All states, the better ones first.
    const ALL: [Self; 6] = [Self::Absent, Self::Up, Self::Degraded, Self::Backup, Self::Validating, Self::Down];

    /// The place among [`State::ALL`].
    pub(super) fn rank(self) -> usize {
        Self::ALL.iter().position(|state| *state == self).unwrap_or(0)
    }

    /// Whether the path, or one of those in the series, answered.
    fn works(self) -> bool {
        matches!(self, Self::Up | Self::Degraded | Self::Backup)
    }

    /// The name in JSON; `None` if absent.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Absent => None,
            Self::Up => Some("up"),
            Self::Backup => Some("backup"),
            Self::Validating => Some("validating"),
            Self::Down => Some("down"),
            Self::Degraded => Some("degraded"),
        }
    }

    /// The state of a path.
    #[must_use]
    pub fn of(condition: Condition) -> Self {
        match condition {
            Condition::Up => Self::Up,
            Condition::Standby | Condition::OverQuota => Self::Backup,
            Condition::Degraded | Condition::Flapping => Self::Degraded,
            Condition::Validating => Self::Validating,
            Condition::Down => Self::Down,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == byte)
    }
}

/// One step of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// The state.
    pub state: State,
    /// Share of the recorded seconds in which it worked, in units of 1/254 plus 1; 0 in a sample of one second and in those
    /// of earlier versions, where the state tells.
    worked: u8,
    /// Send rate, bit/s, without the headers of datagrams.
    pub send_bps: f32,
    /// Receive rate, bit/s.
    pub receive_bps: f32,
    /// Smoothed round-trip time, in units of 0.1 ms.
    rtt: Option<u16>,
    /// Smoothed round-trip time minus its minimum, in the same unit.
    queue: Option<u16>,
    /// Lost share of the packets sent, in units of 1/65534.
    loss: Option<u16>,
}

impl Sample {
    /// A sample of these measurements: rates in bit/s, delays in ms, the loss from 0 to 1.
    #[must_use]
    pub fn new(
        state: State,
        rates_bps: [f64; 2],
        rtt_ms: Option<f64>,
        queue_ms: Option<f64>,
        loss: Option<f64>,
    ) -> Self {
        let delay = |ms: f64| ((ms * DELAY_UNITS_PER_MS).round() as u16).min(UNKNOWN - 1);
        Self {
            state,
            worked: 0,
            send_bps: rates_bps[0] as f32,
            receive_bps: rates_bps[1] as f32,
            rtt: rtt_ms.map(delay),
            queue: queue_ms.map(delay),
            loss: loss.map(|loss| (loss.clamp(0.0, 1.0) * LOSS_ONE).round() as u16),
        }
    }

    /// Smoothed round-trip time, ms.
    #[must_use]
    pub fn rtt_ms(&self) -> Option<f64> {
        self.rtt.map(|units| f64::from(units) / DELAY_UNITS_PER_MS)
    }

    /// Queueing delay, ms.
    #[must_use]
    pub fn queue_ms(&self) -> Option<f64> {
        self.queue.map(|units| f64::from(units) / DELAY_UNITS_PER_MS)
    }

    /// Lost share of the packets sent, 0 to 1; `None` if none was sent.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        self.loss.map(|units| f64::from(units) / LOSS_ONE)
    }

    /// Share of the recorded time in which it worked, 0 to 1; `None` if it was not recorded.
    #[must_use]
    pub fn worked_ratio(&self) -> Option<f64> {
        let by_state = || f64::from(u8::from(self.state.works()));
        self.is_present()
            .then(|| self.worked.checked_sub(1).map_or_else(by_state, |units| f64::from(units) / WORKED_ONE))
    }

    /// Whether it was recorded.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.state != State::Absent
    }

    /// Merges samples: mean rates, round-trip time, loss and share of time in which it worked, the largest queueing delay, and
    /// the most frequent state, the worse one of two.
    #[must_use]
    pub fn merge(samples: impl IntoIterator<Item = Self>) -> Self {
        let present: Vec<Self> = samples.into_iter().filter(Self::is_present).collect();
        if present.is_empty() {
            return Self::default();
        }
        let mean = |value: fn(&Self) -> Option<f64>| {
            let known: Vec<f64> = present.iter().filter_map(value).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        let count = |state: State| present.iter().filter(|sample| sample.state == state).count();
        let state = State::ALL.into_iter().max_by_key(|state| (count(*state), state.rank())).unwrap_or_default();
        let rates = [mean(|sample| Some(sample.send_bps.into())), mean(|sample| Some(sample.receive_bps.into()))];
        Self {
            queue: present.iter().filter_map(|sample| sample.queue).max(),
            worked: mean(Self::worked_ratio).map_or(0, stored_share),
            ..Self::new(state, rates.map(Option::unwrap_or_default), mean(Self::rtt_ms), None, mean(Self::loss_ratio))
        }
    }

    /// The sample in 16 bytes, little-endian: state 1, worked 1, rtt 2, queue 2, loss 2, rates 4 each.
    #[must_use]
    pub fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        (bytes[0], bytes[1]) = (self.state as u8, self.worked);
        bytes[2..4].copy_from_slice(&self.rtt.unwrap_or(UNKNOWN).to_le_bytes());
        bytes[4..6].copy_from_slice(&self.queue.unwrap_or(UNKNOWN).to_le_bytes());
        bytes[6..8].copy_from_slice(&self.loss.unwrap_or(UNKNOWN).to_le_bytes());
        bytes[8..12].copy_from_slice(&self.send_bps.to_le_bytes());
        bytes[12..].copy_from_slice(&self.receive_bps.to_le_bytes());
        bytes
    }

    /// The sample of [`Sample::encode`]; `None` if it has a value that `encode` never writes.
    #[must_use]
    pub fn decode(bytes: &[u8; LEN]) -> Option<Self> {
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let known = |at: usize| Some(short(at)).filter(|units| *units != UNKNOWN);
        let rate = |at: usize| {
            let rate = f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            (rate.is_finite() && rate >= 0.0).then_some(rate)
        };
        Some(Self {
            state: State::from_byte(bytes[0])?,
            worked: bytes[1],
            send_bps: rate(8)?,
            receive_bps: rate(12)?,
            rtt: known(2),
            queue: known(4),
            loss: known(6),
        })
    }
}

/// A share as it is stored. Less than all of the time never becomes all of it, nor anything nothing.
fn stored_share(share: f64) -> u8 {
    let units = (share.clamp(0.0, 1.0) * WORKED_ONE).round();
    let inner = if share > 0.0 && share < 1.0 { units.clamp(1.0, WORKED_ONE - 1.0) } else { units };
    1 + inner as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_as_it_was_written_and_other_bytes_are_none() {
        let sample = Sample::new(State::Backup, [1e9, 2e6], Some(20.04), None, Some(0.25));
        assert_eq!(Sample::decode(&sample.encode()), Some(sample));
        assert_eq!((sample.rtt_ms(), sample.queue_ms()), (Some(20.0), None));
        assert!((sample.loss_ratio().unwrap() - 0.25).abs() <= 0.5 / LOSS_ONE);
        assert_eq!(Sample::decode(&[255; LEN]), None);
        assert_eq!(Sample::decode(&[0; LEN]).map(|sample| sample.state), Some(State::Absent));
        assert_eq!(Sample::new(State::Up, [0.0; 2], Some(1e9), None, None).rtt_ms(), Some(6553.4), "the greatest");
    }

    #[test]
    fn a_merged_sample_has_mean_rates_the_greatest_queue_and_the_share_of_time_in_which_it_worked() {
        let up = Sample::new(State::Up, [4e6, 0.0], Some(10.0), Some(1.0), Some(0.5));
        let down = Sample::new(State::Down, [0.0, 0.0], None, Some(7.0), None);
        let merged = Sample::merge([up, Sample::default(), down]);
        assert_eq!((merged.state, merged.send_bps), (State::Down, 2e6));
        assert_eq!((merged.rtt_ms(), merged.queue_ms()), (Some(10.0), Some(7.0)));
        assert!((merged.loss_ratio().unwrap() - 0.5).abs() < 1.0 / LOSS_ONE);
        assert_eq!(Sample::merge([Sample::default()]), Sample::default());
        let minute =
            |seconds_down: usize| Sample::merge((0..60).map(|second| if second < seconds_down { down } else { up }));
        let five = minute(5);
        let worked = five.worked_ratio().unwrap();
        assert_eq!((five.state, five.rtt_ms()), (State::Up, Some(10.0)));
        assert!((worked - 55.0 / 60.0).abs() <= 0.5 / WORKED_ONE, "{worked}");
        assert_eq!(Sample::decode(&five.encode()), Some(five));
        assert_eq!([0.999, 0.001].map(stored_share), [254, 2], "neither all of the time nor nothing");
        assert_eq!(
            [minute(0), minute(60), down].map(|sample| sample.worked_ratio()),
            [Some(1.0), Some(0.0), Some(0.0)]
        );
    }
}
