//! Observation of the kernel: its log, and the programs and sockets that it still holds.

use crate::network::{Host, Network};
use kernel::Program;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use libbpf_rs::{MapType, ProgramType};
use nix::libc;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Texts in the kernel's log that show a fault of the kernel, rather than of a device or a slow machine.
const MARKS: [&str; 6] =
    ["WARNING: ", "BUG: ", "Oops", "refcount_t: ", "unregister_netdevice: waiting", "general protection"];

/// The place of Linux's warning about a window of 0 or less, which occurs on a kernel that [leaves programs
/// out](kernel::leaves_programs_out).
const LEFT_OUT_MARK: &str = "include/net/tcp.h:";

/// The kernel's log from a point in time on.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
    /// Whether the kernel leaves programs out.
    leaves_out: bool,
}

impl KernelLog {
    /// Opens the log for records from now on.
    ///
    /// # Errors
    /// If `/dev/kmsg` cannot be read.
    pub fn from_now() -> Result<Self, String> {
        let io_error = |error: std::io::Error| format!("/dev/kmsg: {error}");
        let mut file =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").map_err(io_error)?;
        file.seek(SeekFrom::End(0)).map_err(io_error)?;
        Ok(Self { file, leaves_out: kernel::leaves_programs_out() })
    }

    /// Warnings and faults of the kernel since the last call, without those caused by leaving programs out.
    pub fn findings(&mut self) -> Vec<String> {
        let mut findings = Vec::new();
        let mut record = [0; 8192];
        loop {
            match self.file.read(&mut record) {
                Ok(0) => return findings,
                Ok(length) => findings.extend(
                    finding(&String::from_utf8_lossy(&record[..length]))
                        .filter(|line| !(self.leaves_out && line.contains(LEFT_OUT_MARK))),
                ),
                // Records that were overwritten before they were read.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => return findings,
            }
        }
    }
}

/// The first line of a record `PRIORITY,SEQUENCE,TIME,FLAGS;TEXT` that reports a fault.
fn finding(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    let line = text.lines().next()?;
    MARKS.iter().any(|mark| line.contains(mark)).then(|| line.to_owned())
}

/// While this exists, the kernel counts the calls of eBPF functions, and their time. There is one at a time on a
/// machine.
#[derive(Debug)]
pub struct Stats {
    /// The setting, locked.
    setting: File,
    before: String,
}

impl Stats {
    const SETTING: &str = "/proc/sys/kernel/bpf_stats_enabled";

    /// Begins to count, as soon as no other process counts.
    ///
    /// # Errors
    /// Without root, or on a kernel that does not count.
    pub fn enable() -> Result<Self, String> {
        let io_error = |error: std::io::Error| format!("{}: {error}", Self::SETTING);
        let mut setting = OpenOptions::new().read(true).write(true).open(Self::SETTING).map_err(io_error)?;
        setting.lock().map_err(io_error)?;
        let mut before = String::new();
        setting.read_to_string(&mut before).map_err(io_error)?;
        std::fs::write(Self::SETTING, "1").map_err(io_error)?;
        Ok(Self { setting, before })
    }
}

impl Drop for Stats {
    fn drop(&mut self) {
        let _ = std::fs::write(Self::SETTING, &self.before);
        let _ = self.setting.unlock();
    }
}

/// The parts of programs that the kernel holds: ids of their registrations and of their functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    maps: Vec<u32>,
    functions: Vec<u32>,
}

impl Held {
    /// The held parts of these programs, also of earlier registrations.
    #[must_use]
    pub fn of(programs: &[&Program]) -> Self {
        let is_ours = |name: &str| programs.iter().any(|program| program.kernel_name == name);
        let has_map = |name: &OsString| programs.iter().any(|program| program.has_map(name));
        let maps = MapInfoIter::default().filter(|info| info.ty == MapType::StructOps && has_map(&info.name));
        let functions = ProgInfoIter::default().filter(|info| {
            info.ty == ProgramType::StructOps && owner(&info.name.to_string_lossy()).is_some_and(&is_ours)
        });
        Self { maps: maps.map(|info| info.id).collect(), functions: functions.map(|info| info.id).collect() }
    }

