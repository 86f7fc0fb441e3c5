//! C-MPBBR: BBR on each path, and those that seem to share a bottleneck share its rate.
//!
//! - **Sharing.** Once a cycle of bandwidth probing, a path counts those within 20 percent of its own bandwidth, itself
//!   included: m. Where two counts in a row see company, the path cruises at `1 / n` of its bandwidth, in pacing and in
//!   window, with n = m; one count without keeps the n before; otherwise n = 1.
//! - **Benefit.** If all paths together deliver less than 60 percent of what the best one could, and that is not due to
//!   sharing, in five counts in a row, the slowest path stops.
//!
//! Source: Mahmud, Lubna, Song and Cho, "Coupled multipath BBR (C-MPBBR)" (IEEE Access 2020), from its authors' code; the
//! paper's text was not read.
//! Departures from the code, which its description suggests: both checks run once a cycle, as the fourth phase begins, not
//! on each acknowledgement of it; a path's delivery rate is that since its check before. A controller cannot close a path:
//! the one that stops stays up and holds BBR's least window of four packets. The base is this BBR v1, which also has what
//! came after Linux 4.9 (acknowledgement aggregation, a pacing margin of 1 percent).
//!
//! Two paths of the same speed that share nothing are taken for one bottleneck.

use super::models::{Model, Models};
use crate::single::bbr::{Cruise, MIN_WINDOW};
use crate::{AckSample, AlgorithmEntry, Constructor, Context, Controller, Decision, PathEvent};
use units::{Instant, PathId};

/// The registry's line.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "c-mpbbr",
    aliases: &["cmpbbr"],
    title: "BBR v1 on each path; those of like bandwidth share it, a useless one stops",
    source: "Mahmud et al., IEEE Access 2020 (from its authors' code)",
    parameters: &[],
    make: Constructor::Group(|_| Box::new(CMpBbr { paths: Models::new() })),
};

/// The phase in which a path looks at the others.
const CHECK: usize = 3;
/// Bandwidths this near are one bottleneck's.
const ALIKE: f64 = 0.2;
/// Paths together are of use if they deliver this much of the best one's bandwidth.
const USEFUL: f64 = 0.6;
/// So many checks in a row without use.
const PATIENCE: u32 = 5;

/// BBR on each path, linked by looks at the others.
#[derive(Debug)]
pub struct CMpBbr {
    paths: Models<Looks>,
}

/// What a path saw of the others.
#[derive(Debug, Default)]
struct Looks {
    sharing: Sharing,
    useless: u32,
    stopped: bool,
    delivery: Delivered,
}

/// How many share the path's bottleneck.
#[derive(Debug)]
struct Sharing {
    n: u32,
    last: u32,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { n: 1, last: 1 }
    }
}

impl Sharing {
    /// `m` paths are alike, the own one included.
    fn look(&mut self, m: u32) {
        self.n = match (m > 1, self.last > 1) {
            (true, true) => m,
            (false, true) => self.last,
            _ => 1,
        };
        self.last = m.max(1);
    }
}

/// The delivery rate between two looks.
#[derive(Debug, Default)]
struct Delivered {
    since: Option<(Instant, u64)>,
    /// Bytes a second.
    rate: f64,
}

impl Delivered {
    fn look(&mut self, delivered: u64, mss: u32, now: Instant) {
        if let Some((at, before)) = self.since.replace((now, delivered))
            && now > at
        {
            self.rate = (delivered - before) as f64 * f64::from(mss) / now.since(at).as_secs_f64();
        }
    }
}

fn alike(own: f64, all: impl Iterator<Item = f64>) -> u32 {
    all.filter(|bandwidth| (bandwidth - own).abs() <= ALIKE * own).count() as u32
}

impl CMpBbr {
    fn cruise(own: &Model<Looks>) -> Cruise {
        let (bbr, n) = (Cruise::default(), own.memory.sharing.n);
        Cruise { pacing_gain: bbr.pacing_gain / n, window_gain: bbr.window_gain / n, ..bbr }
    }

