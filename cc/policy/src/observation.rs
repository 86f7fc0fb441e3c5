//! Observations: presets of features, and their history.

use crate::feature::{Feature, Windows};
use crate::monitor::Summary;
use std::fmt;

/// The features of each path that a policy observes, and the number of intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    features: Vec<Feature>,
    history: usize,
}

/// Maximum history, intervals.
const MAX_HISTORY: usize = 1000;

/// Aurora: Jay, Rotman, Godfrey, Schapira and Tamar, "A Deep Reinforcement Learning Perspective on Internet Congestion
/// Control", ICML 2019: three features of each of the last ten monitor intervals. The gradient is the slope by least
/// squares, as in PCC Vivace (Dong et al., NSDI 2018), while the authors' PCC-RL takes the difference between the means
/// of the two halves. An interval without an RTT sample has the previous RTT.
const AURORA: [&str; 3] = ["latency_gradient", "latency_ratio", "send_ratio"];
/// Orca: Abbasloo, Yen and Chao, "Classic Meets Modern", SIGCOMM 2020, normalised as in the authors' code by the
/// maximum throughput and the minimum RTT. The code's running mean and variance of each input are left out, because
/// they belong to training.
const ORCA: [&str; 7] =
    ["thr_ratio", "pacing_ratio", "loss_rate_ratio", "acked_ratio", "elapsed_s", "min_rtt_ratio", "delay_metric"];
/// Sage: Yen, Abbasloo and Chao, "Computers Can Learn from the Heuristic Designs and Master Internet Congestion
/// Control", SIGCOMM 2023: all 69 elements, in the units of the authors' code. The first list comes before the windows,
/// the second after them. `lost` counts packets marked lost in the interval, while the kernel's `tcpi_lost` counts
/// packets lost and not yet retransmitted. Maxima are over the connection; theirs are over a window.
const SAGE: [&[&str]; 2] = [
    &["srtt", "rttvar", "thr", "ca_state"],
    &[
        "time_delta",
        "rtt_rate",
        "loss_db",
        "acked_rate",
        "dr_ratio",
        "bdp_cwnd",
        "dr",
        "cwnd_unacked_rate",
        "dr_max_ratio",
        "dr_max",
        "pre_act",
    ],
];

impl Observation {
    /// The presets: name, and default history.
    pub const PRESETS: [(&'static str, usize); 3] = [("aurora", 10), ("orca", 1), ("sage", 1)];

    /// Reads the name of a preset, or names of features separated by commas. The observation covers the last `history`
    /// intervals, by default the preset's number (1 for names of features).
    ///
    /// # Errors
    /// An unknown name; a history of 0 or over 1000 intervals.
    pub fn parse(text: &str, history: Option<usize>) -> Result<Self, ObservationError> {
        let find = |name: &str| Feature::find(name).ok_or_else(|| ObservationError::UnknownFeature(name.to_owned()));
        let all = |names: &[&str]| names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>();
        let features = match text.trim() {
            "aurora" => all(&AURORA)?,
            "orca" => all(&ORCA)?,
            "sage" => [all(SAGE[0])?, Feature::windowed().collect(), all(SAGE[1])?].concat(),
            names => names.split(',').map(|name| find(name.trim())).collect::<Result<_, _>>()?,
        };
        let preset = Self::PRESETS.iter().find(|(name, _)| *name == text.trim());
        let history = history.unwrap_or(preset.map_or(1, |(_, history)| *history));
        if !(1..=MAX_HISTORY).contains(&history) {
            return Err(ObservationError::History(history));
        }
        Ok(Self { features, history })
    }

    /// The features of one interval.
    #[must_use]
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// Number of intervals in the observation, the oldest first.
    #[must_use]
    pub fn history(&self) -> usize {
        self.history
    }

    /// Number of values per path: features times history.
    #[must_use]
    pub fn len(&self) -> usize {
        self.features.len() * self.history
    }

    /// Always false: there is at least one feature.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    /// Whether a feature needs the windowed signals.
    pub(crate) fn is_windowed(&self) -> bool {
        self.features.iter().any(|feature| matches!(feature, Feature::Windowed(..)))
    }

    /// Moves the history in `values` by one interval and writes the newest.
    pub(crate) fn push(&self, values: &mut [f32], summary: &Summary, windows: &Windows) {
        let count = self.features.len();
        values.copy_within(count.., 0);
        let newest = values.len() - count;
        for (value, feature) in values[newest..].iter_mut().zip(&self.features) {
            *value = match feature {
                Feature::Windowed(signal, length, statistic) => windows.statistic(*signal, *length, *statistic),
                Feature::OfInterval(_) => feature.of_interval(summary) as f32,
            };
        }
    }
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let preset = Self::PRESETS.iter().find(|(name, _)| {
            Self::parse(name, Some(self.history)).is_ok_and(|preset| preset.features == self.features)
        });
        match preset {
            Some((name, _)) => f.write_str(name),
            None => f.write_str(&self.features.iter().map(|feature| feature.name()).collect::<Vec<_>>().join(",")),
        }
    }
}

/// The reason why an observation cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservationError {
    /// The name of neither a feature nor a preset.
    UnknownFeature(String),
    /// A history of this many intervals is not allowed.
    History(usize),
}

impl fmt::Display for ObservationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFeature(name) => {
                let names: Vec<String> = Feature::all().map(Feature::name).collect();
                write!(
                    f,
                    "`{name}` is neither a feature nor a preset (aurora, orca, sage); features are {}",
                    names.join(", ")
                )
            }
            Self::History(history) => write!(f, "a history of {history} intervals; 1 to {MAX_HISTORY} are allowed"),
        }
    }
}

impl std::error::Error for ObservationError {}
