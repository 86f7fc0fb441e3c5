//! The model: bandwidth, bounds, and the packets in flight that follow from them. Bandwidth is in packets a microsecond
//! times 2^24, gains and shares in 1/256, as in version 1.

use super::bandwidth::{self, GAIN_ONE};
use super::cycle::Mode;
use super::{Ack, Bbr3};
use crate::Params;
use units::Span;

/// The least window: keeps the acknowledgements of a delaying receiver coming.
pub(super) const MIN_WINDOW: u32 = 4;
/// Linux's initial window: what a path without RTT may hold.
const BLIND_WINDOW: u64 = 10;
/// A burst is a millisecond (2^-10 s) of data and, on short paths, up to one offload frame more: halved for each 2^9 us
/// of least RTT...
const BURST_SHIFT: u32 = 10;
const OFFLOAD_BYTES: u64 = 65_536;
const OFFLOAD_RTT_SHIFT: u32 = 9;
/// ...but no more bytes than offload takes (64 KiB with headers), and no fewer packets than this.
const LARGEST_BURST: u64 = 65_535 - 320;
const LEAST_BURST: u64 = 2;

/// What can be set, in 1/256 where it is a share.
#[derive(Debug)]
pub(super) struct Tuning {
    pub(super) loss_threshold: u32,
    /// What remains of a bound after a round with loss.
    pub(super) kept: u32,
    pub(super) headroom: u32,
    pub(super) probe_wait: Span,
    pub(super) ecn: bool,
}

impl Tuning {
    /// Shares round down, as Linux's integer constants: 5, 76 (which leaves 180) and 38.
    pub(super) fn new(settings: &Params) -> Self {
        let share = |value: f64| (value * f64::from(GAIN_ONE)) as u32;
        Self {
            loss_threshold: share(settings.number("loss_threshold")),
            kept: GAIN_ONE - share(1.0 - settings.number("beta")),
            headroom: share(settings.number("headroom")),
            probe_wait: Span::from_secs_f64(settings.number("probe_wait")),
            ecn: settings.word("ecn") == "on",
        }
    }
}

/// What loss and marks allow. The greatest value stands for "no bound".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Short-term, packets a microsecond times 2^24 (Linux `bw_lo`).
    pub(super) bandwidth: u64,
    /// Short-term, packets in flight (Linux `inflight_lo`).
    pub(super) short: u32,
    /// Long-term, packets in flight (Linux `inflight_hi`).
    pub(super) long: u32,
}

impl Bounds {
    pub(super) const NONE: Self = Self { bandwidth: u64::MAX, short: u32::MAX, long: u32::MAX };

    pub(super) fn max(self, other: Self) -> Self {
        Self {
            bandwidth: self.bandwidth.max(other.bandwidth),
            short: self.short.max(other.short),
            long: self.long.max(other.long),
        }
    }

    pub(super) fn forget_short_term(&mut self) {
        (self.bandwidth, self.short) = (Self::NONE.bandwidth, Self::NONE.short);
    }
}

/// A share of a count, rounded down.
pub(super) fn share(count: u32, of_256: u32) -> u32 {
    ((u64::from(count) * u64::from(of_256)) >> 8) as u32
}

/// `packets` over `interval`, rounded up.
pub(super) fn rate(packets: u32, interval: Span) -> u64 {
    (u64::from(packets) << 24).div_ceil(interval.as_micros().max(1))
}

impl Bbr3 {
    /// The greatest delivery rate of this cycle and the one before.
    pub(super) fn greatest_bandwidth(&self) -> u64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    /// The bandwidth in use.
    pub(super) fn bandwidth(&self) -> u64 {
        self.greatest_bandwidth().min(self.bounds.bandwidth)
    }

    pub(super) fn update_bandwidth(&mut self, ack: &Ack<'_>) {
        let Some(rs) = &ack.rs else { return };
        if !rs.app_limited || ack.rate >= self.greatest_bandwidth() {
            self.bandwidths[1] = self.bandwidths[1].max(ack.rate);
        }
        self.update_bounds(ack);
    }

    /// A cycle ends: what the one before it saw is forgotten.
    pub(super) fn advance_bandwidth(&mut self) {
        if self.bandwidths[1] > 0 {
            self.bandwidths = [self.bandwidths[1], 0];
        }
    }

    /// `gain * bandwidth * least RTT` in packets, rounded up.
    pub(super) fn product(&self, bandwidth: u64, gain: u32) -> u64 {
        self.least_rtt.micros().map_or(BLIND_WINDOW, |rtt| bandwidth::product(bandwidth, rtt, gain))
    }

    /// At least three bursts (the sender's, the network's, the receiver's); two packets more to make a difference in
    /// the mode that probes for more.
    pub(super) fn with_bursts(&self, packets: u64) -> u32 {
        let packets = packets.max(3 * self.burst()).max(u64::from(MIN_WINDOW));
        let packets = if self.mode == Mode::Up { packets.saturating_add(2) } else { packets };
        u32::try_from(packets).unwrap_or(u32::MAX / 2)
    }

    /// Packets in flight that fill the path at this bandwidth.
    pub(super) fn in_flight_at(&self, bandwidth: u64) -> u32 {
        self.with_bursts(self.product(bandwidth, GAIN_ONE))
    }

    /// Packets in flight that fill the path as far as the window allows.
    pub(super) fn target_in_flight(&self) -> u32 {
        self.in_flight_at(self.bandwidth()).min(self.cwnd)
    }

    /// The long-term bound less what is left to others.
    pub(super) fn with_headroom(&self) -> u32 {
        match self.bounds.long {
            u32::MAX => u32::MAX,
            long => (long - share(long, self.tuning.headroom).max(1).min(long)).max(MIN_WINDOW),
        }
    }

    /// Packets in one burst of the pacer.
    pub(super) fn burst(&self) -> u64 {
        let halvings = self.least_rtt.micros().map_or(u64::MAX, |rtt| rtt >> OFFLOAD_RTT_SHIFT);
        let offload = u32::try_from(halvings).ok().and_then(|n| OFFLOAD_BYTES.checked_shr(n)).unwrap_or(0);
        let bytes = ((self.pacing_rate >> BURST_SHIFT) + offload).min(LARGEST_BURST);
        (bytes / u64::from(self.mss.max(1))).max(LEAST_BURST)
    }
}
