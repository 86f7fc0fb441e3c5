//! STMS-like: the slow path sends packets from further ahead in the stream, so that they arrive just when they are due.
//!
//! The fastest path (minimum smoothed RTT) sends from the head. A slower path i skips the packets that the faster ones
//! will have delivered before one on i arrives:
//!
//! ```text
//! gap_i = scale_i * sum over faster j of rate_j * (srtt_i - srtt_j) / 2
//! ```
//!
//! The scale is learned from the data acknowledgements. One packet of path i at a time is a probe. If DATA_ACK passes
//! it within one RTT after it was sent (plus at most one deviation), the receiver was waiting for it or got it just in
//! time, and the scale grows. If DATA_ACK passes it later, the packet had to wait for those before it, and the scale
//! shrinks.
//!
//! Source: the idea is that of Shi et al., USENIX ATC 2018 (slide together multipath scheduler), whose constants are
//! not public; the rule above is our own. `rate_j` is the recent delivery rate, or the sending rate before that is
//! known. The number of the probe is exact with two paths, and an estimate with more.

use crate::min_rtt::fastest;
use crate::{Constructor, Fill, Needs, PacketChoice, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};
use units::{Instant, Rate};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "stms-like",
    aliases: &["stms"],
    title: "the slow path sends packets from further ahead, by a gap learned from data acknowledgements",
    source: "own rule after Shi et al., USENIX ATC 2018",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[Parameter {
        name: "step",
        description: "relative change of a gap per probe",
        kind: ParamKind::Number { default: 0.05, min: 0.0, max: 0.5 },
    }],
    constructor: Constructor::Function(|setup| Box::new(Stms::new(setup.params.number("step")))),
};

/// Bounds of the scale.
const SCALE_RANGE: (f64, f64) = (0.25, 4.0);

/// State of the scheduler.
#[derive(Clone, Debug)]
pub struct Stms {
    step: f64,
    gaps: Vec<Gap>,
    /// `snd_nxt` at the first pick.
    first_snd_nxt: Option<u64>,
    /// New packets picked since the first pick.
    sent: u64,
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    scale: f64,
    probe: Option<Probe>,
}

/// A packet on a slow path whose acknowledgement is timed.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Sequence number.
    seq: u64,
    /// Time until which an acknowledgement shows that the packet did not have to wait.
    due: Instant,
}

impl Stms {
    /// `step`: the fraction by which gaps change.
    #[must_use]
    pub fn new(step: f64) -> Self {
        Self { step, gaps: Vec::new(), first_snd_nxt: None, sent: 0 }
    }

    /// Evaluates the probes that have been acknowledged.
    fn update_scales(&mut self, view: &SchedulerView<'_>) {
        self.gaps.resize(view.paths.len(), Gap { scale: 1.0, probe: None });
        for gap in &mut self.gaps {
            let Some(probe) = gap.probe.filter(|probe| probe.seq < view.snd_una) else { continue };
            let change = if view.now > probe.due { 1.0 - self.step } else { 1.0 + self.step };
            *gap = Gap { scale: (gap.scale * change).clamp(SCALE_RANGE.0, SCALE_RANGE.1), probe: None };
        }
    }

    /// Packets beyond [`SchedulerView::snd_nxt`] that have already been sent.
    fn sent_ahead(&mut self, view: &SchedulerView<'_>) -> u64 {
        let first_snd_nxt = *self.first_snd_nxt.get_or_insert(view.snd_nxt);
        self.sent.saturating_sub(view.snd_nxt.saturating_sub(first_snd_nxt))
    }

    /// Unsent packets that the faster paths will have delivered before a packet sent on this path now arrives.
    fn gap(&self, view: &SchedulerView<'_>, index: usize, path: &PathView) -> u64 {
        let faster = view.usable_paths().filter(|(_, candidate)| candidate.srtt < path.srtt);
        let bits: f64 =
            faster.map(|(_, faster)| rate(faster).0 as f64 * (path.srtt.0 - faster.srtt.0) as f64 / 2e9).sum();
        (self.gaps[index].scale * bits / f64::from(view.packet_bytes.max(1) * 8)) as u64
    }

