//! The progress of a study on standard error: a bar on a terminal, otherwise a line every half minute.

use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use record::Run;
use runner::{Observer, Running};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use store::Key;

/// Time between two lines if standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(30);
/// Time between two changes of the bar.
const BAR_INTERVAL: Duration = Duration::from_millis(200);
/// Columns of a terminal below which the bar has no rate.
const NARROW: usize = 70;

/// Shows the progress of a study.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: Shown,
    state: State,
    last: Instant,
}

/// The destination of the progress.
#[derive(Debug)]
enum Shown {
    Nowhere,
    Bar(ProgressBar),
    Lines,
}

/// The progress of a study.
#[derive(Debug)]
struct State {
    start: Instant,
    /// Estimated cost of each run.
    costs: BTreeMap<Key, u64>,
    done: usize,
    done_cost: u64,
    running: Vec<Running>,
}

impl Progress {
    /// The progress of runs with these estimated costs; hidden if `quiet`.
    pub(crate) fn new(costs: BTreeMap<Key, u64>, quiet: bool) -> Self {
        let shown = match () {
            () if quiet || costs.is_empty() => Shown::Nowhere,
            () if std::io::stderr().is_terminal() => Shown::Bar(bar()),
            () => Shown::Lines,
        };
        let start = Instant::now();
        Self { shown, last: start, state: State { start, costs, done: 0, done_cost: 0, running: Vec::new() } }
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {msg}").expect("the template is well-formed");
    ProgressBar::new(1000).with_style(style)
}

impl Observer for Progress {
    fn finished(&mut self, key: Key, _: &Run) {
        self.state.done += 1;
        self.state.done_cost += self.state.costs.get(&key).copied().unwrap_or_default();
    }

    fn progressed(&mut self, running: &[Running]) {
        let interval = if matches!(self.shown, Shown::Bar(_)) { BAR_INTERVAL } else { LINE_INTERVAL };
        if matches!(self.shown, Shown::Nowhere) || self.last.elapsed() < interval {
            return;
        }
        self.last = Instant::now();
        self.state.running = running.to_vec();
        let elapsed = self.state.start.elapsed();
        match &self.shown {
            Shown::Nowhere => {}
            Shown::Lines => output::warn(&self.state.text(elapsed, false)),
            Shown::Bar(bar) => {
                bar.set_message(self.state.text(elapsed, output::error_width() < NARROW));
                bar.set_position((self.state.share() * 1000.0) as u64);
            }
        }
    }
}

impl State {
    /// The share of the work that is done, from 0 to 1: finished runs and the finished part of running ones, by estimated
    /// cost.
    fn share(&self) -> f64 {
        let cost = |key: &Key| self.costs.get(key).copied().unwrap_or_default().max(1) as f64;
        let total: f64 = self.costs.keys().map(cost).sum();
        let part = |run: &Running| cost(&run.key) * (run.reached_s / run.end_s.max(1e-9)).clamp(0.0, 1.0);
        let under_way: f64 = self.running.iter().map(part).sum();
        ((self.done_cost as f64 + under_way) / total.max(1.0)).min(1.0)
    }

    /// `3/45 runs, 532 of 1000 s, 1.2 per second, 2 min left`; the virtual time is that of the slowest running one.
    fn text(&self, elapsed: Duration, is_narrow: bool) -> String {
        let mut words = vec![format!("{}/{} runs", self.done, self.costs.len())];
        let left = |run: &&Running| run.end_s - run.reached_s;
        let slowest = self.running.iter().filter(|run| run.reached_s > 0.0).max_by(|a, b| left(a).total_cmp(&left(b)));
        words.extend(slowest.map(|run| format!("{:.0} of {:.0} s", run.reached_s, run.end_s)));
        if self.done > 0 && !is_narrow {
            words.push(format!("{:.1} per second", self.done as f64 / elapsed.as_secs_f64().max(1e-3)));
        }
        let share = self.share();
        if share > 0.001 {
            words.push(format!("{} left", duration(elapsed.as_secs_f64() * (1.0 - share) / share)));
        }
        words.join(", ")
    }
}

/// `40 s`, `12 min` or `3 h 20 min`.
fn duration(seconds: f64) -> String {
    match seconds.round() as u64 {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=5999 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(done: usize, reached_s: f64) -> State {
        let costs: BTreeMap<Key, u64> = (0..4).map(|cell| ((cell, 1), 100)).collect();
        let running = vec![Running { key: (3, 1), reached_s, end_s: 1000.0 }];
        State { start: Instant::now(), costs, done, done_cost: 100 * done as u64, running }
    }

    #[test]
    fn the_time_left_follows_from_finished_runs_and_from_virtual_time() {
        let minute = Duration::from_secs(60);
        assert_eq!(state(0, 500.0).text(minute, false), "0/4 runs, 500 of 1000 s, 7 min left", "an eighth is done");
        assert_eq!(state(2, 0.0).text(minute, false), "2/4 runs, 0.0 per second, 60 s left");
        assert_eq!(state(3, 1000.0).text(minute, true), "3/4 runs, 1000 of 1000 s, 0 s left");
        assert_eq!(state(0, 0.0).text(minute, false), "0/4 runs");
        assert_eq!(duration(12_000.0), "3 h 20 min");
    }

    #[test]
    fn the_text_fits_a_narrow_terminal() {
        let mut state = state(2, 99_999.0);
        state.running[0].end_s = 100_000.0;
        assert!(state.text(Duration::from_secs(900_000), true).len() <= 58);
    }
}
