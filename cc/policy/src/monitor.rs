//! The measurements of one path over a monitor interval.

use control::{AckSample, CaState, Decision, PathEvent};
use units::{Instant, Span};

/// The measurements of a path in one interval. Rates are of payload, in Mbit/s; times are in seconds; counts in
/// packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Length of the interval.
    pub elapsed: f64,
    /// Packets sent, retransmissions included.
    pub sent: f64,
    /// Packets delivered.
    pub acked: f64,
    /// Packets marked lost.
    pub lost: f64,
    /// Packets reported as CE-marked.
    pub marked: f64,
    /// Mean RTT. Without a sample in the interval, that of the previous interval; 0 before the first sample.
    pub rtt: f64,
    /// Smoothed RTT (RFC 6298).
    pub srtt: f64,
    /// Variation of the RTT (RFC 6298), over the samples that the controller saw.
    pub rttvar: f64,
    /// Minimum RTT of the path's filter.
    pub min_rtt: f64,
    /// Minimum over the intervals so far of the mean RTT.
    pub min_interval_rtt: f64,
    /// Slope of the RTT over time by least squares, seconds per second; 0 with samples at fewer than two instants.
    pub latency_gradient: f64,
    /// Rate of `acked`.
    pub throughput: f64,
    /// Rate of `sent`.
    pub send_rate: f64,
    /// Rate of `lost`.
    pub lost_rate: f64,
    /// Latest valid delivery-rate sample.
    pub delivery_rate: f64,
    /// Maximum throughput of an interval so far.
    pub max_throughput: f64,
    /// Maximum send rate of an interval so far.
    pub max_send_rate: f64,
    /// Throughput of the previous interval; 0 before the first.
    pub prior_throughput: f64,
    /// Maximum throughput up to the previous interval.
    pub prior_max_throughput: f64,
    /// Congestion window at the end.
    pub cwnd: f64,
    /// Packets sent and not cumulatively acknowledged, at the last acknowledgement.
    pub unacked: f64,
    /// Pacing rate at the end; cwnd / SRTT for an algorithm that does not pace.
    pub pacing_rate: f64,
    /// State at the last acknowledgement, 0 (Open) to 4 (Loss) as in Linux.
    pub ca_state: f64,
    /// The action that was in force, as the policy returned it.
    pub action: f64,
}

impl Summary {
    /// The sums over several paths. RTTs are means weighted by delivered packets; minimum RTTs are the minimum.
    #[must_use]
    pub fn of_group(paths: &[Self]) -> Self {
        let [first, others @ ..] = paths else { return Self::default() };
        let mut group = *first;
        if others.is_empty() {
            return group;
        }
        let sum = |value: fn(&Self) -> f64| paths.iter().map(value).sum::<f64>();
        let acked = sum(|path| path.acked);
        let mean = |value: fn(&Self) -> f64| match acked > 0.0 {
            true => paths.iter().map(|path| value(path) * path.acked).sum::<f64>() / acked,
            false => paths.iter().map(value).sum::<f64>() / paths.len() as f64,
        };
        let least = |value: fn(&Self) -> f64| {
            paths.iter().map(value).filter(|value| *value > 0.0).min_by(f64::total_cmp).unwrap_or(0.0)
        };
        group.elapsed = paths.iter().map(|path| path.elapsed).max_by(f64::total_cmp).unwrap_or(0.0);
        (group.sent, group.acked, group.lost) = (sum(|path| path.sent), acked, sum(|path| path.lost));
        group.marked = sum(|path| path.marked);
        (group.rtt, group.srtt, group.rttvar) =
            (mean(|path| path.rtt), mean(|path| path.srtt), mean(|path| path.rttvar));
        (group.min_rtt, group.min_interval_rtt) = (least(|path| path.min_rtt), least(|path| path.min_interval_rtt));
        group.latency_gradient = mean(|path| path.latency_gradient);
        (group.throughput, group.send_rate) = (sum(|path| path.throughput), sum(|path| path.send_rate));
        (group.lost_rate, group.delivery_rate) = (sum(|path| path.lost_rate), sum(|path| path.delivery_rate));
        (group.max_throughput, group.max_send_rate) = (sum(|path| path.max_throughput), sum(|path| path.max_send_rate));
        group.prior_throughput = sum(|path| path.prior_throughput);
        group.prior_max_throughput = sum(|path| path.prior_max_throughput);
        (group.cwnd, group.unacked) = (sum(|path| path.cwnd), sum(|path| path.unacked));
        group.pacing_rate = sum(|path| path.pacing_rate);
        group
    }
}

/// The sums of the current interval of a path, and the values kept between intervals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor {
    sent: u64,
    acked: u64,
    lost: u64,
    marked: u64,
    rtt: RttSums,
    mss: f64,
    last: Summary,
}

