//! Candidates: the ways in which a connection can use the paths.

use super::choice::Goal;
use crate::probe::toml_text;
use machine::TunnelOptions;
use schedule::Fill;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The algorithms and schedulers that are tried first, because most people can have them.
const FIRST_ALGORITHMS: [&str; 9] = ["cubic", "bbr", "reno", "lia", "olia", "balia", "wvegas", "coupled-bbr", "bbr3"];
const FIRST_SCHEDULERS: [&str; 6] = ["minrtt", "linger", "blest", "roundrobin", "redundant", "ecf"];
/// What is no choice for a network of others: no control at all, one that needs a file, and those that need marks.
const NO_CHOICE: [&str; 4] = ["uncontrolled", "policy", "dctcp", "prague"];
/// A scheduler that uses one path, which the single paths show as well.
const ONE_PATH: &str = "fixed";
/// When a candidate starts, seconds: rates that vary have left the values with which they begin, as they have whenever a
/// connection is made.
pub(super) const START_S: u64 = 20;
/// The scheduler of upstream Linux.
const KERNEL_SCHEDULER: &str = "linger";

/// How the connection uses the paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// TCP over the path of this name.
    Single(String),
    /// Multipath TCP.
    Mptcp,
    /// CUBIC in Ropewalk's tunnel.
    Tunnel,
    /// TCP by the relay of Ropewalk's tunnel.
    Relay,
}

/// A way in which a connection can use the paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Candidate {
    /// How it uses the paths.
    pub mode: Mode,
    /// The congestion control; of a tunnel, that of its paths.
    pub congestion: String,
    /// The scheduler; none over a single path.
    pub scheduler: Option<String>,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheduler = self.scheduler.as_ref().map_or(String::new(), |name| format!(" with {name}"));
        match &self.mode {
            Mode::Single(path) => write!(f, "{} over {path} alone", self.congestion),
            Mode::Mptcp => write!(f, "{}{scheduler}", self.congestion),
            Mode::Tunnel => write!(f, "the tunnel by {}{scheduler}", self.congestion),
            Mode::Relay => write!(f, "the tunnel's relay by {}{scheduler}", self.congestion),
        }
    }
}

/// All candidates over these paths, the most common ones first. `kernel`: only these algorithms, in the modes and with the
/// scheduler of the kernel. `tunnel`: only the tunnel's modes.
#[must_use]
pub fn candidates(paths: &[String], kernel: Option<&[String]>, tunnel: bool) -> Vec<Candidate> {
    let (mut ranked, is_multipath) = (Vec::new(), paths.len() > 1);
    for (place, algorithm) in ordered(control::registry::entries().iter().map(|entry| entry.name), &FIRST_ALGORITHMS) {
        if NO_CHOICE.contains(&algorithm) || kernel.is_some_and(|names| !names.iter().any(|name| name == algorithm)) {
            continue;
        }
        let is_coupled = control::registry::find(algorithm).is_some_and(control::AlgorithmEntry::is_coupled);
        let candidate = |mode: Mode, scheduler: Option<&str>| Candidate {
            mode,
            congestion: algorithm.to_owned(),
            scheduler: scheduler.map(str::to_owned),
        };
        if !tunnel && !is_coupled {
            ranked.extend(paths.iter().map(|path| (place, candidate(Mode::Single(path.clone()), None))));
        }
        let schedulers = schedule::entries().into_iter().filter(|entry| !entry.needs_file() && entry.name != ONE_PATH);
        let schedulers = schedulers.map(|entry| entry.name);
        for (second, scheduler) in ordered(schedulers, &FIRST_SCHEDULERS).into_iter().filter(|_| is_multipath) {
            if !tunnel && (kernel.is_none() || scheduler == KERNEL_SCHEDULER) {
                ranked.push((place + second, candidate(Mode::Mptcp, Some(scheduler))));
            }
            let fills_windows = schedule::find(scheduler).is_some_and(|entry| entry.fill == Fill::Cwnd);
            if kernel.is_none() && fills_windows {
                ranked.push((place + second, candidate(Mode::Tunnel, Some(scheduler))));
                ranked.push((place + second + 1, candidate(Mode::Relay, Some(scheduler))));
            }
        }
    }
    ranked.sort();
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Names with their places: those of `first`, then the others.
fn ordered<'a>(names: impl Iterator<Item = &'a str>, first: &[&str]) -> Vec<(usize, &'a str)> {
    let mut next = first.len();
    let place = |name: &'a str| match first.iter().position(|other| *other == name) {
        Some(place) => (place, name),
        None => {
            next += 1;
            (next, name)
        }
    };
    names.map(place).collect()
}

