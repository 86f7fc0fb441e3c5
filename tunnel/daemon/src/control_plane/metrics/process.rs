//! The daemon's own process, in the words of Prometheus's client libraries: memory, CPU time and descriptors.

use nix::unistd::{SysconfVar, sysconf};
use std::fs;

/// A value of this process: its metric without the prefix, its description, and the value.
pub(super) struct ProcessValue {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) is_counter: bool,
    pub(super) value: Option<f64>,
}

/// The values of this process (proc_pid_stat(5), proc_pid_limits(5)).
pub(super) fn values() -> Vec<ProcessValue> {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let tick = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as f64;
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096) as f64;
    let cpu = || Some((stat_field(&stat, 14)? + stat_field(&stat, 15)?) / tick);
    let gauge = |name, help, value| ProcessValue { name, help, is_counter: false, value };
    vec![
        ProcessValue {
            name: "cpu_seconds",
            help: "CPU time of all threads, user and system",
            is_counter: true,
            value: cpu(),
        },
        gauge("resident_memory_bytes", "Memory that is resident", stat_field(&stat, 24).map(|pages| pages * page)),
        gauge("virtual_memory_bytes", "Virtual memory", stat_field(&stat, 23)),
        gauge("threads", "Threads", stat_field(&stat, 20)),
        gauge("start_time_seconds", "Start of the process, Unix time", start_time(&stat, tick)),
        gauge("open_fds", "Open descriptors", open_descriptors()),
        gauge("max_fds", "Most descriptors that may be open", max_descriptors()),
    ]
}

/// A field of `/proc/PID/stat` by its number. Field 2 may contain blanks and brackets.
fn stat_field(stat: &str, number: usize) -> Option<f64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(number - 3)?.parse().ok()
}

/// Unix time of the start, which `stat` gives in ticks since boot.
fn start_time(stat: &str, tick: f64) -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = text.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
    Some(boot + stat_field(stat, 22)? / tick)
}

/// The number of open descriptors without the one that reads them.
fn open_descriptors() -> Option<f64> {
    fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1) as f64)
}

/// The soft limit; absent if there is none.
fn max_descriptors() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_threads_descriptors_and_a_start_in_the_past() {
        let values = values();
        let value = |name: &str| values.iter().find(|value| value.name == name).unwrap().value.unwrap();
        let now = crate::config::unix_time() as f64;
        assert!(value("start_time_seconds") <= now + 1.0 && value("start_time_seconds") > now - 86_400.0);
        assert!(value("resident_memory_bytes") > 4096.0 && value("threads") >= 1.0 && value("open_fds") >= 3.0);
        assert!(value("cpu_seconds") >= 0.0 && value("virtual_memory_bytes") > value("resident_memory_bytes"));
    }

    #[test]
    fn fields_are_counted_behind_a_name_with_blanks_and_brackets() {
        let stat = "12 (a) b (c)) S 1 12 12";
        assert_eq!((stat_field(stat, 4), stat_field(stat, 3), stat_field(stat, 30)), (Some(1.0), None, None));
    }
}
