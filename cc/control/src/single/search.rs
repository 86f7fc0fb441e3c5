//! SEARCH (Slow start Exit At Right CHokepoint): ends slow start when deliveries no longer double.
//!
//! While slow start has not filled the path, a time window delivers twice as much as the window one round trip earlier.
//! Deliveries are counted in *bins* of time. The two windows have ten bins, 3.5 times the initial RTT, long enough to
//! average out the variation of wireless and satellite links. With `norm = (2 prev - curr) / (2 prev)`, slow start ends
//! at `norm >= 0.35`, about two round trips after the path was full. The window then falls by the packets delivered in
//! these two round trips.
//!
//! Source: draft-chung-ietf-ccwg-00 (4 June 2024), "SEARCH 3.0": the latest version whose full text was available. It
//! was continued as draft-chung-ccwg-search, whose latest known version is 10. According to its abstract, version 09
//! compares deliveries with the sent data; this code does not.
//!
//! Behind a queue it is late: the RTT by which it looks back is the current one, which the queue lengthens. A single
//! flow leaves slow start with 5 to 7 times the window that fills the path, unless the queue overflows before
//! (`sim/tests/suite/slow_start.rs`).
//!
//! Deviations, none of them from the draft's description in words: `fraction` is the proportion of a bin (the listing
//! has the remainder of the division). Passed bins are emptied from the one after the current one (line 26 would empty
//! the current one, too). There is one slot more than NUM_BINS, because line 17 would otherwise read the current bin in
//! place of the one 25 bins ago. Deliveries are packets, including selectively acknowledged ones, not bytes of the
//! cumulative acknowledgement. The draft does not describe a second slow start: it has a threshold, and SEARCH is not
//! used. The window is always at least the initial one.

use crate::AckSample;

/// Bins of a window (W).
const W: usize = 10;
/// Maximum number of bins by which the earlier window lies back (EXTRA_BINS).
const EXTRA_BINS: usize = 15;
/// Slots of the ring: the earlier window, with a fraction of one more bin.
const SLOTS: usize = W + EXTRA_BINS + 1;
/// Window, hundredths of the initial RTT (WINDOW_SIZE).
const WINDOW_SIZE_PERCENT: u64 = 350;
/// Normalised difference that ends slow start, hundredths (THRESH).
const THRESH_PERCENT: u64 = 35;

/// SEARCH of the first slow start. Times are microseconds, deliveries packets.
#[derive(Debug, Default)]
pub(super) struct Search {
    bins: Option<Bins>,
}

/// The deliveries in each bin of time.
#[derive(Debug)]
struct Bins {
    /// Duration of a bin (BIN_DURATION).
    bin_duration: u64,
    /// Number of bins from the current one back to that of two initial RTTs ago.
    overshoot_bins: usize,
    bin: [u64; SLOTS],
    /// The latest complete bin (`curr_idx`), from 0; `None` before the first.
    curr_idx: Option<usize>,
    bin_end: u64,
    /// Packets delivered at the end of the latest bin (`prev_seq_num`).
    prev_delivered: u64,
}

impl Search {
    /// Packets by which the window falls if slow start ends with this acknowledgement. `rtt` is its RTT sample.
    pub(super) fn update(&mut self, rtt: u64, sample: &AckSample, now: u64) -> Option<u32> {
        let rtt = rtt.max(1);
        let bins = self.bins.get_or_insert_with(|| Bins::new(rtt, sample, now));
        if now <= bins.bin_end {
            return None;
        }
        let curr_idx = bins.update(sample.delivered, now);
        let (curr_delv, prev_delv) = bins.windows(curr_idx, rtt)?;
        exceeds_thresh(curr_delv, prev_delv).then(|| bins.overshoot(curr_idx))
    }
}

/// Whether the normalised difference of deliveries is at least THRESH.
fn exceeds_thresh(curr_delv: u64, prev_delv: u64) -> bool {
    let expected = 2 * prev_delv;
    expected > 0 && 100 * expected.saturating_sub(curr_delv) >= THRESH_PERCENT * expected
}

