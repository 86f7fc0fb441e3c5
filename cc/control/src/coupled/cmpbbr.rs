//! C-MPBBR: BBR on each path; paths that seem to share a bottleneck share its rate.
//!
//! - **Sharing.** Once per cycle of ProbeBW, a path counts the paths within 20 percent of its own bandwidth, including
//!   itself: m. After two consecutive counts with m > 1, it cruises at `1 / n` of its bandwidth, in pacing and in
//!   window, with n = m. A single count of 1 keeps n; otherwise n = 1.
//! - **Benefit.** If all paths together deliver less than 60 percent of the best path's bandwidth in five consecutive
//!   checks, and n = 1, the slowest path stops.
//!
//! Source: Mahmud, Lubna, Song and Cho, "Coupled multipath BBR (C-MPBBR)" (IEEE Access 2020), from its authors' code;
//! the paper's text was not read. Deviations from the code, which its description suggests: both checks run once per
//! cycle, at the start of its fourth phase, not on each acknowledgement of it; a path's delivery rate is measured
//! between its checks. A controller cannot close a path: the stopped path stays up with BBR's minimum window of four
//! packets. The base is the BBR v1 of this crate, with additions after Linux 4.9 (acknowledgement aggregation, a pacing
//! margin of 1 percent).
//!
//! Two paths with equal bandwidth but without a shared bottleneck are treated as if they shared one.

use super::bbr_paths::{BbrPath, BbrPaths, PROPERTIES};
use crate::single::bbr::{MIN_CWND, ProbeBwGains};
use crate::{AckSample, AlgorithmEntry, Constructor, Context, Controller, Decision, PathEvent};
use units::{Instant, PathId};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "c-mpbbr",
    aliases: &["cmpbbr"],
    title: "BBR v1 on each path; paths with similar bandwidth share it, and a useless path stops",
    source: "Mahmud et al., IEEE Access 2020 (from its authors' code)",
    parameters: &[],
    properties: PROPERTIES,
    constructor: Constructor::Coupled(|_| Box::new(CMpBbr { paths: BbrPaths::new() })),
};

/// Phase of the gain cycle at whose start the checks run.
const CHECK_CYCLE_IDX: usize = 3;
/// Relative difference of bandwidths up to which paths count as sharing a bottleneck.
const SIMILAR_BW: f64 = 0.2;
/// Share of the best path's bandwidth that all paths together should deliver.
const MIN_BENEFIT: f64 = 0.6;
/// Consecutive failed checks after which a path is stopped.
const MAX_USELESS_CHECKS: u32 = 5;

/// BBR on each path, with the checks of sharing and benefit.
#[derive(Debug)]
pub struct CMpBbr {
    paths: BbrPaths<CMpBbrPath>,
}

/// Result of a path's checks.
#[derive(Debug, Default)]
struct CMpBbrPath {
    sharing: BottleneckSharing,
    useless_checks: u32,
    stopped: bool,
    delivery_rate: DeliveryRate,
}

/// The number of paths that share the path's bottleneck.
#[derive(Debug)]
struct BottleneckSharing {
    n: u32,
    last_n: u32,
}

impl Default for BottleneckSharing {
    fn default() -> Self {
        Self { n: 1, last_n: 1 }
    }
}

impl BottleneckSharing {
    /// Updates n with the count of similar paths, including this one.
    fn update(&mut self, similar_paths: u32) {
        self.n = match (similar_paths > 1, self.last_n > 1) {
            (true, true) => similar_paths,
            (false, true) => self.last_n,
            _ => 1,
        };
        self.last_n = similar_paths.max(1);
    }
}

/// The delivery rate between two checks.
#[derive(Debug, Default)]
struct DeliveryRate {
    /// Time of the latest check, and the packets delivered until then.
    last_check: Option<(Instant, u64)>,
    /// Bytes per second.
    rate: f64,
}

impl DeliveryRate {
    fn update(&mut self, delivered: u64, mss: u32, now: Instant) {
        if let Some((last_time, last_delivered)) = self.last_check.replace((now, delivered))
            && now > last_time
        {
            self.rate = (delivered - last_delivered) as f64 * f64::from(mss) / now.since(last_time).as_secs_f64();
        }
    }
}

/// Counts the bandwidths that are similar to `own_bw`.
fn count_similar(own_bw: f64, bandwidths: impl Iterator<Item = f64>) -> u32 {
    bandwidths.filter(|bandwidth| (bandwidth - own_bw).abs() <= SIMILAR_BW * own_bw).count() as u32
}

impl CMpBbr {
    fn probe_bw_gains(own: &BbrPath<CMpBbrPath>) -> ProbeBwGains {
        let (gains, n) = (ProbeBwGains::default(), own.state.sharing.n);
        ProbeBwGains { pacing_gain: gains.pacing_gain / n, cwnd_gain: gains.cwnd_gain / n, ..gains }
    }

