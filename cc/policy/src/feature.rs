//! The features of an interval that a policy can observe, by name.

use crate::monitor::Summary;

/// One number of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// A function of the interval's measurements: an index into the table of features.
    OfInterval(usize),
    /// A statistic of a signal over the last intervals.
    Windowed(WindowedSignal, u16, Statistic),
}

/// A signal whose recent values are kept, in Sage's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowedSignal {
    /// `srtt`.
    Rtt,
    /// `thr`.
    Throughput,
    /// `rtt_rate`.
    RttRate,
    /// `rttvar`.
    RttVar,
    /// Packets not yet acknowledged, in thousands.
    Inflight,
    /// Packets marked lost, in hundreds.
    Lost,
}

/// A statistic over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Mean.
    Avg,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
}

/// Name, description with unit, minimum, function.
type Row = (&'static str, &'static str, f32, fn(&Summary) -> f64);

fn ratio(dividend: f64, divisor: f64, otherwise: f64) -> f64 {
    if divisor > 0.0 { dividend / divisor } else { otherwise }
}

/// The rate that is 1 in Sage's units, Mbit/s.
const SAGE_RATE: f64 = 100.0;
const ANY: f32 = f32::NEG_INFINITY;

/// Features of an interval. The second block is Aurora's, the third Orca's, the fourth Sage's.
const TABLE: &[Row] = &[
    ("elapsed_ms", "length of the interval, ms", 0.0, |s| s.elapsed * 1e3),
    ("throughput_mbps", "payload delivered, Mbit/s", 0.0, |s| s.throughput),
    ("send_rate_mbps", "payload sent, Mbit/s", 0.0, |s| s.send_rate),
    ("lost_mbps", "payload marked lost, Mbit/s", 0.0, |s| s.lost_rate),
    ("delivery_rate_mbps", "latest delivery-rate sample, Mbit/s", 0.0, |s| s.delivery_rate),
    ("max_throughput_mbps", "maximum throughput of an interval so far, Mbit/s", 0.0, |s| s.max_throughput),
    ("pacing_rate_mbps", "pacing rate, or cwnd / SRTT, Mbit/s", 0.0, |s| s.pacing_rate),
    ("acked_packets", "packets delivered", 0.0, |s| s.acked),
    ("lost_packets", "packets marked lost", 0.0, |s| s.lost),
    ("loss_ratio", "lost / (lost + delivered)", 0.0, |s| ratio(s.lost, s.lost + s.acked, 0.0)),
    ("marked_ratio", "CE-marked / delivered", 0.0, |s| ratio(s.marked, s.acked, 0.0)),
    ("rtt_ms", "mean RTT, ms", 0.0, |s| s.rtt * 1e3),
    ("srtt_ms", "smoothed RTT, ms", 0.0, |s| s.srtt * 1e3),
    ("rttvar_ms", "variation of the RTT (RFC 6298), ms", 0.0, |s| s.rttvar * 1e3),
    ("min_rtt_ms", "minimum RTT, ms", 0.0, |s| s.min_rtt * 1e3),
    ("queue_delay_ms", "mean RTT above the minimum RTT, ms", 0.0, |s| (s.rtt - s.min_rtt).max(0.0) * 1e3),
    ("cwnd_packets", "congestion window, packets", 0.0, |s| s.cwnd),
    ("unacked_packets", "sent and not cumulatively acknowledged, packets", 0.0, |s| s.unacked),
    ("last_action", "the action in force during the interval", ANY, |s| s.action),
    ("latency_gradient", "slope of the RTT over time, s/s (Aurora)", ANY, |s| s.latency_gradient),
    ("latency_ratio", "mean RTT / minimum mean RTT of an interval so far (Aurora)", 0.0, |s| {
        ratio(s.rtt, s.min_interval_rtt, 1.0)
    }),
    ("send_ratio", "sent / delivered (Aurora); 1 if nothing was delivered", 0.0, |s| ratio(s.sent, s.acked, 1.0)),
    ("thr_ratio", "throughput / maximum so far (Orca)", 0.0, |s| ratio(s.throughput, s.max_throughput, 0.0)),
    ("pacing_ratio", "pacing rate / maximum throughput, at most 10 (Orca)", 0.0, |s| {
        ratio(s.pacing_rate, s.max_throughput, 0.0).min(10.0)
    }),
    ("loss_rate_ratio", "5 x lost rate / maximum throughput (Orca)", 0.0, |s| {
        ratio(5.0 * s.lost_rate, s.max_throughput, 0.0)
    }),
    ("acked_ratio", "delivered packets / cwnd (Orca)", 0.0, |s| ratio(s.acked, s.cwnd, 0.0)),
    ("elapsed_s", "length of the interval, s (Orca)", 0.0, |s| s.elapsed),
    ("min_rtt_ratio", "minimum RTT / smoothed RTT (Orca)", 0.0, |s| ratio(s.min_rtt, s.srtt, 0.0)),
    ("delay_metric", "1.25 x minimum RTT / smoothed RTT, at most 1 (Orca)", 0.0, |s| {
        ratio(1.25 * s.min_rtt, s.srtt, 1.0).min(1.0)
    }),
    ("srtt", "smoothed RTT, 100 ms (Sage)", 0.0, |s| s.srtt * 10.0),
    ("rttvar", "variation of the RTT, ms (Sage)", 0.0, |s| s.rttvar * 1e3),
    ("thr", "delivery rate, 100 Mbit/s (Sage)", 0.0, |s| s.delivery_rate / SAGE_RATE),
    ("ca_state", "congestion state, 0 Open to 4 Loss (Sage)", 0.0, |s| s.ca_state),
    ("time_delta", "length of the interval / minimum RTT (Sage)", 0.0, |s| ratio(s.elapsed, s.min_rtt, 0.0)),
    ("rtt_rate", "minimum RTT / smoothed RTT (Sage)", 0.0, |s| ratio(s.min_rtt, s.srtt, 0.0)),
    ("loss_db", "lost rate, 100 Mbit/s (Sage)", 0.0, |s| s.lost_rate / SAGE_RATE),
    ("acked_rate", "throughput / maximum send rate (Sage)", 0.0, |s| ratio(s.throughput, s.max_send_rate, 0.0)),
    ("dr_ratio", "throughput / that of the previous interval (Sage)", 0.0, |s| {
        ratio(s.throughput, s.prior_throughput, s.throughput)
    }),
    ("bdp_cwnd", "maximum throughput x minimum RTT / cwnd (Sage)", 0.0, |s| {
        // cwnd / SRTT as a rate is `pacing_rate` only without pacing; the packet size follows from throughput / acked.
        let mbit = ratio(s.throughput * s.elapsed, s.acked, 0.0) * s.cwnd;
        ratio(s.max_throughput * s.min_rtt, mbit, 0.0)
    }),
    ("dr", "throughput, 100 Mbit/s (Sage)", 0.0, |s| s.throughput / SAGE_RATE),
    ("cwnd_unacked_rate", "unacknowledged packets / cwnd (Sage)", 0.0, |s| ratio(s.unacked, s.cwnd, 0.0)),
    ("dr_max_ratio", "maximum throughput / that of the previous interval (Sage)", 0.0, |s| {
        ratio(s.max_throughput, s.prior_max_throughput, s.max_throughput)
    }),
    ("dr_max", "maximum throughput, 100 Mbit/s (Sage)", 0.0, |s| s.max_throughput / SAGE_RATE),
    ("pre_act", "the action in force during the interval (Sage)", ANY, |s| s.action),
];

