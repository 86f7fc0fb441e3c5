//! The reaper: a process that removes a testbed, or a run of the lab, when its owner has ended, even if it was killed.

use super::{Error, commands};
use crate::processes::end_all;
use crate::programs::Hold;
use std::error::Error as Any;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The reaper's process. It is in a process group of its own, which Ctrl-C does not reach.
#[derive(Debug)]
pub(crate) struct Reaper(Child);

impl Reaper {
    /// Starts the reaper of a testbed; or of a run with its folder and eBPF programs: its processes are ended, its
    /// files removed, and its programs unloaded.
    pub(crate) fn start(agent: &[&str], testbed: &str, run: Option<(&Path, &[&str])>) -> Result<Self, Error> {
        let mut command = agent_process(agent);
        command.args(["reap", testbed]);
        if let Some((folder, programs)) = run {
            command.arg(folder).args(programs);
        }
        let child = command.stdin(Stdio::piped()).spawn();
        child.map(Self).map_err(|error| Error::command(&agent.join(" "), error))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The agent as a command in a process group of its own, which an interrupt of the terminal does not reach.
pub(super) fn agent_process(agent: &[&str]) -> Command {
    let mut command = Command::new(agent[0]);
    command.args(&agent[1..]).process_group(0);
    command
}

/// `agent reap TESTBED [FOLDER [PROGRAM ...]]`: waits for the end of standard input, then removes the testbed, or everything
/// that belongs to the run.
pub(crate) fn main(testbed: &str, run: &[&str]) -> Result<(), Box<dyn Any + Send + Sync>> {
    let (folder, programs) = run.split_first().map_or((None, run), |(folder, programs)| (Some(*folder), programs));
    let _hold = Hold::join(programs);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let folder = folder.map(Path::new);
    folder.into_iter().for_each(end_all);
    let prefix = format!("{testbed}-");
    namespaces().iter().filter(|name| name.starts_with(&prefix)).for_each(|name| remove(name));
    match folder.map(std::fs::remove_dir_all) {
        Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Removes the testbeds whose owners have ended.
pub(crate) fn sweep() {
    let orphaned = |name: &&String| owner(name).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    namespaces().iter().filter(orphaned).for_each(|name| remove(name));
}

/// The process that a namespace `rw-PID-...` belongs to.
fn owner(namespace: &str) -> Option<u32> {
    namespace.strip_prefix("rw-")?.split('-').next()?.parse().ok()
}

fn namespaces() -> Vec<String> {
    let listed = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    listed.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Ends the processes in a namespace, then removes the namespace. Another process may be doing the same.
fn remove(namespace: &str) {
    let pids = commands::run(&format!("ip netns pids {namespace}")).unwrap_or_default();
    for pid in pids.split_whitespace() {
        let _ = commands::run(&format!("kill -9 {pid}"));
    }
    let _ = commands::run(&format!("ip netns del {namespace}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_testbeds_have_owners() {
        assert_eq!(owner("rw-1234-0-left"), Some(1234));
        assert_eq!([owner("rw-left"), owner("blue"), owner("rw-12x-0-left")], [None; 3]);
    }
}
