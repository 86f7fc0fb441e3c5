//! Rates from the counters of two reports.

use units::{Instant, Rate, Span};

/// The counters of a path at one time, since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathCounters {
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) sent_packets: u64,
    pub(super) lost_packets: u64,
}

/// The rates of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PathRates {
    pub(super) send: Rate,
    pub(super) receive: Rate,
    /// Lost share of the packets sent, 0 to 1; `None` if none was sent.
    pub(super) loss_ratio: Option<f64>,
}

/// Measures the rates of a path between reports that are at least [`MIN_INTERVAL`] apart; the first report gives rates
/// since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateMeter {
    last_update: Instant,
    counters: PathCounters,
    rates: PathRates,
}

/// Reports that follow more closely get the rates of the last one.
const MIN_INTERVAL: Span = Span::from_millis(200);

impl RateMeter {
    pub(super) fn update(&mut self, now: Instant, counters: PathCounters) -> PathRates {
        let interval = now.since(self.last_update);
        if interval >= MIN_INTERVAL {
            let last = std::mem::replace(&mut self.counters, counters);
            let rate = |bytes: u64, last_bytes: u64| Rate::of(bytes.saturating_sub(last_bytes), interval);
            let sent = counters.sent_packets.saturating_sub(last.sent_packets);
            let lost = counters.lost_packets.saturating_sub(last.lost_packets);
            self.rates = PathRates {
                send: rate(counters.sent_bytes, last.sent_bytes),
                receive: rate(counters.received_bytes, last.received_bytes),
                loss_ratio: (sent > 0).then(|| (lost as f64 / sent as f64).min(1.0)),
            };
            self.last_update = now;
        }
        self.rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_since_the_last_report_and_close_reports_share_them() {
        let mut meter = RateMeter::default();
        let counters = |sent_bytes, lost_packets| PathCounters {
            sent_bytes,
            received_bytes: 2 * sent_bytes,
            sent_packets: sent_bytes / 1000,
            lost_packets,
        };
        let millis = |ms: u64| Instant(ms * 1_000_000);
        assert_eq!(meter.update(millis(1000), counters(1_000_000, 0)).send, Rate(8_000_000), "since the start");
        let rates = meter.update(millis(2000), counters(1_500_000, 50));
        assert_eq!(rates, PathRates { send: Rate(4_000_000), receive: Rate(8_000_000), loss_ratio: Some(0.1) });
        assert_eq!(meter.update(millis(2100), counters(9_000_000, 50)), rates);
    }
}