const SIGNALS: [(&str, WindowedSignal); 6] = [
    ("rtt", WindowedSignal::Rtt),
    ("thr", WindowedSignal::Throughput),
    ("rtt_rate", WindowedSignal::RttRate),
    ("rtt_var", WindowedSignal::RttVar),
    ("inflight", WindowedSignal::Inflight),
    ("lost", WindowedSignal::Lost),
];
/// Sage's windows: name and number of intervals.
const WINDOWS: [(&str, u16); 3] = [("s", 10), ("m", 200), ("l", 1000)];
const STATISTICS: [(&str, Statistic); 3] = [("avg", Statistic::Avg), ("min", Statistic::Min), ("max", Statistic::Max)];

/// Number of intervals in the longest window.
pub(crate) const LONGEST_WINDOW: usize = 1000;

impl Feature {
    /// The feature called `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        if let Some(index) = TABLE.iter().position(|row| row.0 == name) {
            return Some(Self::OfInterval(index));
        }
        Self::windowed().find(|feature| feature.name() == name)
    }

    /// Sage's window statistics in its order: signal, window, statistic.
    pub(crate) fn windowed() -> impl Iterator<Item = Self> {
        SIGNALS.into_iter().flat_map(|(_, signal)| {
            let window = move |(_, length)| STATISTICS.map(|(_, statistic)| Self::Windowed(signal, length, statistic));
            WINDOWS.into_iter().flat_map(window)
        })
    }

    /// The feature's name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::OfInterval(index) => TABLE[index].0.to_owned(),
            Self::Windowed(signal, length, statistic) => {
                let signal = SIGNALS.iter().find(|(_, other)| *other == signal).map_or("", |(name, _)| name);
                let window = WINDOWS.iter().find(|(_, other)| *other == length).map_or("", |(name, _)| name);
                let statistic = STATISTICS.iter().find(|(_, other)| *other == statistic).map_or("", |(name, _)| name);
                format!("{signal}_{window}_{statistic}")
            }
        }
    }

    /// The feature's description, with its unit.
    #[must_use]
    pub fn description(self) -> String {
        match self {
            Self::OfInterval(index) => TABLE[index].1.to_owned(),
            Self::Windowed(_, length, _) => format!("over the last {length} intervals (Sage)"),
        }
    }

    /// The smallest value that the feature can have.
    #[must_use]
    pub fn low(self) -> f32 {
        match self {
            Self::OfInterval(index) => TABLE[index].2,
            Self::Windowed(..) => 0.0,
        }
    }

    /// The feature's value over an interval; 0 for a statistic of a window.
    pub(crate) fn of_interval(self, summary: &Summary) -> f64 {
        match self {
            Self::OfInterval(index) => TABLE[index].3(summary),
            Self::Windowed(..) => 0.0,
        }
    }
}