impl Bins {
    fn new(initial_rtt: u64, sample: &AckSample, now: u64) -> Self {
        let bin_duration = (initial_rtt * WINDOW_SIZE_PERCENT / 100 / W as u64).max(1);
        Self {
            bin_duration,
            overshoot_bins: (2 * initial_rtt / bin_duration) as usize,
            bin: [0; SLOTS],
            curr_idx: None,
            bin_end: now + bin_duration,
            prev_delivered: sample.delivered.saturating_sub(u64::from(sample.acked)),
        }
    }

    /// Closes the bins that have passed. The deliveries since the last call belong to the latest bin. Returns its
    /// index.
    fn update(&mut self, delivered: u64, now: u64) -> usize {
        let passed_bins = (now - self.bin_end) / self.bin_duration + 1;
        self.bin_end += passed_bins * self.bin_duration;
        let next = self.curr_idx.map_or(0, |curr_idx| curr_idx + 1);
        let curr_idx = next + passed_bins as usize - 1;
        for passed in next.max(curr_idx.saturating_sub(SLOTS - 1))..curr_idx {
            self.bin[passed % SLOTS] = 0;
        }
        self.bin[curr_idx % SLOTS] = delivered - self.prev_delivered;
        (self.curr_idx, self.prev_delivered) = (Some(curr_idx), delivered);
        curr_idx
    }

    /// Deliveries of the latest window and of the one an RTT earlier, in packets times the duration of a bin; `None`
    /// while there are too few bins, or if the RTT is too long for those that are kept.
    fn windows(&self, curr_idx: usize, rtt: u64) -> Option<(u64, u64)> {
        let back = usize::try_from(rtt / self.bin_duration).ok().filter(|&back| back <= EXTRA_BINS)?;
        let prev_idx = curr_idx.checked_sub(back).filter(|&prev_idx| prev_idx >= W)?;
        Some((self.sum(curr_idx - W, curr_idx, 0), self.sum(prev_idx - W, prev_idx, rtt % self.bin_duration)))
    }

    /// The sum of the bins from `first` to `last`: `part` of the first one's duration, and the rest of the last one's.
    fn sum(&self, first: usize, last: usize, part: u64) -> u64 {
        let bin = |index: usize| self.bin[index % SLOTS];
        let whole: u64 = (first + 1..last).map(bin).sum();
        whole * self.bin_duration + bin(first) * part + bin(last) * (self.bin_duration - part)
    }