    fn check(&mut self, path: PathId, sample: &AckSample, now: Instant) {
        let own = self.paths.own_path(path);
        let bandwidth = own.bbr.max_bw();
        own.state.delivery_rate.update(sample.delivered, own.bbr.mss(), now);
        let bandwidths = self.paths.measured().map(|path| path.bbr.max_bw());
        let similar_paths = count_similar(bandwidth, bandwidths.clone());
        let (min_bw, max_bw) =
            bandwidths.fold((f64::MAX, 0.0f64), |(min_bw, max_bw), bw| (min_bw.min(bw), max_bw.max(bw)));
        let delivered: f64 = self.paths.measured().map(|path| path.state.delivery_rate.rate).sum();
        let own_state = &mut self.paths.own_path(path).state;
        own_state.sharing.update(similar_paths);
        own_state.update_stopped(MIN_BENEFIT * max_bw > delivered && min_bw < max_bw, bandwidth <= min_bw);
    }
}

impl CMpBbrPath {
    /// Updates whether the path is stopped: `useless` if all paths together deliver too little.
    fn update_stopped(&mut self, useless: bool, slowest: bool) {
        self.useless_checks = if useless && self.sharing.n < 2 { self.useless_checks + 1 } else { 0 };
        self.stopped |= self.useless_checks >= MAX_USELESS_CHECKS && slowest;
    }
}

impl Controller for CMpBbr {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let own = self.paths.update(path, event, cx.now);
        let (prior_cycle_idx, gains) = (own.bbr.cycle_idx(), Self::probe_bw_gains(own));
        self.paths.on_event(path, event, gains, cx);
        let cycle_idx = self.paths.own_path(path).bbr.cycle_idx();
        if let PathEvent::Ack(sample) = event
            && cycle_idx != prior_cycle_idx
            && cycle_idx == Some(CHECK_CYCLE_IDX)
        {
            self.check(path, sample, cx.now);
        }
    }

    fn decision(&self, path: PathId) -> Decision {
        let decision = self.paths.decision(path);
        let max_cwnd = if self.paths.get(path).state.stopped { MIN_CWND } else { u32::MAX };
        Decision { cwnd: decision.cwnd.min(max_cwnd), ..decision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    #[test]
    fn paths_within_a_fifth_of_the_own_bandwidth_are_similar() {
        assert_eq!(
            [79.0, 80.0, 120.0, 121.0].map(|other| count_similar(100.0, [100.0, other].into_iter())),
            [1, 2, 2, 1]
        );
        let bandwidths = [100.0, 95.0, 30.0];
        let mut sharing = bandwidths.map(|_| BottleneckSharing::default());
        for expected in [[1, 1, 1], [2, 2, 1]] {
            sharing
                .iter_mut()
                .zip(bandwidths)
                .for_each(|(sharing, own)| sharing.update(count_similar(own, bandwidths.into_iter())));
            assert_eq!([0, 1, 2].map(|path: usize| sharing[path].n), expected);
        }
    }

    #[test]
    fn one_check_without_similar_paths_keeps_n() {
        let mut sharing = BottleneckSharing::default();
        assert_eq!(
            [3, 3, 1, 1, 2, 2].map(|similar_paths| (sharing.update(similar_paths), sharing.n).1),
            [1, 3, 3, 1, 1, 2]
        );
    }

    #[test]
    fn the_slowest_path_stops_after_five_useless_checks_in_a_row_without_sharing() {
        let stopped = |useless: &[bool], slowest, n| {
            let mut checks = CMpBbrPath { sharing: BottleneckSharing { n, last_n: n }, ..CMpBbrPath::default() };
            useless.iter().for_each(|&useless| checks.update_stopped(useless, slowest));
            checks.stopped
        };
        assert!(stopped(&[true; 5], true, 1) && !stopped(&[true; 4], true, 1));
        assert!(!stopped(&[true, true, true, false, true, true], true, 1), "not in a row");
        assert!(!stopped(&[true; 5], false, 1) && !stopped(&[true; 5], true, 2));
    }

    #[test]
    fn two_paths_that_share_send_at_five_eighths_each() {
        let mut own = BbrPath::<CMpBbrPath>::default();
        own.state.sharing.n = 2;
        let gains = f64::from(CMpBbr::probe_bw_gains(&own).pacing_gain) / 256.0;
        assert_eq!((1.25 + 0.75 + 6.0 * gains) / 8.0, 0.625);
        assert_eq!(CMpBbr::probe_bw_gains(&BbrPath::default()), ProbeBwGains::default());
    }

    #[test]
    fn the_delivery_rate_is_measured_between_checks() {
        let mut delivery_rate = DeliveryRate::default();
        let time = |millis| Instant::ZERO + Span::from_millis(millis);
        delivery_rate.update(100, 1000, time(500));
        assert_eq!(delivery_rate.rate, 0.0);
        delivery_rate.update(150, 1000, time(750));
        assert_eq!(delivery_rate.rate, 200_000.0);
    }
}
