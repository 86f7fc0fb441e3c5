//! The model: bandwidth, bounds, and the resulting packets in flight. As in version 1, bandwidth is in packets per
//! microsecond times 2^24, and gains and fractions are in 1/256.

use super::bandwidth::{self, BBR_UNIT};
use super::cycle::Mode;
use super::rules::Rules;
use super::{AckInfo, Bbr3};
use crate::Params;
use units::Span;

/// Minimum window, enough for a receiver with delayed acknowledgements, packets.
pub(super) const MIN_PIPE_CWND: u32 = 4;
/// Linux's initial window: the limit for a path without RTT.
const TCP_INIT_CWND: u64 = 10;
/// A burst is a millisecond of data (Linux: 2^-10 s) and, in Linux on short paths, up to one offload frame more: halved
/// for each 2^9 us of minimum RTT...
const BURST_SHIFT: u32 = 10;
const OFFLOAD_BYTES: u64 = 65_536;
const OFFLOAD_RTT_SHIFT: u32 = 9;
/// ...up to the bytes of segmentation offload (64 KiB with headers), and at least this many packets.
const GSO_MAX_SIZE: u64 = 65_535 - 320;
const MIN_TSO_SEGS: u64 = 2;

/// Parameters; shares in 1/256.
#[derive(Debug)]
pub(super) struct Constants {
    pub(super) loss_thresh: u32,
    /// Loss threshold, as the fraction of a flight that may be lost, if it is exact.
    exact_loss_thresh: Option<f64>,
    /// Fraction of a bound that remains after a round with loss.
    pub(super) beta: u32,
    pub(super) headroom: u32,
    pub(super) probe_wait: Span,
    pub(super) ecn: bool,
}

impl Constants {
    /// Shares round down as Linux's integer constants, 5, 76 (which leaves 180) and 38, or to the nearest.
    pub(super) fn new(params: &Params, rules: &Rules) -> Self {
        let half = if rules.shares_round_down { 0.0 } else { 0.5 };
        let share = |value: f64| (value * f64::from(BBR_UNIT) + half) as u32;
        let loss_thresh = params.number("loss_threshold");
        Self {
            loss_thresh: share(loss_thresh),
            exact_loss_thresh: (!rules.shares_round_down).then_some(loss_thresh),
            beta: BBR_UNIT - share(1.0 - params.number("beta")),
            headroom: share(params.number("headroom")),
            probe_wait: Span::from_secs_f64(params.number("probe_wait")),
            ecn: rules.ecn && params.choice("ecn") == "on",
        }
    }

    /// Number of packets of a flight of `in_flight` that may be lost.
    pub(super) fn loss_budget(&self, in_flight: u32) -> u32 {
        match self.exact_loss_thresh {
            Some(threshold) => (f64::from(in_flight) * threshold) as u32,
            None => share(in_flight, self.loss_thresh),
        }
    }
}

/// Bounds from loss and marks; the maximum value means no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Short-term bound, packets per microsecond times 2^24 (Linux `bw_lo`).
    pub(super) bw_lo: u64,
    /// Short-term bound, packets in flight (Linux `inflight_lo`).
    pub(super) inflight_lo: u32,
    /// Long-term bound, packets in flight (Linux `inflight_hi`).
    pub(super) inflight_hi: u32,
}

impl Bounds {
    pub(super) const NONE: Self = Self { bw_lo: u64::MAX, inflight_lo: u32::MAX, inflight_hi: u32::MAX };

    pub(super) fn max(self, other: Self) -> Self {
        Self {
            bw_lo: self.bw_lo.max(other.bw_lo),
            inflight_lo: self.inflight_lo.max(other.inflight_lo),
            inflight_hi: self.inflight_hi.max(other.inflight_hi),
        }
    }

    pub(super) fn reset_lower_bounds(&mut self) {
        (self.bw_lo, self.inflight_lo) = (Self::NONE.bw_lo, Self::NONE.inflight_lo);
    }
}

/// A fraction of a count, rounded down.
pub(super) fn share(count: u32, of_256: u32) -> u32 {
    ((u64::from(count) * u64::from(of_256)) >> 8) as u32
}