/// Sums for the mean and the slope of RTT samples (x: seconds from the interval's start, y: seconds).
#[derive(Clone, Copy, Debug, Default)]
struct RttSums {
    count: u64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl RttSums {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    fn slope(&self) -> f64 {
        let count = self.count as f64;
        let spread = count * self.xx - self.x * self.x;
        // With samples at a single instant, the spread is only rounding error.
        if spread <= 1e-12 * count * self.xx { 0.0 } else { (count * self.xy - self.x * self.y) / spread }
    }
}

impl Monitor {
    /// Counts an event at `now` in an interval that began at `start`.
    pub(crate) fn on_event(&mut self, now: Instant, start: Instant, event: &PathEvent) {
        match event {
            PathEvent::PathUp(info) => {
                *self = Self { mss: f64::from(info.mss), ..Self::default() };
                if let Some(rtt) = info.rtt {
                    self.measure_rtt(rtt);
                    (self.last.srtt, self.last.min_rtt) = (rtt.as_secs_f64(), rtt.as_secs_f64());
                }
            }
            PathEvent::Ack(sample) => self.on_ack(now, start, sample),
            PathEvent::MssChanged { mss } => self.mss = f64::from(*mss),
            _ => {}
        }
    }

    #[inline]
    fn on_ack(&mut self, now: Instant, start: Instant, sample: &AckSample) {
        self.sent += u64::from(sample.sent);
        self.acked += u64::from(sample.acked);
        self.lost += u64::from(sample.lost);
        self.marked += u64::from(sample.marked);
        if let Some(rtt) = sample.rtt {
            self.rtt.add(now.since(start).as_secs_f64(), rtt.as_secs_f64());
            self.measure_rtt(rtt);
        }
        if sample.srtt > Span::ZERO {
            self.last.srtt = sample.srtt.as_secs_f64();
        }
        if sample.min_rtt < Span::MAX {
            self.last.min_rtt = sample.min_rtt.as_secs_f64();
        }
        if let Some(rate) = &sample.rate_sample {
            self.last.delivery_rate = self.mbps(f64::from(rate.delivered), rate.interval.as_secs_f64());
        }
        self.last.unacked = sample.snd_nxt.saturating_sub(sample.snd_una) as f64;
        self.last.ca_state = f64::from(sample.ca_state as u8);
    }

    /// Updates RTTVAR (RFC 6298), with the previous RTT sample in place of SRTT.
    fn measure_rtt(&mut self, rtt: Span) {
        let rtt = rtt.as_secs_f64();
        self.last.rttvar = match self.last.srtt > 0.0 {
            true => 0.75 * self.last.rttvar + 0.25 * (self.last.srtt - rtt).abs(),
            false => rtt / 2.0,
        };
    }

    fn mbps(&self, packets: f64, seconds: f64) -> f64 {
        if seconds > 0.0 { packets * self.mss * 8.0 / (seconds * 1e6) } else { 0.0 }
    }

    /// Smoothed RTT; zero before the first sample.
    pub(crate) fn srtt(&self) -> Span {
        Span::from_secs_f64(self.last.srtt)
    }

    /// Payload of a full packet, bytes.
    pub(crate) fn mss(&self) -> f64 {
        self.mss
    }

    /// Ends an interval of length `elapsed` and begins the next one.
    pub(crate) fn close(&mut self, elapsed: Span, decision: Option<Decision>, action: f32) -> Summary {
        let (elapsed, rtt) = (elapsed.as_secs_f64(), std::mem::take(&mut self.rtt));
        let count = |counter: &mut u64| std::mem::take(counter) as f64;
        let (sent, acked) = (count(&mut self.sent), count(&mut self.acked));
        let (lost, marked) = (count(&mut self.lost), count(&mut self.marked));
        let (throughput, send_rate) = (self.mbps(acked, elapsed), self.mbps(sent, elapsed));
        let lost_rate = self.mbps(lost, elapsed);
        let (mss, last) = (self.mss, &mut self.last);
        if rtt.count > 0 {
            last.rtt = rtt.y / rtt.count as f64;
            let is_least = last.min_interval_rtt == 0.0 || last.rtt < last.min_interval_rtt;
            last.min_interval_rtt = if is_least { last.rtt } else { last.min_interval_rtt };
        }
        (last.elapsed, last.sent, last.acked, last.lost, last.marked) = (elapsed, sent, acked, lost, marked);
        last.latency_gradient = rtt.slope();
        (last.prior_throughput, last.prior_max_throughput) = (last.throughput, last.max_throughput);
        (last.throughput, last.send_rate, last.lost_rate) = (throughput, send_rate, lost_rate);
        last.max_throughput = last.max_throughput.max(throughput);
        last.max_send_rate = last.max_send_rate.max(send_rate);
        last.cwnd = decision.map_or(0.0, |decision| f64::from(decision.cwnd));
        last.pacing_rate = match decision.and_then(|decision| decision.pacing_rate) {
            Some(rate) => rate.as_mbps(),
            None if last.srtt > 0.0 => last.cwnd * mss * 8.0 / (last.srtt * 1e6),
            None => 0.0,
        };
        last.action = f64::from(action);
        *last
    }
}

/// Checks the numbers of the states of [`CaState`] that [`Summary::ca_state`] reports.
const _: () = assert!(CaState::Loss as u8 == 4);
