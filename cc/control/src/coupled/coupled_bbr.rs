//! Coupled BBR: BBR on each path, with the total rate of the best path.
//!
//! BW is a path's bandwidth as measured by BBR. The cycle of bandwidth probing is `(1.25, 0.75, alpha x 6) BW`, where
//! `alpha = (4 beta - 1) / 3` and `beta = BW max(BW) / sum(BW^2)`. The average rate of a path is then `beta BW`, and
//! the sum over all paths is max(BW). The first two phases are BBR's, so that the bandwidth remains measurable. If
//! alpha is below zero, the path cruises with a window of four packets.
//!
//! Source: Han, Xue, Xing, Hong and Wei, "Measurement and redesign of BBR-based MPTCP" (SIGCOMM 2019, poster), section
//! 3.1, on BBR v1.
//! Points that the poster leaves open, and the choices here:
//! - Bandwidths are compared at each event of the path, in bytes per second, over all paths that are up, in use and
//!   measured.
//! - A phase lasts one minimum RTT at any rate, as in BBR v1. The cwnd gain stays 2.
//! - The window of four packets applies to the six cruising phases, not to the first two.
//! - Startup, drain, RTT probing, and BBR's fixed rate behind a policer are not coupled.
//!
//! Deviation: a path also cruises with four packets if alpha BW is less than that per minimum RTT. At a rate near zero
//! there would be hardly any acknowledgements, and a path with alpha just below zero would be faster than one just
//! above zero.

use super::bbr_paths::{BbrPath, BbrPaths, PROPERTIES};
use crate::single::bbr::{MIN_CWND, ProbeBwGains};
use crate::{AlgorithmEntry, Constructor, Context, Controller, Decision, PathEvent};
use units::PathId;

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "coupled-bbr",
    aliases: &["cbbr"],
    title: "BBR v1 on each path; in total no faster than the best path",
    source: "Han et al., SIGCOMM 2019 poster",
    parameters: &[],
    properties: PROPERTIES,
    constructor: Constructor::Coupled(|_| Box::new(CoupledBbr { paths: BbrPaths::new() })),
};

/// BBR on each path, with coupled gains in ProbeBW.
#[derive(Debug)]
pub struct CoupledBbr {
    paths: BbrPaths<()>,
}

/// A gain of one.
const ONE: f64 = 256.0;

/// The gain in the six cruising phases for a path with bandwidth `own_bw` among all `bandwidths` (bytes per second).
fn alpha(own_bw: f64, bandwidths: impl Iterator<Item = f64> + Clone) -> f64 {
    let sum_of_squares: f64 = bandwidths.clone().map(|bandwidth| bandwidth * bandwidth).sum();
    let beta = own_bw * bandwidths.fold(0.0, f64::max) / sum_of_squares;
    (4.0 * beta - 1.0) / 3.0
}

fn probe_bw_gains(own: &BbrPath<()>, alpha: f64) -> ProbeBwGains {
    let gains = ProbeBwGains::default();
    let pacing_gain = (alpha * ONE) as u32;
    if pacing_gain >= gains.pacing_gain {
        gains
    } else if alpha < 0.0 || own.bbr.bdp_packets(pacing_gain) < u64::from(MIN_CWND) {
        ProbeBwGains { max_cwnd: MIN_CWND, ..gains }
    } else {
        ProbeBwGains { pacing_gain, ..gains }
    }
}

impl CoupledBbr {
    fn update_gains(&mut self, path: PathId) -> ProbeBwGains {
        let bandwidth = self.paths.own_path(path).bbr.max_bw();
        if bandwidth == 0.0 {
            return ProbeBwGains::default();
        }
        let alpha = alpha(bandwidth, self.paths.measured().map(|path| path.bbr.max_bw()));
        probe_bw_gains(self.paths.own_path(path), alpha)
    }
}

impl Controller for CoupledBbr {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        self.paths.update(path, event, cx.now);
        let gains = self.update_gains(path);
        self.paths.on_event(path, event, gains, cx);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.paths.decision(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alphas(bandwidths: &[f64]) -> Vec<f64> {
        bandwidths.iter().map(|&own| alpha(own, bandwidths.iter().copied())).collect()
    }

    /// Mean gain of a cycle.
    fn mean_gain(alpha: f64) -> f64 {
        (1.25 + 0.75 + 6.0 * alpha) / 8.0
    }

    #[test]
    fn the_posters_gains_and_average_rates() {
        let cases: [(&[f64], &[f64], &[f64]); 4] = [
            (&[100.0, 100.0], &[0.3333, 0.3333], &[50.0, 50.0]),
            (&[100.0, 50.0], &[0.7333, 0.2], &[80.0, 20.0]),
            (&[100.0, 30.0], &[0.8899, 0.0336], &[91.74, 8.26]),
            (&[100.0; 3], &[0.1111; 3], &[33.33; 3]),
        ];
        for (bandwidths, gains, rates) in cases {
            let alphas = alphas(bandwidths);
            let mean: Vec<f64> = alphas.iter().zip(bandwidths).map(|(&alpha, bw)| mean_gain(alpha) * bw).collect();
            assert!(alphas.iter().zip(gains).all(|(alpha, gain)| (alpha - gain).abs() < 1e-4), "{alphas:?}");
            assert!(mean.iter().zip(rates).all(|(mean, rate)| (mean - rate).abs() < 5e-3), "{mean:?}");
            assert!((mean.iter().sum::<f64>() - 100.0).abs() < 1e-9, "the sum is the greatest bandwidth: {mean:?}");
        }
    }

    #[test]
    fn a_path_below_0_268_of_the_other_cruises_with_four_packets() {
        let slower_alpha = |share: f64| alphas(&[100.0, 100.0 * share])[1];
        let limit = 2.0 - libm::sqrt(3.0);
        assert!(slower_alpha(limit + 1e-6) > 0.0 && slower_alpha(limit - 1e-6) < 0.0);
        assert!((slower_alpha(0.2) + 0.0769).abs() < 1e-4);
        assert_eq!(probe_bw_gains(&BbrPath::default(), slower_alpha(0.2)).max_cwnd, 4);
    }

    #[test]
    fn one_path_is_bbr() {
        let alone = alphas(&[12_345.6]);
        assert_eq!(alone, [1.0]);
        assert_eq!(probe_bw_gains(&BbrPath::default(), alone[0]), ProbeBwGains::default());
    }
}