/// `packets` over `interval`, rounded up.
pub(super) fn rate(packets: u32, interval: Span) -> u64 {
    (u64::from(packets) << 24).div_ceil(interval.as_micros().max(1))
}

impl Bbr3 {
    /// The maximum delivery rate of this cycle and the previous one.
    pub(super) fn max_bw(&self) -> u64 {
        self.bw_filter[0].max(self.bw_filter[1])
    }

    /// The bandwidth in use.
    pub(super) fn bw(&self) -> u64 {
        self.max_bw().min(self.bounds.bw_lo)
    }

    pub(super) fn update_max_bw(&mut self, ack: &AckInfo<'_>) {
        let Some(rate_sample) = &ack.rate_sample else { return };
        if !rate_sample.app_limited || ack.rate >= self.max_bw() {
            self.bw_filter[1] = self.bw_filter[1].max(ack.rate);
        }
        self.update_congestion_signals(ack);
    }

    /// Ends a cycle: the filter drops the maximum of the previous one.
    pub(super) fn advance_max_bw_filter(&mut self) {
        if self.bw_filter[1] > 0 {
            self.bw_filter = [self.bw_filter[1], 0];
        }
    }

    /// `gain * bandwidth * minimum RTT` in packets, rounded up.
    pub(super) fn bdp(&self, bandwidth: u64, gain: u32) -> u64 {
        self.min_rtt.micros().map_or(TCP_INIT_CWND, |rtt| bandwidth::bdp(bandwidth, rtt, gain))
    }

    /// At least three bursts (the sender's, the network's, the receiver's), plus two packets in the mode that probes
    /// for more, to make a difference.
    pub(super) fn quantization_budget(&self, packets: u64) -> u32 {
        let packets = packets.max(3 * self.send_quantum()).max(u64::from(MIN_PIPE_CWND));
        let packets = if self.mode == Mode::ProbeBwUp { packets.saturating_add(2) } else { packets };
        u32::try_from(packets).unwrap_or(u32::MAX / 2)
    }

    /// Packets in flight that fill the path at this bandwidth.
    pub(super) fn inflight(&self, bandwidth: u64) -> u32 {
        self.quantization_budget(self.bdp(bandwidth, BBR_UNIT))
    }

    /// Packets in flight that fill the path as far as the window allows.
    pub(super) fn target_inflight(&self) -> u32 {
        self.estimated_bdp(self.bw()).min(self.cwnd)
    }

    /// The bandwidth-delay product as a bound or target, packets.
    pub(super) fn estimated_bdp(&self, bandwidth: u64) -> u32 {
        if self.rules.bdp_with_bursts {
            self.inflight(bandwidth)
        } else {
            u32::try_from(self.bdp(bandwidth, BBR_UNIT)).unwrap_or(u32::MAX / 2)
        }
    }

    /// inflight_hi minus the headroom for other flows.
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        match self.bounds.inflight_hi {
            u32::MAX => u32::MAX,
            inflight_hi => {
                (inflight_hi - share(inflight_hi, self.constants.headroom).max(1).min(inflight_hi)).max(MIN_PIPE_CWND)
            }
        }
    }

    /// Packets in one burst of the pacer.
    pub(super) fn send_quantum(&self) -> u64 {
        let mss = u64::from(self.mss.max(1));
        if !self.rules.bursts_by_rtt {
            return ((self.pacing_rate / 1000).min(OFFLOAD_BYTES) / mss).max(MIN_TSO_SEGS);
        }
        let shift = self.min_rtt.micros().map_or(u64::MAX, |rtt| rtt >> OFFLOAD_RTT_SHIFT);
        let offload = u32::try_from(shift).ok().and_then(|n| OFFLOAD_BYTES.checked_shr(n)).unwrap_or(0);
        let bytes = ((self.pacing_rate >> BURST_SHIFT) + offload).min(GSO_MAX_SIZE);
        (bytes / mss).max(MIN_TSO_SEGS)
    }
}
