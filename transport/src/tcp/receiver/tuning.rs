//! Differences between kernels in how the receive window follows from the buffer, and the buffer from the read data.

use control::LinuxRelease;

/// Binary digits of the fraction that is window (`TCP_RMEM_TO_WIN_SCALE`).
const RATIO_BITS: u32 = 8;
/// One half, which is also assumed before the first packet (`TCP_DEFAULT_SCALING_RATIO` since 6.10).
pub(super) const HALF: u64 = 1 << (RATIO_BITS - 1);
/// Memory of a packet without its payload, as the autotuning counts it, bytes: `sk_buff`, `skb_shared_info` and
/// `MAX_TCP_HEADER`.
const OVERHEAD: u64 = 576 + 256;
/// Step by which the autotuning raises the memory of a packet until the payload fits into half of it, bytes.
const MEMORY_STEP: u64 = 128;
/// Segments for which the buffer has room in addition to the tuning's measurement, before 6.16.
const SPARE_SEGMENTS: u64 = 16;

/// Memory that is charged for one received packet, bytes (`skb->truesize`): `sk_buff` and the head of a 2 KiB buffer.
/// Since 6.3 the head of a packet from the same machine is the small one of 704 bytes, without the payload.
pub(super) fn truesize(release: LinuxRelease, mss: u64) -> u64 {
    match release {
        LinuxRelease::V6_1 => 2304,
        LinuxRelease::V6_12 | LinuxRelease::V6_18 => mss + 256 + 704,
    }
}

/// The share of the buffer that is window once packets have arrived, in 256ths: half (`tcp_adv_win_scale` 1). Since 6.5
/// it is the payload's share of a packet's memory (`scaling_ratio`).
pub(super) fn ratio(release: LinuxRelease, mss: u64) -> u64 {
    match release {
        LinuxRelease::V6_1 => HALF,
        LinuxRelease::V6_12 | LinuxRelease::V6_18 => ((mss << RATIO_BITS) / truesize(release, mss)).max(1),
    }
}

/// The buffer size for the data read in one RTT, bytes: `copied` in this one, and `prior` in the previous one. Since
/// 6.16 there are no spare segments (`tcp_rcvbuf_grow`).
pub(super) fn buffer(release: LinuxRelease, mss: u64, ratio: u64, copied: u64, prior: u64) -> u64 {
    let spare = if release == LinuxRelease::V6_18 { 0 } else { SPARE_SEGMENTS * mss };
    let window = 2 * copied + spare;
    // The sender is in slow start, and may double its window again in that time.
    let window = window + 2 * (window * (copied - prior) / prior);
    match release {
        LinuxRelease::V6_1 => window / mss * memory_per_packet(mss),
        LinuxRelease::V6_12 | LinuxRelease::V6_18 => (window << RATIO_BITS) / ratio,
    }
}

/// The window for this much of the buffer (`tcp_win_from_space`), bytes.
pub(super) fn window_of(space: u64, ratio: u64) -> u64 {
    space.saturating_mul(ratio) >> RATIO_BITS
}

/// Memory of a packet as the autotuning counts it, bytes (Linux `rcvmem`).
fn memory_per_packet(mss: u64) -> u64 {
    let least = mss + OVERHEAD;
    least + (2 * mss).saturating_sub(least).next_multiple_of(MEMORY_STEP)
}
