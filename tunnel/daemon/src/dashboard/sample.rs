//! The record of a path, a peer or a flow class for one second or one minute, in 16 bytes.

use crate::status::PathState;

/// Length of an encoded sample, bytes.
pub(super) const LEN: usize = 16;
/// The unit of stored delays: 0.1 ms, so that 16 bits hold 6.5 s.
const DELAY_UNITS_PER_MS: f64 = 10.0;
/// An unknown delay. The largest stored delay is one less.
const UNKNOWN: u16 = u16::MAX;
/// The stored loss of 1.
const LOSS_ONE: f64 = 65_535.0;

/// The state of a series in a step. A minute has the last of its seconds' states in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Not recorded: the daemon did not run, or the series was not there.
    #[default]
    Absent,
    /// Works, and carries data.
    Up,
    /// Works, and carries data only while no other path works.
    Backup,
    /// No probe was answered yet.
    Validating,
    /// Does not answer, or its device is down.
    Down,
}

impl State {
    /// The name in JSON; `None` if absent.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Absent => None,
            Self::Up => Some("up"),
            Self::Backup => Some("backup"),
            Self::Validating => Some("validating"),
            Self::Down => Some("down"),
        }
    }

    /// The state of a path.
    #[must_use]
    pub fn of_path(state: PathState, backup: bool) -> Self {
        match state {
            PathState::Validating => Self::Validating,
            PathState::Down => Self::Down,
            PathState::Up if backup => Self::Backup,
            PathState::Up => Self::Up,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Absent, Self::Up, Self::Backup, Self::Validating, Self::Down]
            .into_iter()
            .find(|state| *state as u8 == byte)
    }
}

/// One step of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// The state.
    pub state: State,
    /// Send rate, bit/s, without the headers of datagrams.
    pub send_bps: f32,
    /// Receive rate, bit/s.
    pub receive_bps: f32,
    /// Smoothed round-trip time, in units of 0.1 ms.
    rtt: Option<u16>,
    /// Smoothed round-trip time minus its minimum, in the same unit.
    queue: Option<u16>,
    /// Lost share of the packets sent, in units of 1/65535.
    loss: u16,
}

impl Sample {
    /// A sample of these measurements: rates in bit/s, delays in ms, the loss from 0 to 1.
    #[must_use]
    pub fn new(state: State, rates_bps: [f64; 2], rtt_ms: Option<f64>, queue_ms: Option<f64>, loss: f64) -> Self {
        let delay = |ms: f64| ((ms * DELAY_UNITS_PER_MS).round() as u16).min(UNKNOWN - 1);
        Self {
            state,
            send_bps: rates_bps[0] as f32,
            receive_bps: rates_bps[1] as f32,
            rtt: rtt_ms.map(delay),
            queue: queue_ms.map(delay),
            loss: (loss.clamp(0.0, 1.0) * LOSS_ONE).round() as u16,
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

    /// Lost share of the packets sent, 0 to 1.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        f64::from(self.loss) / LOSS_ONE
    }

    /// Whether it was recorded.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.state != State::Absent
    }

    /// Merges samples: mean rates, round-trip time and loss, the largest queueing delay, and the prevailing state.
    #[must_use]
    pub fn merge(samples: impl IntoIterator<Item = Self>) -> Self {
        let present: Vec<Self> = samples.into_iter().filter(Self::is_present).collect();
        if present.is_empty() {
            return Self::default();
        }
        let mean = |value: fn(&Self) -> f64| present.iter().map(value).sum::<f64>() / present.len() as f64;
        let rtts: Vec<f64> = present.iter().filter_map(Self::rtt_ms).collect();
        let mean_rtt = (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64);
        Self {
            queue: present.iter().filter_map(|sample| sample.queue).max(),
            ..Self::new(
                present.iter().map(|sample| sample.state).max().unwrap_or_default(),
                [mean(|sample| sample.send_bps.into()), mean(|sample| sample.receive_bps.into())],
                mean_rtt,
                None,
                mean(Self::loss_ratio),
            )
        }
    }

    /// The sample in 16 bytes, little-endian: state 1, zero 1, rtt 2, queue 2, loss 2, rates 4 each.
    #[must_use]
    pub fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[0] = self.state as u8;
        bytes[2..4].copy_from_slice(&self.rtt.unwrap_or(UNKNOWN).to_le_bytes());
        bytes[4..6].copy_from_slice(&self.queue.unwrap_or(UNKNOWN).to_le_bytes());
        bytes[6..8].copy_from_slice(&self.loss.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.send_bps.to_le_bytes());
        bytes[12..].copy_from_slice(&self.receive_bps.to_le_bytes());
        bytes
    }

    /// The sample of [`Sample::encode`]; `None` if it has a value that `encode` never writes.
    #[must_use]
    pub fn decode(bytes: &[u8; LEN]) -> Option<Self> {
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let delay = |at: usize| Some(short(at)).filter(|units| *units != UNKNOWN);
        let rate = |at: usize| {
            let rate = f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            (rate.is_finite() && rate >= 0.0).then_some(rate)
        };
        Some(Self {
            state: State::from_byte(bytes[0])?,
            send_bps: rate(8)?,
            receive_bps: rate(12)?,
            rtt: delay(2),
            queue: delay(4),
            loss: short(6),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_as_it_was_written_and_other_bytes_are_none() {
        let sample = Sample::new(State::Backup, [1e9, 2e6], Some(20.04), None, 0.25);
        assert_eq!(Sample::decode(&sample.encode()), Some(sample));
        assert_eq!((sample.rtt_ms(), sample.queue_ms()), (Some(20.0), None));
        assert!((sample.loss_ratio() - 0.25).abs() <= 0.5 / LOSS_ONE);
        assert_eq!(Sample::decode(&[255; LEN]), None);
        assert_eq!(Sample::decode(&[0; LEN]).map(|sample| sample.state), Some(State::Absent));
        assert_eq!(Sample::new(State::Up, [0.0; 2], Some(1e9), None, 0.0).rtt_ms(), Some(6553.4), "the greatest");
    }

    #[test]
    fn a_merged_sample_has_mean_rates_the_greatest_queue_and_the_state_that_prevails() {
        let up = Sample::new(State::Up, [4e6, 0.0], Some(10.0), Some(1.0), 0.0);
        let down = Sample::new(State::Down, [0.0, 0.0], None, Some(7.0), 1.0);
        let merged = Sample::merge([up, Sample::default(), down]);
        assert_eq!((merged.state, merged.send_bps), (State::Down, 2e6));
        assert_eq!((merged.rtt_ms(), merged.queue_ms()), (Some(10.0), Some(7.0)));
        assert!((merged.loss_ratio() - 0.5).abs() < 1.0 / LOSS_ONE);
        assert_eq!(Sample::merge([Sample::default()]), Sample::default());
    }
}
