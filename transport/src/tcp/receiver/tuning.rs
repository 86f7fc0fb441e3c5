//! What differs between kernels in how the receive window follows from the buffer, and the buffer from what is read.

use control::LinuxRelease;

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

/// Memory that is charged for one received packet, bytes (`skb->truesize`): `sk_buff` and the head of a 2 KiB buffer;
/// since 6.3 the head of a packet from the same machine is the small one of 704 bytes, without the payload.
pub(super) fn truesize(release: LinuxRelease, mss: u64) -> u64 {
    match release {
        LinuxRelease::V6_1 => 2304,
        LinuxRelease::V6_12 | LinuxRelease::V6_18 => mss + 256 + 704,
    }
}

/// The share of the buffer that is window once packets have come, in 256ths: half (`tcp_adv_win_scale` 1); since 6.5 the
/// payload's share of a packet's memory (`scaling_ratio`).
pub(super) fn ratio(release: LinuxRelease, mss: u64) -> u64 {
    match release {
        LinuxRelease::V6_1 => HALF,
        LinuxRelease::V6_12 | LinuxRelease::V6_18 => ((mss << RATIO_BITS) / truesize(release, mss)).max(1),
    }
}

/// The buffer to which what was read in a round trip grows it, bytes: `copied`, and `prior` in the one before; without spare
/// segments since 6.16 (`tcp_rcvbuf_grow`).
pub(super) fn buffer(release: LinuxRelease, mss: u64, ratio: u64, copied: u64, prior: u64) -> u64 {
    let spare = if release == LinuxRelease::V6_18 { 0 } else { SPARE_SEGMENTS * mss };
    let window = 2 * copied + spare;
    // The sender is in slow start: it may double again meanwhile.
    let window = window + 2 * (window * (copied - prior) / prior);
    match release {
        LinuxRelease::V6_1 => window / mss * memory_per_packet(mss),
        LinuxRelease::V6_12 | LinuxRelease::V6_18 => (window << RATIO_BITS) / ratio,
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