    /// Packets delivered since two initial RTTs ago, by which the window is too large.
    fn overshoot(&self, curr_idx: usize) -> u32 {
        (self.sum(curr_idx - self.overshoot_bins, curr_idx, 0) / self.bin_duration) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The initial RTT; a bin takes 35 ms.
    const RTT: u64 = 100_000;
    const BIN: u64 = 35_000;

    /// A flow whose acknowledgements tell of one bin each.
    struct Flow {
        search: Search,
        delivered: u64,
        now: u64,
    }

    impl Flow {
        fn new() -> Self {
            let mut flow = Self { search: Search::default(), delivered: 0, now: 0 };
            assert_eq!(flow.ack(0, RTT), None);
            flow
        }

        fn ack(&mut self, packets: u64, rtt: u64) -> Option<u32> {
            self.delivered += packets;
            let sample = AckSample { acked: packets as u32, delivered: self.delivered, ..AckSample::default() };
            self.search.update(rtt, &sample, self.now)
        }

        /// The first acknowledgement after a bin, which delivers so many packets.
        fn bin(&mut self, packets: u64, rtt: u64) -> Option<u32> {
            self.now += BIN;
            self.now += u64::from(self.now == BIN);
            self.ack(packets, rtt)
        }
    }

    #[test]
    fn a_bin_is_a_tenth_of_three_and_a_half_initial_rtts() {
        let bins = Bins::new(RTT, &AckSample::default(), 7);
        assert_eq!((bins.bin_duration, bins.bin_end, bins.overshoot_bins), (BIN, 7 + BIN, 5));
    }

    /// Draft, section 4, "Threshold": 2+4+8+16 after 1+2+4+8 has a normalised difference of 0; 4+8+16+16 after 2+4+8+16
    /// one of 16/60 = 0.27; at last it is 0.5.
    #[test]
    fn the_drafts_example_is_below_the_threshold_one_round_after_the_path_is_full_and_above_it_at_last() {
        assert!(!exceeds_thresh(30, 15));
        assert!(!exceeds_thresh(44, 30));
        assert!(exceeds_thresh(64, 64));
        assert!(exceeds_thresh(130, 100) && !exceeds_thresh(131, 100), "0.35 is enough");
        assert!(!exceeds_thresh(0, 0), "nothing expected");
    }

    /// 100 ms are two bins and 30 ms: the earlier window begins 30 ms before a bin's end, and ends 5 ms after a bin's
    /// beginning.
    #[test]
    fn the_earlier_window_is_interpolated_between_bins() {
        let mut flow = Flow::new();
        (1..=13).for_each(|packets| assert_eq!(flow.bin(packets * 100, RTT), None));
        let bins = flow.search.bins.expect("it has begun");
        let (curr, prev) = bins.windows(12, RTT).expect("ten bins, two more and a part");
        assert_eq!(curr, (400..=1300).step_by(100).sum::<u64>() * BIN);
        assert_eq!(prev, (200..=1000).step_by(100).sum::<u64>() * BIN + 100 * 30_000 + 1100 * 5_000);
    }

    #[test]
    fn an_earlier_window_needs_its_bins() {
        let mut flow = Flow::new();
        (0..12).for_each(|_| assert_eq!(flow.bin(100, RTT), None, "no growth, but nothing to compare with"));
        assert_eq!(flow.bin(100, RTT), Some(500), "five bins are two initial RTTs");
    }

    #[test]
    fn fifteen_bins_back_is_the_longest_rtt() {
        let mut flow = Flow::new();
        (0..40).for_each(|_| assert_eq!(flow.bin(100, 16 * BIN), None));
        assert_eq!(flow.bin(100, 16 * BIN - 1), Some(500));
    }

    #[test]
    fn bins_without_an_acknowledgement_are_empty() {
        let mut flow = Flow::new();
        (0..13).for_each(|packets| assert_eq!(flow.bin(1 << packets, RTT), None));
        flow.now += 3 * BIN;
        flow.bin(7, RTT);
        let bins = flow.search.bins.as_ref().expect("it has begun");
        assert_eq!((bins.curr_idx, [12, 13, 14, 15, 16].map(|i| bins.bin[i % SLOTS])), (Some(16), [4096, 0, 0, 0, 7]));
        flow.now += 1000 * BIN;
        flow.bin(5, RTT);
        let bins = flow.search.bins.as_ref().expect("it has begun");
        assert_eq!((bins.curr_idx, bins.bin.iter().sum::<u64>()), (Some(1017), 5), "all others have passed");
    }

    /// Deliveries at the rate `2^t` until `t = 0` and at 1 from then on, `t` in round trips: with `c` and `p` the
    /// integrals over the windows of 3.5 that end at `t` and `t - 1`, `1 - c/2p` is 0.35 at `t = 2.20`. It shows at the
    /// next end of a bin.
    #[test]
    fn slow_start_ends_about_two_rtts_after_the_path_is_full() {
        const PACKETS_PER_RTT: f64 = 1e6;
        let delivered = |t: f64| {
            let t_from_full = t - 12.0;
            let until_full = libm::exp2(t_from_full.min(0.0)) * std::f64::consts::LOG2_E;
            let rtts = until_full + t_from_full.max(0.0);
            (rtts * PACKETS_PER_RTT) as u64
        };
        let mut flow = Flow::new();
        let end = (1..100).find_map(|bin| {
            let t = f64::from(bin) * 0.35;
            flow.bin(delivered(t) - flow.delivered, RTT).map(|overshoot| (t - 12.0, overshoot))
        });
        let (t, overshoot) = end.expect("it ends");
        assert!((2.19..=2.20 + 0.35).contains(&t), "{t}");
        let since = delivered(12.0 + t) - delivered(12.0 + t - 1.75);
        assert!(u64::from(overshoot).abs_diff(since) <= 5, "{overshoot} of {since}");
    }

    #[test]
    fn bursts_and_a_varying_rtt_do_not_end_slow_start() {
        let mut flow = Flow::new();
        let mut rate = 100.0;
        for bin in 0..60 {
            rate *= libm::exp2(0.35);
            let burst = if bin % 3 == 2 { 3.0 * rate } else { 0.0 };
            let rtt = [RTT, RTT + BIN, RTT + BIN / 2][bin % 3];
            assert_eq!(flow.bin(burst as u64, rtt), None, "bin {bin}");
        }
    }
}