/// The names of all features.
pub fn feature_names() -> impl Iterator<Item = String> {
    (0..TABLE.len()).map(Feature::OfInterval).chain(Feature::windowed()).map(Feature::name)
}

/// The recent values of the windowed signals of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows {
    values: [Vec<f32>; 6],
    next: usize,
}

impl Windows {
    /// Adds the values of an interval.
    pub(crate) fn push(&mut self, summary: &Summary) {
        let values = [
            summary.srtt * 10.0,
            summary.delivery_rate / SAGE_RATE,
            ratio(summary.min_rtt, summary.srtt, 0.0),
            summary.rttvar * 1e3,
            summary.unacked / 1e3,
            summary.lost / 1e2,
        ];
        for (ring, value) in self.values.iter_mut().zip(values) {
            match ring.len() < LONGEST_WINDOW {
                true => ring.push(value as f32),
                false => ring[self.next] = value as f32,
            }
        }
        self.next = (self.next + 1) % LONGEST_WINDOW;
    }

    /// Forgets all values.
    pub(crate) fn clear(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
        self.next = 0;
    }

    /// A statistic over the last `length` values; 0 without any.
    pub(crate) fn statistic(&self, signal: WindowedSignal, length: u16, statistic: Statistic) -> f32 {
        let ring = &self.values[signal as usize];
        let length = usize::from(length).min(ring.len());
        if length == 0 {
            return 0.0;
        }
        let end = if self.next == 0 { ring.len() } else { self.next };
        let (wrapped, recent) = match end.checked_sub(length) {
            Some(start) => (&[][..], &ring[start..end]),
            None => (&ring[ring.len() + end - length..], &ring[..end]),
        };
        let values = wrapped.iter().chain(recent).copied();
        match statistic {
            Statistic::Avg => (values.map(f64::from).sum::<f64>() / length as f64) as f32,
            Statistic::Min => values.fold(f32::INFINITY, f32::min),
            Statistic::Max => values.fold(f32::NEG_INFINITY, f32::max),
        }
    }
}
