//! What differs between kernels in how the receive window follows from the buffer, and the buffer from what is read.

/// Fraction in which the share of a packet's memory is counted (`TCP_RMEM_TO_WIN_SCALE`).
const RATIO_BITS: u32 = 8;
/// Half, which is also assumed before the first packet (`TCP_DEFAULT_SCALING_RATIO` since 6.10).
pub(super) const HALF: u64 = 1 << (RATIO_BITS - 1);
/// Memory of a packet without its payload, as the autotuning counts it, bytes: `sk_buff`, `skb_shared_info` and
/// `MAX_TCP_HEADER`.
const OVERHEAD: u64 = 576 + 256;
/// Step in which the autotuning raises the memory of a packet until half of it holds the payload, bytes.
const MEMORY_STEP: u64 = 128;
/// Segments that the buffer has room for on top of what the tuning measures, before 6.16.
const SPARE_SEGMENTS: u64 = 16;

/// The kernel whose rules of receive window and autotuning are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveTuning {
    /// Linux 6.1: half of the buffer is window (`tcp_adv_win_scale` 1).
    #[default]
    Linux6_1,
    /// Linux 6.12: the payload's share of a packet's memory is window (`scaling_ratio`, since 6.5).
    Linux6_12,
    /// Linux 6.18: as 6.12, and the buffer grows without spare segments (`tcp_rcvbuf_grow`, since 6.16).
    Linux6_18,
}

impl ReceiveTuning {
    /// Memory that is charged for one received packet, bytes (`skb->truesize`): `sk_buff` and the head of a 2 KiB buffer;
    /// since 6.3 the head of a packet from the same machine is the small one of 704 bytes, without the payload.
    pub(super) fn truesize(self, mss: u64) -> u64 {
        match self {
            Self::Linux6_1 => 2304,
            Self::Linux6_12 | Self::Linux6_18 => mss + 256 + 704,
        }
    }

    /// The share of the buffer that is window once packets have come, in 256ths.
    pub(super) fn ratio(self, mss: u64) -> u64 {
        match self {
            Self::Linux6_1 => HALF,
            Self::Linux6_12 | Self::Linux6_18 => ((mss << RATIO_BITS) / self.truesize(mss)).max(1),
        }
    }

    /// The buffer to which what was read in a round trip grows it, bytes: `copied`, and `prior` in the one before.
    pub(super) fn buffer(self, mss: u64, ratio: u64, copied: u64, prior: u64) -> u64 {
        let spare = if self == Self::Linux6_18 { 0 } else { SPARE_SEGMENTS * mss };
        let window = 2 * copied + spare;
        // The sender is in slow start: it may double again meanwhile.
        let window = window + 2 * (window * (copied - prior) / prior);
        match self {
            Self::Linux6_1 => window / mss * memory_per_packet(mss),
            Self::Linux6_12 | Self::Linux6_18 => (window << RATIO_BITS) / ratio,
        }
    }
}

/// The window that so much of the buffer is (`tcp_win_from_space`), bytes.
pub(super) fn window_of(space: u64, ratio: u64) -> u64 {
    space.saturating_mul(ratio) >> RATIO_BITS
}

/// Memory of a packet in the autotuning's reckoning, bytes (Linux `rcvmem`).
fn memory_per_packet(mss: u64) -> u64 {
    let least = mss + OVERHEAD;
    least + (2 * mss).saturating_sub(least).next_multiple_of(MEMORY_STEP)
}
