//! The processes of a run. Each has the run's folder in its environment, inherited from those that the lab starts, so
//! that they are found after the lab's own end, in whatever process group or namespace they are.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// The environment variable that holds the folder.
pub(crate) const RUN_VARIABLE: &str = "ROPEWALK_LAB";
/// Time between SIGTERM and SIGKILL.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for the kernel to remove killed processes.
const KILL_TIME: Duration = Duration::from_secs(5);
/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits for a child up to a time limit; none if it still runs.
pub(crate) fn wait(child: &mut Child, time_limit: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + time_limit;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= end {
            return Ok(status);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Ends all processes of the run in `folder`, with SIGTERM and then SIGKILL.
pub(crate) fn end_all(folder: &Path) {
    let variable = format!("{RUN_VARIABLE}={}", folder.display());
    let start = Instant::now();
    let mut terminated = Vec::new();
    loop {
        let pids = with_environment(&variable);
        if pids.is_empty() || start.elapsed() > TERMINATION_TIMEOUT + KILL_TIME {
            return;
        }
        for pid in pids {
            if start.elapsed() > TERMINATION_TIMEOUT {
                // A guest leads a process group, whose other processes lack the variable.
                let _ = killpg(pid, Signal::SIGKILL);
                let _ = kill(pid, Signal::SIGKILL);
            } else if !terminated.contains(&pid) {
                let _ = kill(pid, Signal::SIGTERM);
                terminated.push(pid);
            }
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// The processes whose environment has this entry. The environment of a zombie is empty.
fn with_environment(variable: &str) -> Vec<Pid> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_variable = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    numbers.filter(has_variable).map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use testing::{MINUTE, eventually};

    #[test]
    fn all_processes_of_a_run_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        // A process in a session of its own, whose parent has ended, and that ignores SIGTERM.
        let line = "setsid sh -c 'trap \"\" TERM; echo $$ >number; sleep 1000; sleep 1000' & sleep 1000";
        let mut command = Command::new("sh");
        let mut child =
            command.args(["-c", line]).current_dir(&folder).env(RUN_VARIABLE, folder.path()).spawn().unwrap();
        let file = folder.path().join("number");
        assert!(eventually(|| fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))), "it does not start");
        end_all(folder.path());
        assert!(wait(&mut child, MINUTE).unwrap().is_some(), "the parent still runs");
        let pid = fs::read_to_string(&file).unwrap();
        let command = fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
        assert!(command.is_empty(), "{pid} still runs");
    }

    #[test]
    fn waiting_ends_at_the_time_limit() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let start = Instant::now();
        assert!(wait(&mut child, Duration::from_millis(100)).unwrap().is_none());
        assert!(start.elapsed() >= Duration::from_millis(100));
        child.kill().unwrap();
        assert!(wait(&mut child, MINUTE).unwrap().is_some_and(|status| !status.success()));
    }
}
