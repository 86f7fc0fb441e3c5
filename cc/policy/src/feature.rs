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

/// Name, unit (empty for a ratio), range, description, function.
type Row = (&'static str, &'static str, [f32; 2], &'static str, fn(&Summary) -> f64);

fn ratio(dividend: f64, divisor: f64, otherwise: f64) -> f64 {
    if divisor > 0.0 { dividend / divisor } else { otherwise }
}

/// The rate that is 1 in Sage's units, Mbit/s.
const SAGE_RATE: f64 = 100.0;
const ANY: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];
const POSITIVE: [f32; 2] = [0.0, f32::INFINITY];

/// Features of an interval. The second block is Aurora's, the third Orca's, the fourth Sage's.
const TABLE: &[Row] = &[
    ("elapsed_ms", "ms", POSITIVE, "length of the interval", |s| s.elapsed * 1e3),
    ("throughput_mbps", "Mbit/s", POSITIVE, "payload delivered", |s| s.throughput),
    ("send_rate_mbps", "Mbit/s", POSITIVE, "payload sent", |s| s.send_rate),
    ("lost_mbps", "Mbit/s", POSITIVE, "payload marked lost", |s| s.lost_rate),
    ("delivery_rate_mbps", "Mbit/s", POSITIVE, "latest delivery-rate sample", |s| s.delivery_rate),
    ("max_throughput_mbps", "Mbit/s", POSITIVE, "maximum throughput of an interval so far", |s| s.max_throughput),
    ("pacing_rate_mbps", "Mbit/s", POSITIVE, "pacing rate, or cwnd / SRTT without pacing", |s| s.pacing_rate),
    ("acked_packets", "packets", POSITIVE, "packets delivered", |s| s.acked),
    ("lost_packets", "packets", POSITIVE, "packets marked lost", |s| s.lost),
    ("loss_ratio", "", [0.0, 1.0], "lost / (lost + delivered)", |s| ratio(s.lost, s.lost + s.acked, 0.0)),
    ("marked_ratio", "", POSITIVE, "CE-marked / delivered", |s| ratio(s.marked, s.acked, 0.0)),
    ("rtt_ms", "ms", POSITIVE, "mean RTT; 0 before the first sample", |s| s.rtt * 1e3),
    ("srtt_ms", "ms", POSITIVE, "smoothed RTT", |s| s.srtt * 1e3),
    ("rttvar_ms", "ms", POSITIVE, "variation of the RTT (RFC 6298)", |s| s.rttvar * 1e3),
    ("min_rtt_ms", "ms", POSITIVE, "minimum RTT", |s| s.min_rtt * 1e3),
    ("queue_delay_ms", "ms", POSITIVE, "mean RTT above the minimum RTT", |s| (s.rtt - s.min_rtt).max(0.0) * 1e3),
    ("cwnd_packets", "packets", POSITIVE, "congestion window", |s| s.cwnd),
    ("unacked_packets", "packets", POSITIVE, "sent and not cumulatively acknowledged", |s| s.unacked),
    ("last_action", "", ANY, "the action in force during the interval", |s| s.action),
    ("latency_gradient", "s/s", ANY, "slope of the RTT over time (Aurora)", |s| s.latency_gradient),
    ("latency_ratio", "", POSITIVE, "mean RTT / minimum mean RTT of an interval so far (Aurora)", |s| {
        ratio(s.rtt, s.min_interval_rtt, 1.0)
    }),
    ("send_ratio", "", POSITIVE, "sent / delivered (Aurora); 1 if nothing was delivered", |s| {
        ratio(s.sent, s.acked, 1.0)
    }),
    ("thr_ratio", "", POSITIVE, "throughput / maximum so far (Orca)", |s| ratio(s.throughput, s.max_throughput, 0.0)),
    ("pacing_ratio", "", [0.0, 10.0], "pacing rate / maximum throughput, at most 10 (Orca)", |s| {
        ratio(s.pacing_rate, s.max_throughput, 0.0).min(10.0)
    }),
    ("loss_rate_ratio", "", POSITIVE, "5 x lost rate / maximum throughput (Orca)", |s| {
        ratio(5.0 * s.lost_rate, s.max_throughput, 0.0)
    }),
    ("acked_ratio", "", POSITIVE, "delivered packets / cwnd (Orca)", |s| ratio(s.acked, s.cwnd, 0.0)),
    ("elapsed_s", "s", POSITIVE, "length of the interval (Orca)", |s| s.elapsed),
    ("min_rtt_ratio", "", POSITIVE, "minimum RTT / smoothed RTT (Orca)", |s| ratio(s.min_rtt, s.srtt, 0.0)),
    ("delay_metric", "", [0.0, 1.0], "1.25 x minimum RTT / smoothed RTT, at most 1 (Orca)", |s| {
        ratio(1.25 * s.min_rtt, s.srtt, 1.0).min(1.0)
    }),
    ("srtt", "100 ms", POSITIVE, "smoothed RTT (Sage)", |s| s.srtt * 10.0),
    ("rttvar", "ms", POSITIVE, "variation of the RTT (Sage)", |s| s.rttvar * 1e3),
    ("thr", "100 Mbit/s", POSITIVE, "delivery rate (Sage)", |s| s.delivery_rate / SAGE_RATE),
    ("ca_state", "", [0.0, 4.0], "congestion state, 0 Open to 4 Loss (Sage)", |s| s.ca_state),
    ("time_delta", "", POSITIVE, "length of the interval / minimum RTT (Sage)", |s| ratio(s.elapsed, s.min_rtt, 0.0)),
    ("rtt_rate", "", POSITIVE, "minimum RTT / smoothed RTT (Sage)", |s| ratio(s.min_rtt, s.srtt, 0.0)),
    ("loss_db", "100 Mbit/s", POSITIVE, "lost rate (Sage)", |s| s.lost_rate / SAGE_RATE),
    ("acked_rate", "", POSITIVE, "throughput / maximum send rate (Sage)", |s| {
        ratio(s.throughput, s.max_send_rate, 0.0)
    }),
    ("dr_ratio", "", POSITIVE, "throughput / that of the previous interval (Sage)", |s| {
        ratio(s.throughput, s.prior_throughput, s.throughput)
    }),
    ("bdp_cwnd", "", POSITIVE, "maximum throughput x minimum RTT / cwnd (Sage)", |s| {
        // cwnd / SRTT as a rate is `pacing_rate` only without pacing; the packet size follows from throughput / acked.
        let mbit = ratio(s.throughput * s.elapsed, s.acked, 0.0) * s.cwnd;
        ratio(s.max_throughput * s.min_rtt, mbit, 0.0)
    }),
    ("dr", "100 Mbit/s", POSITIVE, "throughput (Sage)", |s| s.throughput / SAGE_RATE),
    ("cwnd_unacked_rate", "", POSITIVE, "unacknowledged packets / cwnd (Sage)", |s| ratio(s.unacked, s.cwnd, 0.0)),
    ("dr_max_ratio", "", POSITIVE, "maximum throughput / that of the previous interval (Sage)", |s| {
        ratio(s.max_throughput, s.prior_max_throughput, s.max_throughput)
    }),
    ("dr_max", "100 Mbit/s", POSITIVE, "maximum throughput (Sage)", |s| s.max_throughput / SAGE_RATE),
    ("pre_act", "", ANY, "the action in force during the interval (Sage)", |s| s.action),
];

