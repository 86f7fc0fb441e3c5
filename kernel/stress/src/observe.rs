//! What the kernel says and holds: its log, and the programs and sockets that are left.

use crate::network::{Host, Network};
use libbpf_rs::ProgramType;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Log lines of this level or a lower number are findings: `KERN_WARNING`.
const WARNING: u32 = 4;
/// Warnings about a slow machine, as an emulated one is.
const OF_SLOW_MACHINES: [&str; 3] = ["hrtimer: interrupt took", "perf: interrupt took", "clocksource: "];

/// The kernel's log from a point in time on.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
}

impl KernelLog {
    /// Reads what comes from now on.
    ///
    /// # Errors
    /// If `/dev/kmsg` cannot be read.
    pub fn from_now() -> Result<Self, String> {
        let io_error = |error: std::io::Error| format!("/dev/kmsg: {error}");
        let mut file =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").map_err(io_error)?;
        file.seek(SeekFrom::End(0)).map_err(io_error)?;
        Ok(Self { file })
    }

    /// The warnings and errors since the last call.
    pub fn findings(&mut self) -> Vec<String> {
        let mut findings = Vec::new();
        let mut record = [0; 8192];
        loop {
            match self.file.read(&mut record) {
                Ok(0) => return findings,
                Ok(length) => findings.extend(finding(&String::from_utf8_lossy(&record[..length]))),
                // Records that were overwritten before they were read.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => return findings,
            }
        }
    }
}

/// The text of a record `PRIORITY,SEQUENCE,TIME,FLAGS;TEXT` if it is a warning or worse.
fn finding(record: &str) -> Option<String> {
    let (prefix, text) = record.split_once(';')?;
    let priority: u32 = prefix.split(',').next()?.parse().ok()?;
    let is_harmless = OF_SLOW_MACHINES.iter().any(|start| text.starts_with(start));
    (priority & 7 <= WARNING && !is_harmless).then(|| text.lines().next().unwrap_or_default().to_owned())
}

/// What the kernel holds of a program: ids of its registration and of its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    maps: Vec<u32>,
    programs: Vec<u32>,
}

impl Held {
    /// All `struct_ops` maps and programs.
    #[must_use]
    pub fn all() -> Self {
        let is_struct_ops = |ty| ty == libbpf_rs::MapType::StructOps;
        Self {
            maps: MapInfoIter::default().filter(|info| is_struct_ops(info.ty)).map(|info| info.id).collect(),
            programs: ProgInfoIter::default()
                .filter(|info| info.ty == ProgramType::StructOps)
                .map(|info| info.id)
                .collect(),
        }
    }

    /// What is in this one and not in `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let new = |now: &[u32], then: &[u32]| now.iter().filter(|id| !then.contains(id)).copied().collect();
        Self { maps: new(&self.maps, &earlier.maps), programs: new(&self.programs, &earlier.programs) }
    }

    /// Which of these the kernel still holds.
    #[must_use]
    pub fn remaining(&self) -> Self {
        let now = Self::all();
        let still = |then: &[u32], now: &[u32]| then.iter().filter(|id| now.contains(id)).copied().collect();
        Self { maps: still(&self.maps, &now.maps), programs: still(&self.programs, &now.programs) }
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty() && self.programs.is_empty()
    }
}

/// Sockets of TCP and MPTCP that a host has, by `/proc/net/protocols`; those in TIME-WAIT do not count.
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
    fn a_warning_of_the_log_is_a_finding_and_a_notice_is_none() {
        assert_eq!(finding("4,339,5140900,-;WARNING: CPU: 0\n SUBSYSTEM=x\n").as_deref(), Some("WARNING: CPU: 0"));
        assert_eq!(finding("6,340,5140901,-;a link becomes ready\n"), None);
        assert_eq!(finding("4,340,5140901,-;hrtimer: interrupt took 2075330 ns\n"), None);
        assert_eq!(finding("30,341,5140902,-;from a daemon\n"), None, "facility 3, severity 6");
    }
}
