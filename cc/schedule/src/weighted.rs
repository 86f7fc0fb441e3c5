//! Weighted round robin by rate: the paths carry packets in proportion to their rates.
//!
//! Each path has a virtual clock, which each of its packets advances by `bytes / rate`. The path whose clock would then
//! be earliest is picked. If the scenario gives weights, they are the rates in Mbit/s; only ratios matter. The deficit
//! of a path without room is limited to 64 KiB.
//!
//! An endless source fills every window, so that each path carries what its window allows, whatever the weights. With
//! `strict` = 1, data wait for the path whose turn it is. The shares then hold, and the path that lags behind its share
//! limits all. Use `strict` for weights that differ from the windows. With the rates of the paths, the default loses no
//! throughput.
//!
//! Source: own rule. The clocks are those of virtual-clock scheduling (Zhang, SIGCOMM 1990), with one path for each
//! flow.

use crate::{Constructor, Fill, Needs, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};
use units::{PathId, Rate, Span};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "weighted",
    aliases: &["weighted-by-rate"],
    title: "packets in proportion to the paths' rates, or to given weights",
    source: "own rule (virtual clocks of Zhang, SIGCOMM 1990)",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[Parameter {
        name: "strict",
        description: "1 waits for the path whose turn it is, 0 skips it",
        kind: ParamKind::Number { default: 0.0, min: 0.0, max: 1.0 },
    }],
    constructor: Constructor::Function(|setup| {
        Box::new(Weighted::new(setup.weights, setup.params.number("strict") >= 0.5))
    }),
};

/// Maximum deficit of a path, bytes.
const MAX_DEFICIT: u64 = 65536;
/// Assumed rate of a path that has none yet.
const UNKNOWN_RATE: Rate = Rate::from_mbit(1);

/// State of the scheduler.
#[derive(Clone, Debug)]
pub struct Weighted {
    weights: Vec<Rate>,
    strict: bool,
    clocks: Vec<Span>,
}

impl Weighted {
    /// Paths with these weights. The weight of a path without one is its rate.
    #[must_use]
    pub fn new(weights: &[u32], strict: bool) -> Self {
        let weights = weights.iter().map(|weight| Rate::from_mbit(u64::from(*weight))).collect();
        Self { weights, strict, clocks: Vec::new() }
    }

    /// Sets the weights, for a driver that steers them. The weight of a path without one is its rate.
    pub fn set_weights(&mut self, weights: Vec<Rate>) {
        self.weights = weights;
    }

    fn rate(&self, view: &SchedulerView<'_>, path: PathId) -> Rate {
        let rate = self.weights.get(path.index()).copied().unwrap_or(view.paths[path.index()].pacing_rate);
        if rate.0 == 0 { UNKNOWN_RATE } else { rate }
    }

    /// Subtracts the common part, as only differences matter, and bounds the deficits.
    fn normalise(&mut self, view: &SchedulerView<'_>) {
        let latest = self.clocks.iter().max().copied().unwrap_or_default();
        for path in (0..).map(PathId).take(self.clocks.len()) {
            let max_behind = self.rate(view, path).time_for(MAX_DEFICIT);
            let clock = &mut self.clocks[path.index()];
            *clock = latest.saturating_sub(max_behind).max(*clock);
        }
        let earliest = self.clocks.iter().min().copied().unwrap_or_default();
        self.clocks.iter_mut().for_each(|clock| *clock = clock.saturating_sub(earliest));
    }
}

impl Scheduler for Weighted {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        self.clocks.resize(view.paths.len(), Span::ZERO);
        let candidates = view.usable_paths().filter(|(_, path)| path.has_room || self.strict);
        let finish_time =
            |id: PathId| self.clocks[id.index()] + self.rate(view, id).time_for(u64::from(view.packet_bytes));
        let (clock, path) = candidates.map(|(id, _)| (finish_time(id), id)).min()?;
        if !view.paths[path.index()].has_room {
            return None;
        }
        self.clocks[path.index()] = clock;
        self.normalise(view);
        Some(Pick::next(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathView;
    use crate::view::tests::{path, pick, pick_all};

    fn shares(scheduler: &mut Weighted, rates: [u64; 2]) -> [usize; 2] {
        let paths = rates.map(|rate| PathView { pacing_rate: Rate::from_mbit(rate), ..path(20, 10, 0) });
        let picks: Vec<_> = (0..120).filter_map(|_| pick(scheduler, &paths)).collect();
        [0, 1].map(|id| picks.iter().filter(|pick| pick.path.0 == id).count())
    }

    #[test]
    fn shares_follow_the_rates_or_the_weights() {
        assert_eq!(shares(&mut Weighted::new(&[], false), [100, 50]), [80, 40]);
        assert_eq!(shares(&mut Weighted::new(&[1, 5], false), [100, 50]), [20, 100]);
        assert_eq!(shares(&mut Weighted::new(&[], false), [0, 2]), [40, 80], "an unknown rate counts as 1 Mbit/s");
    }

    #[test]
    fn a_full_window_is_passed_over_or_waited_for() {
        let carried =
            |strict| pick_all(&mut Weighted::new(&[2, 1], strict), 99, &mut [path(20, 4, 0), path(20, 9, 0)]).len();
        assert_eq!(carried(false), 13, "all that the windows let out");
        assert_eq!(carried(true), 6, "four and two; then path 0 is due, and full");
    }

    #[test]
    fn the_deficit_of_a_path_that_was_down_is_64_kib() {
        let mut scheduler = Weighted::new(&[1, 1], false);
        let up = path(20, 10, 0);
        let down = PathView { has_room: false, active: false, ..up };
        (0..10_000).for_each(|_| assert_eq!(pick(&mut scheduler, &[up, down]), Some(Pick::next(PathId(0)))));
        let picks_behind = (0..).take_while(|_| pick(&mut scheduler, &[up, up]) == Some(Pick::next(PathId(1)))).count();
        assert_eq!(picks_behind, 65536_usize.div_ceil(1448));
    }
}
