//! The model's units, as in Linux: bandwidth in packets per microsecond times 2^24, gains in 1/256.

use super::{Bbr, TCP_INIT_CWND};
use units::Span;

pub(super) const BW_SCALE: u32 = 24;
const GAIN_SHIFT: u32 = 8;
/// A gain of one.
pub(in crate::single) const BBR_UNIT: u32 = 1 << GAIN_SHIFT;
/// Pacing margin, percent, so that queues drain.
const PACING_MARGIN_PERCENT: u128 = 99;
/// Pacing rate below which a burst is one packet, bytes per second (1.2 Mbit/s).
const MIN_TSO_RATE: u64 = 1_200_000 / 8;
/// A burst is the data of 2^-10 s, within the limits below.
const BURST_SHIFT: u32 = 10;
/// Maximum burst, bytes of segmentation offload: 64 KiB without `MAX_TCP_HEADER`, which has this value in kernels with
/// wireless drivers.
pub(super) const GSO_MAX_SIZE: u64 = 65_535 - 320;
/// The same in the kernels that were measured.
pub(super) const MEASURED_GSO_MAX_SIZE: u64 = 65_535 - 256;
const GSO_MAX_SEGS: u64 = 127;

/// `packets` over `interval`.
pub(in crate::single) fn rate(packets: u32, interval: Span) -> u64 {
    (u64::from(packets) << BW_SCALE) / interval.as_micros().max(1)
}

/// Packets that `bandwidth` delivers in `span`.
pub(in crate::single) fn packets_in(bandwidth: u64, span: Span) -> u64 {
    saturate((u128::from(bandwidth) * u128::from(span.as_micros())) >> BW_SCALE)
}

/// `gain * bandwidth` minus the pacing margin.
pub(in crate::single) fn bytes_per_second(bandwidth: u64, mss: u32, gain: u32) -> u64 {
    let scaled = (u128::from(bandwidth) * u128::from(mss) * u128::from(gain)) >> GAIN_SHIFT;
    saturate((scaled * (10_000 * PACING_MARGIN_PERCENT)) >> BW_SCALE)
}

/// `gain * bandwidth * rtt` in packets, rounded up; `rtt` in microseconds.
pub(in crate::single) fn bdp(bandwidth: u64, rtt: u64, gain: u32) -> u64 {
    let scaled = (u128::from(bandwidth) * u128::from(rtt) * u128::from(gain)) >> GAIN_SHIFT;
    saturate(scaled.div_ceil(1 << BW_SCALE))
}

/// Pacing rate before any measurement, bytes per second: `gain * cwnd / srtt`, with a millisecond while the RTT is
/// unknown (Linux `bbr_init_pacing_rate_from_rtt`).
pub(in crate::single) fn initial_pacing_rate(cwnd: u32, srtt: Span, mss: u32, gain: u32) -> u64 {
    let rtt = if srtt > Span::ZERO { srtt.max(Span::from_micros(1)) } else { Span::from_millis(1) };
    bytes_per_second(rate(cwnd, rtt), mss, gain)
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

impl Bbr {
    /// `gain * bandwidth * minimum RTT` in packets, rounded up.
    pub(super) fn bdp(&self, bandwidth: u64, gain: u32) -> u64 {
        self.min_rtt.min_rtt_us.map_or(u64::from(TCP_INIT_CWND), |rtt| bdp(bandwidth, rtt, gain))
    }

    /// Packets in flight at this gain, with room for bursts at both ends.
    pub(super) fn inflight(&self, gain: u32) -> u64 {
        self.quantization_budget(self.bdp(self.bw.get(), gain))
    }

    /// Adds three bursts (the sender's, the network's, the receiver's), rounded up to an even number for a receiver
    /// that acknowledges pairs, and two packets in the probing phase, to make a difference. On a path of a tunnel it
    /// adds a quarter of a burst instead ([`bbr_path`](crate::single::bbr_path)).
    pub(super) fn quantization_budget(&self, packets: u64) -> u64 {
        let burst = self.tso_segs_goal();
        let sum = packets.saturating_add(if self.for_tunnel_path { burst / 4 } else { 3 * burst });
        let even = sum.saturating_add(sum & 1);
        if self.is_probing_for_more() { even.saturating_add(2) } else { even }
    }

    /// Packets in one burst of the pacer.
    pub(super) fn tso_segs_goal(&self) -> u64 {
        let min_segs = if self.pacing_rate < MIN_TSO_RATE { 1 } else { 2 };
        let bytes = (self.pacing_rate >> BURST_SHIFT).min(self.gso_max_size);
        (bytes / u64::from(self.mss.max(1))).clamp(min_segs, GSO_MAX_SEGS)
    }
}