/// Name, unit, description.
const SIGNALS: [(&str, &str, &str, WindowedSignal); 6] = [
    ("rtt", "100 ms", "smoothed RTT", WindowedSignal::Rtt),
    ("thr", "100 Mbit/s", "delivery rate", WindowedSignal::Throughput),
    ("rtt_rate", "", "minimum RTT / smoothed RTT", WindowedSignal::RttRate),
    ("rtt_var", "ms", "variation of the RTT", WindowedSignal::RttVar),
    ("inflight", "1000 packets", "packets not yet acknowledged", WindowedSignal::Inflight),
    ("lost", "100 packets", "packets marked lost", WindowedSignal::Lost),
];
/// Sage's windows: name and number of intervals.
const WINDOWS: [(&str, u16); 3] = [("s", 10), ("m", 200), ("l", 1000)];
/// Name, description.
const STATISTICS: [(&str, &str, Statistic); 3] =
    [("avg", "mean", Statistic::Avg), ("min", "minimum", Statistic::Min), ("max", "maximum", Statistic::Max)];

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
        SIGNALS.into_iter().flat_map(|(.., signal)| {
            let window = move |(_, length)| STATISTICS.map(|(.., statistic)| Self::Windowed(signal, length, statistic));
            WINDOWS.into_iter().flat_map(window)
        })
    }

    /// All features, in the order of the reference.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(Self::OfInterval).chain(Self::windowed())
    }

    /// The feature's name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::OfInterval(index) => TABLE[index].0.to_owned(),
            Self::Windowed(signal, length, statistic) => {
                let window = WINDOWS.iter().find(|(_, other)| *other == length).map_or("", |(name, _)| name);
                format!("{}_{window}_{}", signal_row(signal).0, statistic_row(statistic).0)
            }
        }
    }

    /// The feature's unit; empty for a ratio, a state or an action.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::OfInterval(index) => TABLE[index].1,
            Self::Windowed(signal, ..) => signal_row(signal).1,
        }
    }

    /// The feature's description.
    #[must_use]
    pub fn description(self) -> String {
        match self {
            Self::OfInterval(index) => TABLE[index].3.to_owned(),
            Self::Windowed(signal, length, statistic) => {
                let (signal, statistic) = (signal_row(signal).2, statistic_row(statistic).1);
                format!("{signal}, {statistic} over the last {length} intervals (Sage)")
            }
        }
    }

    /// The smallest and the largest value that the feature can have.
    #[must_use]
    pub fn range(self) -> [f32; 2] {
        match self {
            Self::OfInterval(index) => TABLE[index].2,
            Self::Windowed(..) => POSITIVE,
        }
    }

    /// The feature's value over an interval; 0 for a statistic of a window.
    pub(crate) fn of_interval(self, summary: &Summary) -> f64 {
        match self {
            Self::OfInterval(index) => TABLE[index].4(summary),
            Self::Windowed(..) => 0.0,
        }
    }
}

fn signal_row(signal: WindowedSignal) -> (&'static str, &'static str, &'static str) {
    let row = SIGNALS.iter().find(|(.., other)| *other == signal);
    row.map_or_else(Default::default, |(name, unit, description, _)| (*name, *unit, *description))
}

fn statistic_row(statistic: Statistic) -> (&'static str, &'static str) {
    let row = STATISTICS.iter().find(|(.., other)| *other == statistic);
    row.map_or_else(Default::default, |(name, description, _)| (*name, *description))
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
