//! The process that holds a group's eBPF programs, and removes the group when it is empty.

use super::group;
use crate::kernel::{alone, find};
use crate::{Failure, output};
use nix::sys::signal::SigSet;
use nix::unistd::setsid;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

/// Its answers if all programs are attached, and if all except the one for MPTCP are, which a kernel before 6.6 or one that
/// forbids tracing refuses. Any other answer is the reason of a failure.
const READY: &str = "ready";
const READY_BUT_MPTCP: &str = "ready, but MPTCP";

/// A running keeper.
#[derive(Debug)]
pub(super) struct Keeper {
    /// Whether it could attach the programs that were asked for.
    pub(super) has_mptcp: bool,
    _stdin: ChildStdin,
}

/// Starts the keeper of a group, as a process of this program. Once the returned value is dropped, or this process becomes
/// another program, the keeper ends as soon as the group is empty.
pub(super) fn start(group: &Path, name: &str, mptcp: bool) -> Result<Keeper, Failure> {
    let mut command = again("keep-group");
    command.arg(group).arg(name).args(mptcp.then_some("--mptcp"));
    let lost = |error: io::Error| Failure::Environment(format!("the keeper of {}: {error}", group.display()));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(lost)?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { unreachable!("both are pipes") };
    let (mut stdout, mut answer) = (BufReader::new(stdout), String::new());
    child.wait().and_then(|_| stdout.read_line(&mut answer)).map_err(lost)?;
    if let READY | READY_BUT_MPTCP = answer.trim() {
        return Ok(Keeper { has_mptcp: mptcp && answer.trim() == READY, _stdin: stdin });
    }
    group::remove(group);
    stdout.read_to_string(&mut answer).map_err(lost)?;
    Err(Failure::Environment(answer.trim().to_owned()))
}

/// This program again, with a command of `ropewalk kernel`.
fn again(verb: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(std::env::args_os().next().unwrap_or_default());
    if !alone::is_called_alone() {
        command.arg("kernel");
    }
    command.arg(verb);
    command
}

/// The keeper. The first process only starts the second. So the second is not a child of the program that is run, which
/// would otherwise wait for it.
pub(in crate::kernel) fn keep(folder: &Path, name: &str, mptcp: bool, second: bool) -> Result<(), Failure> {
    if !second {
        let mut command = again("keep-group");
        command.arg(folder).arg(name).arg("--second").args(mptcp.then_some("--mptcp")).current_dir("/");
        return command.spawn().map(drop).map_err(|error| Failure::Environment(error.to_string()));
    }
    // It ends with the group, not by a signal to the caller's terminal or unit.
    let _ = setsid();
    let _ = SigSet::all().thread_block();
    let attach = |mptcp| kernel::attach(folder, find(name)?.kernel_name, mptcp).map_err(Failure::from);
    let (attached, answer) = match (attach(mptcp), mptcp) {
        (Err(_), true) => (attach(false), READY_BUT_MPTCP),
        (attached, _) => (attached, READY),
    };
    let attached = match attached {
        Ok(attached) => attached,
        Err(error) => return output::print(&format!("{error}\n")),
    };
    output::print(&format!("{answer}\n"))?;
    // Waits until the caller has moved into the group, or has ended.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    let _ = group::wait_until_empty(folder);
    drop(attached);
    group::remove(folder);
    Ok(())
}
