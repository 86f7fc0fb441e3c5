//! The hook's runner: a process that is started before the daemon confines itself, because a confined daemon cannot
//! execute a program. The runner has no capability and cannot gain one. It reads one notification per line, and runs
//! the hook with it on standard input. It ends when the daemon's end closes its standard input.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, User};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tracing::warn;

/// The largest write that a pipe takes as a whole or not at all, bytes (PIPE_BUF, pipe(7)).
const MAX_LEN: usize = 4096;
/// The longest time that a hook may run.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Times before a failed hook is tried again; the last failure is not retried.
const RETRIES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];
/// The interval of checks whether a hook has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The pipe to the runner.
#[derive(Debug)]
pub(crate) struct HookPipe(ChildStdin);

impl HookPipe {
    /// Passes a notification on. Never waits.
    ///
    /// # Errors
    /// The runner has ended, or has not read earlier ones.
    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        let line = format!("{text}\n");
        if line.len() > MAX_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the notification is too long"));
        }
        self.0.write_all(line.as_bytes())
    }
}

/// Starts the runner of `hook` as `user`: this program with a verb of its own, and an empty environment.
///
/// # Errors
/// The process cannot be started.
pub(crate) fn start_runner(hook: &Path, user: Option<&User>) -> io::Result<HookPipe> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("notify-hook")
        .arg(hook)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).current_dir("/");
    // A signal to the daemon's group, such as Ctrl-C, is the daemon's.
    command.process_group(0);
    if let Some(user) = user.filter(|user| user.uid != nix::unistd::geteuid()) {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    let mut child = command.spawn()?;
    let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    fcntl(&stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(HookPipe(stdin))
}

/// The runner: gives up all privileges, then runs the hook for each line of standard input.
///
/// # Errors
/// The privileges cannot be given up.
pub fn run_hooks(hook: &Path) -> io::Result<()> {
    give_up_privileges()?;
    for line in io::stdin().lock().lines() {
        run_with_retries(hook, &line?);
    }
    Ok(())
}

/// Clears every set of capabilities, also the bounding set, from which a program of root would get them again.
fn give_up_privileges() -> io::Result<()> {
    caps::clear(None, caps::CapSet::Ambient).map_err(io::Error::other)?;
    for capability in caps::all() {
        // Fails only for capabilities that the kernel does not know, or that this process may not drop and does not
        // have.
        let _ = caps::drop(None, caps::CapSet::Bounding, capability);
    }
    for set in [caps::CapSet::Inheritable, caps::CapSet::Effective, caps::CapSet::Permitted] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    Ok(nix::sys::prctl::set_no_new_privs()?)
}

fn run_with_retries(hook: &Path, text: &str) {
    for wait in RETRIES.iter().map(Some).chain([None]) {
        let end = Instant::now() + MAX_TIME;
        let Err(error) = run_until(hook, text, || Instant::now() >= end) else { return };
        warn!("the hook {}: {error}", hook.display());
        wait.into_iter().for_each(|wait| thread::sleep(*wait));
    }
}

/// Runs the hook once, and ends it with all processes that it has started when its time is over.
fn run_until(hook: &Path, text: &str, is_over: impl Fn() -> bool) -> io::Result<()> {
    let mut child = Command::new(hook).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A hook may end without reading. The pipe has room for the whole text.
        let _ = writeln!(stdin, "{text}");
    }
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(status.to_string())),
            None if is_over() => return Err(kill(&mut child)),
            None => thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Kills the process group of a hook, which [`run_until`] made.
fn kill(child: &mut Child) -> io::Error {
    let group = Pid::from_raw(child.id().cast_signed());
    let _ = killpg(group, Signal::SIGKILL).map_err(io::Error::from).and_then(|()| child.wait());
    io::Error::new(io::ErrorKind::TimedOut, format!("ended after {} s", MAX_TIME.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::OpenOptionsExt;

    /// Whether a process runs: one that has ended and was not waited for does not.
    fn is_running(pid: &str) -> bool {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn what_a_hook_has_started_ends_with_it_when_its_time_is_over() {
        let folder = std::env::temp_dir().join(format!("ropewalk-hook-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [hook, pid_file] = ["hook", "pid"].map(|name| folder.join(name));
        // The shell waits for a process of its own; so does that one, for a third.
        let script = format!(
            "#!/bin/sh\nsh -c 'sleep 7777 & echo $! > {0}.new; mv {0}.new {0}; wait'\necho\n",
            pid_file.display()
        );
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(&hook);
        file.unwrap().write_all(script.as_bytes()).unwrap();
        let error = run_until(&hook, "{}", || pid_file.exists()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let pid = fs::read_to_string(&pid_file).unwrap();
        assert!(testing::eventually(|| !is_running(pid.trim())), "the process {pid} goes on");
        fs::remove_dir_all(folder).unwrap();
    }
}