    /// The fastest path with room for which there are packets beyond its gap.
    fn pick_slower(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        let sent_ahead = self.sent_ahead(view);
        let candidates = view.paths_with_room().map(|(id, path)| (id, path, self.gap(view, id.index(), path)));
        let candidates = candidates.filter(|(_, _, gap)| {
            *gap < view.unsent_packets && gap.saturating_add(sent_ahead) < view.rwnd_left_packets
        });
        let (id, path, gap) = candidates.min_by_key(|(_, path, _)| path.srtt)?;
        let due = view.now + path.srtt + path.rttvar;
        self.gaps[id.index()].probe.get_or_insert(Probe { seq: view.snd_nxt + gap + sent_ahead, due });
        let gap = u32::try_from(gap).unwrap_or(u32::MAX);
        Some(Pick { path: id, packet: if gap == 0 { PacketChoice::Next } else { PacketChoice::SkipAhead(gap) } })
    }
}

/// The delivery rate of a path, or its pacing rate before the delivery rate is known.
fn rate(path: &PathView) -> Rate {
    if path.delivery_rate.0 > 0 { path.delivery_rate } else { path.pacing_rate }
}

impl Scheduler for Stms {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        self.update_scales(view);
        if view.sendable_packets() == 0 {
            return None;
        }
        let (fast, fast_path) = fastest(view.usable_paths())?;
        let chosen = if fast_path.has_room { Some(Pick::next(fast)) } else { self.pick_slower(view) };
        self.sent += u64::from(chosen.is_some());
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{VIEW, path, pick};
    use units::{PathId, Span};

    /// 10 packets each 20 ms, and each 100 ms: the fast path delivers 20 in the 40 ms between the one-way delays.
    fn paths() -> [PathView; 2] {
        [path(20, 10, 10), path(100, 10, 0)]
    }

    #[test]
    fn the_gap_is_what_the_fast_path_delivers_meanwhile() {
        let skip_ahead = Pick { path: PathId(1), packet: PacketChoice::SkipAhead(20) };
        assert_eq!(pick(&mut Stms::new(0.05), &paths()), Some(skip_ahead));
        let [fast, slow] = paths();
        let fast_with_room = PathView { has_room: true, ..fast };
        assert_eq!(pick(&mut Stms::new(0.05), &[fast_with_room, slow]), Some(Pick::next(PathId(0))));
        let dead = PathView { active: false, ..fast };
        assert_eq!(pick(&mut Stms::new(0.05), &[dead, slow]), Some(Pick::next(PathId(1))), "no other path");
    }

    #[test]
    fn the_last_packets_are_the_fast_paths() {
        let pick_with = |unsent_packets, rwnd_left_packets| {
            Stms::new(0.05).pick(&SchedulerView { unsent_packets, rwnd_left_packets, paths: &paths(), ..VIEW })
        };
        assert_eq!([pick_with(20, 90), pick_with(90, 20)], [None; 2]);
        assert!(pick_with(21, 21).is_some());
    }

    #[test]
    fn the_gap_grows_unless_the_probe_had_to_wait() {
        let gap_after = |ms: u64| {
            let mut scheduler = Stms::new(0.1);
            pick(&mut scheduler, &paths());
            let now = Instant::ZERO + Span::from_millis(ms);
            let acked_view = |snd_una| SchedulerView { now, snd_nxt: 30, snd_una, paths: &[], ..VIEW };
            scheduler.gaps.truncate(2);
            scheduler.update_scales(&SchedulerView { paths: &paths(), ..acked_view(20) });
            assert!(scheduler.gaps[1].probe.is_some(), "packet 20 is not acknowledged before the number is 21");
            scheduler.update_scales(&SchedulerView { paths: &paths(), ..acked_view(21) });
            scheduler.gap(&SchedulerView { paths: &paths(), ..VIEW }, 1, &paths()[1])
        };
        assert_eq!([gap_after(100), gap_after(101)], [22, 18]);
    }

    #[test]
    fn packets_sent_beyond_the_head_are_counted() {
        let mut scheduler = Stms::new(0.05);
        (0..5).for_each(|_| assert!(pick(&mut scheduler, &paths()).is_some()));
        assert_eq!(scheduler.sent_ahead(&VIEW), 5);
        // The head moves over 20 packets of the fast path and over those five.
        scheduler.sent += 20;
        assert_eq!(scheduler.sent_ahead(&SchedulerView { snd_nxt: 25, ..VIEW }), 0);
    }
}
