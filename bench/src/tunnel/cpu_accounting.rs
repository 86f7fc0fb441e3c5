//! CPU time of the processes of a measurement, and of everything else.
//!
//! Processes are put into a control group, whose CPU time includes children that have ended. If no group can be made, the
//! CPU time of the whole machine is counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The kernel's clock tick in `/proc/stat`: 100 per second on every common Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The source of CPU time.
#[derive(Debug)]
pub(super) enum CpuAccounting {
    /// A control group of version 1, controller `cpuacct`.
    CgroupV1(PathBuf),
    /// A control group of version 2.
    CgroupV2(PathBuf),
    /// No control group could be made.
    WholeMachine,
}

/// A measurement that has started, with the CPU times at its start.
#[derive(Debug)]
pub(super) struct Running<'a> {
    accounting: &'a CpuAccounting,
    start_time: Instant,
    group_s: f64,
    machine_s: f64,
}

/// CPU time of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// User and system time of the control group, seconds.
    pub(super) group_s: f64,
    machine_s: f64,
    time_s: f64,
}

impl CpuAccounting {
    pub(super) fn open() -> Self {
        let name = format!("rw-bench-{}", std::process::id());
        let create = |folder: &str| Some(Path::new(folder).join(&name)).filter(|folder| fs::create_dir(folder).is_ok());
        if let Some(group) = create("/sys/fs/cgroup/cpuacct") {
            return Self::CgroupV1(group);
        }
        let unified = create("/sys/fs/cgroup").filter(|group| group.join("cpu.stat").exists());
        unified.map_or(Self::WholeMachine, Self::CgroupV2)
    }

    pub(super) fn description(&self) -> &'static str {
        match self {
            Self::CgroupV1(_) | Self::CgroupV2(_) => "a control group of all processes except the emulated links",
            Self::WholeMachine => "the whole machine: no control group could be made",
        }
    }

    /// `command`, run in the control group.
    pub(super) fn in_group(&self, command: &Command) -> Command {
        let (Self::CgroupV1(group) | Self::CgroupV2(group)) = self else {
            let mut plain = Command::new(command.get_program());
            plain.args(command.get_args());
            return plain;
        };
        let mut grouped = Command::new("sh");
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.display());
        grouped.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
        grouped
    }

    pub(super) fn start(&self) -> Running<'_> {
        Running { accounting: self, start_time: Instant::now(), group_s: self.group_s(), machine_s: machine_s() }
    }

    fn group_s(&self) -> f64 {
        match self {
            Self::CgroupV1(group) => read_number(&group.join("cpuacct.usage")) / 1e9,
            Self::CgroupV2(group) => {
                let stat = fs::read_to_string(group.join("cpu.stat")).unwrap_or_default();
                let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
                usage.and_then(|text| text.parse::<f64>().ok()).unwrap_or_default() / 1e6
            }
            Self::WholeMachine => machine_s(),
        }
    }
}

impl Drop for CpuAccounting {
    fn drop(&mut self) {
        if let Self::CgroupV1(group) | Self::CgroupV2(group) = self {
            let _ = fs::remove_dir(group);
        }
    }
}

impl Running<'_> {
    pub(super) fn stop(self) -> Cost {
        Cost {
            group_s: self.accounting.group_s() - self.group_s,
            machine_s: machine_s() - self.machine_s,
            time_s: self.start_time.elapsed().as_secs_f64(),
        }
    }
}

impl Cost {
    /// Cores that the control group kept busy.
    pub(super) fn cores(&self) -> f64 {
        self.group_s / self.time_s
    }

    /// Cores that everything else kept busy: emulated links, other users, interrupts.
    pub(super) fn other_cores(&self) -> f64 {
        (self.machine_s - self.group_s).max(0.0) / self.time_s
    }
}

/// Busy time of all cores so far: user, nice, system, interrupts, soft interrupts.
fn machine_s() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<f64> =
        stat.lines().next().unwrap_or_default().split_whitespace().skip(1).map(parse_or_zero).collect();
    [0, 1, 2, 5, 6].iter().filter_map(|field| fields.get(*field)).sum::<f64>() / TICKS_PER_SECOND
}

fn read_number(file: &Path) -> f64 {
    parse_or_zero(fs::read_to_string(file).unwrap_or_default().trim())
}

fn parse_or_zero(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}
