//! The history of the benchmark, `bench/history.csv`: one line per workload and commit that was measured with `--record`.
//!
//! The values are ratios to the calibration loop of the same run, so that a drift is visible although machines differ.

use crate::shell;
use std::fmt::Write;
use std::path::PathBuf;

const HEADER: &str = "commit,date,workload,hops_per_step,hops_per_step_least,hops_per_step_greatest,\
                      calibration_msteps_per_s,peak_mib,runs";

/// A workload's figures at a commit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) workload: String,
    /// Data packet-hops in the CPU time of a step of the calibration loop: median, minimum and maximum.
    pub(super) hops_per_step: [f64; 3],
    /// Million steps of the calibration loop per CPU second.
    pub(super) calibration: f64,
    pub(super) peak_mib: f64,
    pub(super) runs: usize,
}

/// The lines that have been recorded.
#[derive(Debug, Default)]
pub(super) struct History(String);

impl History {
    pub(super) fn read() -> Self {
        Self(std::fs::read_to_string(file()).unwrap_or_default())
    }

    /// The commit and the median of a workload's last line.
    pub(super) fn last(&self, workload: &str) -> Option<(&str, f64)> {
        self.0.lines().rev().find_map(|line| {
            let mut cells = line.split(',');
            let (commit, name, median) = (cells.next()?, cells.nth(1)?, cells.next()?);
            (name == workload).then(|| Some((commit, median.parse().ok()?)))?
        })
    }
}

/// Adds lines for the commit that is checked out.
pub(super) fn record(entries: &[Entry]) -> Result<(), String> {
    if !shell::output("git status --porcelain --untracked-files=no")?.is_empty() {
        return Err("--record keeps figures of a commit, and there are changes that are not committed".to_owned());
    }
    let commit = shell::output("git log -1 --format=%h,%cs")?;
    let mut text = History::read().0;
    if text.is_empty() {
        text = format!("{HEADER}\n");
    }
    entries.iter().for_each(|entry| text += &line(commit.trim(), entry));
    std::fs::write(file(), text).map_err(|error| format!("{}: {error}", file().display()))
}

fn file() -> PathBuf {
    shell::root().join("bench/history.csv")
}

fn line(commit: &str, entry: &Entry) -> String {
    let mut line = format!("{commit},{}", entry.workload);
    entry.hops_per_step.iter().for_each(|value| write!(line, ",{value:.4}").expect("a string takes it"));
    format!("{line},{:.2},{:.1},{}\n", entry.calibration, entry.peak_mib, entry.runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_workload_is_found_again() {
        let entry = |median| Entry {
            workload: "w1".to_owned(),
            hops_per_step: [median, 0.4, 0.6],
            calibration: 12.5,
            peak_mib: 30.0,
            runs: 5,
        };
        let lines = line("abc1234,2026-01-02", &entry(0.5)) + &line("def5678,2026-01-03", &entry(0.55));
        assert!(lines.starts_with("abc1234,2026-01-02,w1,0.5000,0.4000,0.6000,12.50,30.0,5\n"));
        let history = History(format!("{HEADER}\n{lines}"));
        assert_eq!(history.last("w1"), Some(("def5678", 0.55)));
        assert_eq!(history.last("w9"), None);
        assert_eq!(HEADER.split(',').count(), lines.lines().next().unwrap().split(',').count());
    }
}
