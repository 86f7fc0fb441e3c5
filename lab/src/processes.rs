//! The processes of a run, wherever they come from: each has the run's folder in its environment, inherited from those that
//! the lab starts. So they are found when the lab itself is gone, and whatever group or namespace they are in.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// The variable that holds the folder.
pub(crate) const MARK: &str = "ROPEWALK_LAB";
/// Time to go in peace.
const GRACE: Duration = Duration::from_secs(3);
/// Time that the kernel may need to remove those that are killed.
const AFTER: Duration = Duration::from_secs(5);
/// Time between two looks.
const BEAT: Duration = Duration::from_millis(20);

/// Waits for a child, but not for ever: nothing if it still runs.
pub(crate) fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + patience;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= end {
            return Ok(status);
        }
        thread::sleep(BEAT);
    }
}

/// Ends all processes of the run in `folder`: they are asked to go, and those that stay are killed.
pub(crate) fn end_all(folder: &Path) {
    let mark = format!("{MARK}={}", folder.display());
    let start = Instant::now();
    let mut asked = Vec::new();
    loop {
        let all = marked(&mark);
        if all.is_empty() || start.elapsed() > GRACE + AFTER {
            return;
        }
        for pid in all {
            if start.elapsed() > GRACE {
                // A guest leads a group of its own, and its programs know nothing of a mark.
                let _ = killpg(pid, Signal::SIGKILL);
                let _ = kill(pid, Signal::SIGKILL);
            } else if !asked.contains(&pid) {
                let _ = kill(pid, Signal::SIGTERM);
                asked.push(pid);
            }
        }
        thread::sleep(BEAT);
    }
}

/// Those whose environment has this entry. Of one that has ended, and is not yet waited for, it is empty.
fn marked(mark: &str) -> Vec<Pid> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_it = |number: &i32| {
        let all = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        all.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    numbers.filter(has_it).map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_run_s_processes_end_whatever_they_have_become() {
        let folder = tempfile::tempdir().unwrap();
        // One in a session of its own, whose parent has gone, and that does not listen.
        let line = "setsid sh -c 'trap \"\" TERM; echo $$ >number; sleep 1000; sleep 1000' & sleep 1000";
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", line]).current_dir(&folder).env(MARK, folder.path()).spawn().unwrap();
        let file = folder.path().join("number");
        let written = || fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'));
        (0..500).find(|_| written() || (thread::sleep(BEAT), false).1).expect("it starts");
        end_all(folder.path());
        assert!(wait(&mut child, Duration::from_secs(1)).unwrap().is_some(), "the parent still runs");
        let number = fs::read_to_string(&file).unwrap();
        let command = fs::read(format!("/proc/{}/cmdline", number.trim())).unwrap_or_default();
        assert!(command.is_empty(), "{number} still runs");
    }

    #[test]
    fn one_waits_no_longer_than_one_wants() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let start = Instant::now();
        assert!(wait(&mut child, Duration::from_millis(100)).unwrap().is_none());
        assert!((100..2000).contains(&start.elapsed().as_millis()));
        child.kill().unwrap();
        assert!(wait(&mut child, Duration::from_secs(5)).unwrap().is_some_and(|status| !status.success()));
    }
}