impl Candidate {
    /// MPTCP as Linux does it without a choice.
    #[must_use]
    pub fn default_of_linux() -> Self {
        Self { mode: Mode::Mptcp, congestion: "cubic".to_owned(), scheduler: Some(KERNEL_SCHEDULER.to_owned()) }
    }

    /// A tunnel with these algorithms; without a name, with the tunnel's own default.
    #[must_use]
    pub fn of_tunnel(congestion: Option<&str>, scheduler: Option<&str>, relay: bool) -> Self {
        let TunnelOptions { congestion: by, scheduler: with, .. } = TunnelOptions::default();
        Self {
            mode: if relay { Mode::Relay } else { Mode::Tunnel },
            congestion: congestion.map_or(by.name, str::to_owned),
            scheduler: Some(scheduler.map_or(with.name, str::to_owned)),
        }
    }

    /// The keys of its flow, `stream`, in a scenario, and its tunnel's, as an inline table.
    pub(super) fn keys(&self, paths: &[String], goal: Goal) -> (Vec<(&'static str, String)>, Option<String>) {
        let quoted: Vec<String> = paths.iter().map(|path| toml_text(path)).collect();
        let list = format!("[{}]", quoted.join(", "));
        let (congestion, scheduler) =
            (toml_text(&self.congestion), self.scheduler.as_ref().map(|name| toml_text(name)));
        let mut keys = vec![
            ("name", "\"stream\"".to_owned()),
            ("start", format!("\"{START_S}s\"")),
            ("start_within", "\"300ms\"".to_owned()),
        ];
        if goal == Goal::Web {
            let requests = "{ size = { mean = \"200kB\", distribution = \"exponential\" }, think = \"200ms\" }";
            keys.push(("requests", requests.to_owned()));
        }
        let scheduler = scheduler.unwrap_or_else(|| "\"minrtt\"".to_owned());
        match &self.mode {
            Mode::Single(path) => keys.extend([("path", toml_text(path)), ("congestion", congestion)]),
            Mode::Mptcp => keys.extend([
                ("kind", "\"mptcp\"".to_owned()),
                ("paths", list),
                ("congestion", congestion),
                ("scheduler", scheduler),
            ]),
            Mode::Tunnel | Mode::Relay => {
                let relay = if self.mode == Mode::Relay { ", relay = \"tcp\"" } else { "" };
                let tunnel = format!(
                    "{{ mode = \"ropewalk\", paths = {list}, congestion = {congestion}, scheduler = {scheduler}{relay} }}"
                );
                return (keys, Some(tunnel));
            }
        }
        (keys, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Vec<String> {
        ["lte", "dsl"].map(str::to_owned).into()
    }

    #[test]
    fn the_kernel_has_its_own_algorithms_and_one_scheduler() {
        let names = ["cubic".to_owned(), "bbr".to_owned(), "lia".to_owned()];
        let all = candidates(&paths(), Some(&names), false);
        let single = all.iter().filter(|candidate| candidate.scheduler.is_none()).count();
        assert_eq!((single, all.len()), (4, 7), "cubic and bbr over each path, and three by MPTCP: {all:?}");
        assert!(all.iter().all(|candidate| candidate.scheduler.as_deref().is_none_or(|name| name == KERNEL_SCHEDULER)));
    }

    #[test]
    fn a_tunnel_has_only_schedulers_that_fill_windows() {
        let all = candidates(&paths(), None, true);
        assert!(all.iter().all(|candidate| matches!(candidate.mode, Mode::Tunnel | Mode::Relay)));
        assert!(!all.iter().any(|candidate| candidate.scheduler.as_deref() == Some("linger")));
        assert_eq!(all[0].to_string(), "the tunnel by cubic with minrtt");
    }

    #[test]
    fn one_path_has_no_scheduler() {
        let all = candidates(&["lte".to_owned()], None, false);
        assert!(!all.is_empty() && all.iter().all(|candidate| candidate.mode == Mode::Single("lte".to_owned())));
    }
}