    fn look(&mut self, path: PathId, sample: &AckSample, now: Instant) {
        let own = self.paths.own(path);
        let bandwidth = own.bbr.measured_bandwidth();
        own.memory.delivery.look(sample.delivered, own.bbr.mss(), now);
        let all = self.paths.measured().map(|path| path.bbr.measured_bandwidth());
        let m = alike(bandwidth, all.clone());
        let (least, most) = all.fold((f64::MAX, 0.0f64), |(least, most), it| (least.min(it), most.max(it)));
        let delivered: f64 = self.paths.measured().map(|path| path.memory.delivery.rate).sum();
        let looks = &mut self.paths.own(path).memory;
        looks.sharing.look(m);
        looks.judge(USEFUL * most > delivered && least < most, bandwidth <= least);
    }
}

impl Looks {
    /// All paths together deliver too little; this one is the slowest.
    fn judge(&mut self, useless: bool, slowest: bool) {
        self.useless = if useless && self.sharing.n < 2 { self.useless + 1 } else { 0 };
        self.stopped |= self.useless >= PATIENCE && slowest;
    }
}

impl Controller for CMpBbr {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let own = self.paths.note(path, event);
        let (before, cruise) = (own.bbr.probing_phase(), Self::cruise(own));
        self.paths.tell(path, event, cruise, cx);
        let after = self.paths.own(path).bbr.probing_phase();
        if let PathEvent::Ack(sample) = event
            && before != after
            && after == Some(CHECK)
        {
            self.look(path, sample, cx.now);
        }
    }

    fn decision(&self, path: PathId) -> Decision {
        let decision = self.paths.decision(path);
        let most = if self.paths.get(path).memory.stopped { MIN_WINDOW } else { u32::MAX };
        Decision { cwnd: decision.cwnd.min(most), ..decision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    #[test]
    fn paths_within_a_fifth_of_the_own_bandwidth_are_alike() {
        assert_eq!([79.0, 80.0, 120.0, 121.0].map(|other| alike(100.0, [100.0, other].into_iter())), [1, 2, 2, 1]);
        let bandwidths = [100.0, 95.0, 30.0];
        let mut sharing = bandwidths.map(|_| Sharing::default());
        for expected in [[1, 1, 1], [2, 2, 1]] {
            sharing
                .iter_mut()
                .zip(bandwidths)
                .for_each(|(sharing, own)| sharing.look(alike(own, bandwidths.into_iter())));
            assert_eq!([0, 1, 2].map(|path: usize| sharing[path].n), expected);
        }
    }

    #[test]
    fn one_look_without_company_is_forgiven() {
        let mut sharing = Sharing::default();
        assert_eq!([3, 3, 1, 1, 2, 2].map(|m| (sharing.look(m), sharing.n).1), [1, 3, 3, 1, 1, 2]);
    }

    #[test]
    fn the_slowest_path_stops_after_five_useless_looks_in_a_row_that_sharing_does_not_explain() {
        let stops = |useless: &[bool], slowest, n| {
            let mut looks = Looks { sharing: Sharing { n, last: n }, ..Looks::default() };
            useless.iter().for_each(|&useless| looks.judge(useless, slowest));
            looks.stopped
        };
        assert!(stops(&[true; 5], true, 1) && !stops(&[true; 4], true, 1));
        assert!(!stops(&[true, true, true, false, true, true], true, 1), "not in a row");
        assert!(!stops(&[true; 5], false, 1) && !stops(&[true; 5], true, 2));
    }

    #[test]
    fn two_that_share_send_five_eighths_each() {
        let mut own = Model::<Looks>::default();
        own.memory.sharing.n = 2;
        let cruise = f64::from(CMpBbr::cruise(&own).pacing_gain) / 256.0;
        assert_eq!((1.25 + 0.75 + 6.0 * cruise) / 8.0, 0.625);
        assert_eq!(CMpBbr::cruise(&Model::default()), Cruise::default());
    }

    #[test]
    fn the_delivery_rate_is_what_came_since_the_last_look() {
        let mut delivered = Delivered::default();
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        delivered.look(100, 1000, at(500));
        assert_eq!(delivered.rate, 0.0);
        delivered.look(150, 1000, at(750));
        assert_eq!(delivered.rate, 200_000.0);
    }
}
