//! CPU time of everything that belongs to a measurement, and of everything else.
//!
//! Processes are put into a control group, whose clock also has the children that have ended. Where no group can be made,
//! all that the machine does is counted as ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The kernel's clock tick in `/proc/stat`: 100 a second on every Linux that people run.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(super) enum Account {
    /// Version 1, controller `cpuacct`.
    One(PathBuf),
    /// The unified hierarchy.
    Two(PathBuf),
    /// No group: the whole machine.
    Machine,
}

/// A measurement that has begun.
#[derive(Debug)]
pub(super) struct Running<'a> {
    account: &'a Account,
    since: Instant,
    ours_s: f64,
    machine_s: f64,
}

/// What a measurement cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// User and system time of our processes, seconds.
    pub(super) ours_s: f64,
    machine_s: f64,
    time_s: f64,
}

impl Account {
    pub(super) fn open() -> Self {
        let name = format!("rw-bench-{}", std::process::id());
        let made = |folder: &str| Some(Path::new(folder).join(&name)).filter(|folder| fs::create_dir(folder).is_ok());
        if let Some(group) = made("/sys/fs/cgroup/cpuacct") {
            return Self::One(group);
        }
        let unified = made("/sys/fs/cgroup").filter(|group| group.join("cpu.stat").exists());
        unified.map_or(Self::Machine, Self::Two)
    }

    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::One(_) | Self::Two(_) => "a control group of all processes but the emulated links'",
            Self::Machine => "the whole machine: no control group could be made",
        }
    }

    /// `command`, in the account.
    pub(super) fn charge(&self, command: &Command) -> Command {
        let (Self::One(group) | Self::Two(group)) = self else {
            let mut same = Command::new(command.get_program());
            same.args(command.get_args());
            return same;
        };
        let mut charged = Command::new("sh");
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.display());
        charged.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
        charged
    }

    pub(super) fn start(&self) -> Running<'_> {
        Running { account: self, since: Instant::now(), ours_s: self.ours_s(), machine_s: machine_s() }
    }

    fn ours_s(&self) -> f64 {
        match self {
            Self::One(group) => number(&group.join("cpuacct.usage")) / 1e9,
            Self::Two(group) => {
                let stat = fs::read_to_string(group.join("cpu.stat")).unwrap_or_default();
                let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
                usage.and_then(|text| text.parse::<f64>().ok()).unwrap_or_default() / 1e6
            }
            Self::Machine => machine_s(),
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if let Self::One(group) | Self::Two(group) = self {
            let _ = fs::remove_dir(group);
        }
    }
}

impl Running<'_> {
    pub(super) fn stop(self) -> Cost {
        Cost {
            ours_s: self.account.ours_s() - self.ours_s,
            machine_s: machine_s() - self.machine_s,
            time_s: self.since.elapsed().as_secs_f64(),
        }
    }
}

impl Cost {
    /// Cores that our processes kept busy.
    pub(super) fn cores(&self) -> f64 {
        self.ours_s / self.time_s
    }

    /// Cores that something else kept busy: the emulated links, other people, interrupts.
    pub(super) fn foreign_cores(&self) -> f64 {
        (self.machine_s - self.ours_s).max(0.0) / self.time_s
    }
}

/// Busy time of all cores so far: user, nice, system, interrupts, soft interrupts.
fn machine_s() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<f64> = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).map(parsed).collect();
    [0, 1, 2, 5, 6].iter().filter_map(|field| fields.get(*field)).sum::<f64>() / TICKS_PER_SECOND
}

fn number(file: &Path) -> f64 {
    parsed(fs::read_to_string(file).unwrap_or_default().trim())
}

fn parsed(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}