    /// The ids in this one that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let rest = |ids: &[u32], others: &[u32]| ids.iter().filter(|id| !others.contains(id)).copied().collect();
        Self { maps: rest(&self.maps, &other.maps), functions: rest(&self.functions, &other.functions) }
    }

    /// The ids in both.
    #[must_use]
    pub fn among(&self, other: &Self) -> Self {
        self.without(&self.without(other))
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty() && self.functions.is_empty()
    }
}

/// The program that a function belongs to: the function's name begins with the program's, without the prefix.
fn owner(function: &str) -> Option<&'static str> {
    let names = kernel::PROGRAMS.iter().map(|program| program.kernel_name);
    let opens = |name: &&str| {
        let rest = name.strip_prefix("rw_").and_then(|base| function.strip_prefix(base));
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    names.filter(opens).max_by_key(|name| name.len())
}

/// Calls and nanoseconds of each function of a congestion control that the kernel holds, by its id, while
/// `kernel.bpf_stats_enabled` was 1.
#[derive(Clone, Debug, Default)]
pub struct Runs(BTreeMap<u32, [u64; 2]>);

impl Runs {
    /// The counts until now.
    #[must_use]
    pub fn until_now() -> Self {
        let functions = ProgInfoIter::default().filter(|info| info.ty == ProgramType::StructOps);
        Self(functions.map(|info| (info.id, [info.run_cnt, info.run_time_ns])).collect())
    }

    /// Calls of the most-called function since `earlier`, which is called once per acknowledgement, and the time of all
    /// functions in nanoseconds.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> [u64; 2] {
        let before = |id| earlier.0.get(id).copied().unwrap_or_default();
        let changes = self.0.iter().map(|(id, now)| [0, 1].map(|index| now[index] - before(id)[index]));
        changes.fold([0, 0], |[calls, ns], [more_calls, more_ns]| [calls.max(more_calls), ns + more_ns])
    }
}

/// Number of TCP and MPTCP sockets of a host, by `/proc/net/protocols`, without those in TIME-WAIT.
///
/// # Errors
/// If the file cannot be read.
pub fn sockets(network: &Network, host: Host) -> Result<u64, String> {
    let table = network.read_proc_net(host, "protocols")?;
    let count = |line: &str| {
        let mut columns = line.split_whitespace();
        let name = columns.next()?;
        columns.nth(1)?.parse::<u64>().ok().filter(|_| ["TCP", "MPTCP"].contains(&name))
    };
    Ok(table.lines().filter_map(count).sum())
}

/// The TCP and MPTCP sockets of a host, as `ss` prints them, with their timers; or why it cannot.
#[must_use]
pub fn list_sockets(network: &Network, host: Host) -> String {
    ["ss -Htianeo", "ss -HManie"].map(|line| network.run(host, line).unwrap_or_else(|error| error)).concat()
}

/// A counter of `/proc/net/netstat`, such as `MPJoinSynTx` of `MPTcpExt`; 0 if the kernel has none of this name.
///
/// # Errors
/// If the file cannot be read.
pub fn counter(network: &Network, host: Host, group: &str, name: &str) -> Result<u64, String> {
    let text = network.read_proc_net(host, "netstat")?;
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (Some(names), Some(values)) = (rows.next(), rows.next()) else { return Ok(0) };
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    Ok(pairs.find(|(column, _)| *column == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_belongs_to_the_program_whose_name_it_opens_with() {
        assert_eq!(owner("lia_cong_avoid"), Some("rw_lia"));
        assert_eq!(owner("bbr_init"), Some("rw_bbr"));
        assert_eq!(owner("cubic_init"), None);
        assert_eq!(owner("liability"), None);
    }

    #[test]
    fn a_warning_of_the_log_is_a_finding_and_a_notice_is_none() {
        assert_eq!(finding("4,339,5140900,-;WARNING: CPU: 0\n SUBSYSTEM=x\n").as_deref(), Some("WARNING: CPU: 0"));
        assert_eq!(finding("6,340,5140901,-;a link becomes ready\n"), None);
        assert_eq!(finding("4,341,5140902,-;hrtimer: interrupt took 2075330 ns\n"), None);
    }
}
