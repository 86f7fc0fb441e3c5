//! Rewards, which training maximises.

use crate::feature::Feature;
use crate::monitor::Summary;
use std::fmt;

/// The reward for an interval, computed from the measurements of the whole group.
#[derive(Clone, Debug, PartialEq)]
pub enum Reward {
    /// `aurora`: 10 throughput - 1000 latency - 2000 loss, with throughput in packets per second, the mean RTT in
    /// seconds and the fraction of packets lost (Jay et al., ICML 2019; the authors' PCC-RL scales it by 0.001).
    Aurora,
    /// `orca`: ((thr - 5 loss) / delay) / (thr_max / min RTT), where a smoothed RTT up to 1.25 of the minimum counts as the
    /// minimum (Abbasloo et al., SIGCOMM 2020; constants of the authors' code).
    Orca,
    /// `sage`, for a flow without competition: 25 ((thr - 2 loss) / capacity)^2, negative if thr is below 2 loss, times
    /// minimum RTT / smoothed RTT, which counts as 1 from 0.8 on. A throughput above the capacity counts as 0.9 of it.
    /// Source: Yen et al., SIGCOMM 2023, single flow; constants of the authors' code.
    Sage,
    /// `sage_friendliness`: 25 exp(-8 (x - 1)^2), x = throughput / (0.95 fair share), at most 2 (same source, several
    /// flows).
    SageFriendliness,
    /// A weighted sum of features.
    Terms(Vec<(f64, Feature)>),
}

/// The capacity that a world offers a group of paths, for Sage's rewards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Rate of the links, Mbit/s.
    pub capacity: f64,
    /// The capacity divided by the number of competing flows, Mbit/s.
    pub fair: f64,
}

impl Reward {
    /// The presets.
    pub const PRESETS: [&'static str; 4] = ["aurora", "orca", "sage", "sage_friendliness"];

    /// Reads the name of a preset.
    ///
    /// # Errors
    /// An unknown name.
    pub fn preset(name: &str) -> Result<Self, RewardError> {
        match name {
            "aurora" => Ok(Self::Aurora),
            "orca" => Ok(Self::Orca),
            "sage" => Ok(Self::Sage),
            "sage_friendliness" => Ok(Self::SageFriendliness),
            _ => Err(RewardError(name.to_owned())),
        }
    }

    /// A weighted sum of features of an interval, by name.
    ///
    /// # Errors
    /// A name that is not a feature of an interval, or a weight that is not finite.
    pub fn terms<'a>(terms: impl IntoIterator<Item = (&'a str, f64)>) -> Result<Self, RewardError> {
        let term = |(name, weight): (&str, f64)| match Feature::find(name) {
            Some(feature @ Feature::OfInterval(_)) if weight.is_finite() => Ok((weight, feature)),
            _ => Err(RewardError(name.to_owned())),
        };
        terms.into_iter().map(term).collect::<Result<_, _>>().map(Self::Terms)
    }

    /// The reward of an interval.
    #[must_use]
    pub fn of(&self, summary: &Summary, share: &Share) -> f64 {
        let s = summary;
        match self {
            Self::Aurora => {
                let packets_a_second = if s.elapsed > 0.0 { s.acked / s.elapsed } else { 0.0 };
                10.0 * packets_a_second - 1000.0 * s.rtt - 2000.0 * loss_ratio(s)
            }
            Self::Orca => {
                let delay = if s.srtt < 1.25 * s.min_rtt { s.min_rtt } else { s.srtt / 1.25 };
                let power = |rate: f64, delay: f64| if delay > 0.0 { rate / delay } else { 0.0 };
                let best = power(s.max_throughput, s.min_rtt);
                if best > 0.0 { power(s.throughput - 5.0 * s.lost_rate, delay) / best } else { 0.0 }
            }
            Self::Sage => {
                let throughput = if s.throughput > share.capacity { 0.9 * share.capacity } else { s.throughput };
                let (rate, capacity) = (throughput - 2.0 * s.lost_rate, share.capacity.max(f64::MIN_POSITIVE));
                let rtt_rate = if s.srtt > 0.0 { s.min_rtt / s.srtt } else { 0.0 };
                let sign = if s.throughput < 2.0 * s.lost_rate { -1.0 } else { 1.0 };
                sign * 25.0 * (rate / capacity) * (rate / capacity) * if rtt_rate >= 0.8 { 1.0 } else { rtt_rate }
            }
            Self::SageFriendliness => {
                let fair = 0.95 * share.fair;
                let x = if fair > 0.0 { (s.throughput / fair).min(2.0) } else { 0.0 };
                25.0 * libm::exp(-8.0 * (x - 1.0) * (x - 1.0))
            }
            Self::Terms(terms) => terms.iter().map(|(weight, feature)| weight * feature.of_interval(s)).sum(),
        }
    }
}

fn loss_ratio(s: &Summary) -> f64 {
    if s.lost + s.acked > 0.0 { s.lost / (s.lost + s.acked) } else { 0.0 }
}

/// The name of a reward or of a term that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewardError(String);

impl fmt::Display for RewardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = Feature::all().map(Feature::name).collect();
        write!(
            f,
            "`{}` is neither a reward (aurora, orca, sage, sage_friendliness) nor a feature with a finite weight; features \
             are {}",
            self.0,
            names[..names.len() - Feature::windowed().count()].join(", ")
        )
    }
}

impl std::error::Error for RewardError {}
