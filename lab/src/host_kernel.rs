//! The machine's own kernel: a run in network namespaces of this process's own.
//!
//! Everything is named `rw-PID-N-...` and vanishes with the run: its reaper is a separate process that ends the run's
//! processes and removes its namespaces and files when this process is gone.

use crate::Error;
use crate::processes::{RUN_VARIABLE, end_all, wait};
use crate::programs;
use crate::protocol::{Plan, RunResults};
use crate::support::{Capabilities, POLICER, QDISCS};
use crate::testbed;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time limit of the setup, and of an agent in addition to the duration of its run.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);
/// Additional time limit per command of the setup.
const COMMAND_TIMEOUT: Duration = Duration::from_millis(200);

const NETEM: &str = "netem";

/// The kernel that this process runs on.
#[derive(Clone, Debug)]
pub(crate) struct HostKernel {
    pub(crate) capabilities: Capabilities,
    /// The release, as `uname -r` prints it.
    pub(crate) version: String,
}

impl HostKernel {
    /// The machine's kernel, if this process may make namespaces.
    pub(crate) fn find() -> Result<Self, Error> {
        testbed::possible().map_err(Error::NoKernel)?;
        Ok(Self::probe(true))
    }

    /// The capabilities of the machine's kernel. Queue disciplines are found only with `try_qdiscs`, which needs root.
    pub(crate) fn probe(try_qdiscs: bool) -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let programs = programs::find();
        let is_own = |name: &&str| !programs.names.iter().any(|(_, program)| program == name);
        let names = |file: &str| read(file).split_whitespace().filter(is_own).map(str::to_owned).collect();
        let candidates =
            QDISCS.iter().map(|(name, _, arguments)| (*name, *arguments)).chain([(NETEM, "netem delay 1ms")]);
        let (mut qdiscs, policer) = if try_qdiscs { qdiscs(candidates) } else { (Vec::new(), false) };
        let netem = qdiscs.pop_if(|name| *name == NETEM).is_some();
        let capabilities = Capabilities {
            congestion_controls: names("/proc/sys/net/ipv4/tcp_available_congestion_control"),
            default_congestion_controls: names("/proc/sys/net/ipv4/tcp_allowed_congestion_control"),
            programs: programs.clone(),
            mptcp: Path::new("/proc/sys/net/mptcp/enabled").exists(),
            netem,
            policer,
            qdiscs,
            tun: Path::new("/dev/net/tun").exists(),
            ipv6: Path::new("/proc/net/if_inet6").exists(),
            jiffy: None, // unknown
        };
        Self { capabilities, version: read("/proc/sys/kernel/osrelease").trim().to_owned() }
    }

    /// Runs the commands of `setup`, which build the network, then `agent` with `plan`; files are in `folder`. All
    /// processes of the run have ended when the function returns.
    pub(crate) fn run(agent: &[String], folder: &Path, setup: &[String], plan: &Plan) -> Result<RunResults, Error> {
        let results = carry_out(agent, folder, setup, plan);
        end_all(folder);
        results.map_err(|reason| Error::Failed { reason, output: all_log_tails(folder) })
    }
}

fn carry_out(agent: &[String], folder: &Path, setup: &[String], plan: &Plan) -> Result<RunResults, String> {
    let io_error = |error: std::io::Error| error.to_string();
    let files = ["setup.sh", "plan.json", "results.json", "messages"].map(|name| folder.join(name));
    let [script, plan_file, results_file, messages] = &files;
    fs::write(script, format!("set -x\n{}\n", setup.join("\n"))).map_err(io_error)?;
    fs::write(plan_file, serde_json::to_vec(plan).map_err(|reason| reason.to_string())?).map_err(io_error)?;
    fs::File::create(messages).map_err(io_error)?;
    let time_limit = RUN_TIMEOUT + COMMAND_TIMEOUT * setup.len() as u32;
    run_with_limit(Command::new("sh").arg("-e").arg(script), folder, time_limit).map_err(|reason| {
        let location = last_command(messages).map_or(String::new(), |line| format!(", at `{line}`"));
        format!("the setup {reason}{location}")
    })?;
    let time_limit = RUN_TIMEOUT + Duration::from_nanos((plan.duration + plan.drain).as_nanos());
    let mut command = Command::new(&agent[0]);
    run_with_limit(command.args(&agent[1..]).args([plan_file, results_file]), folder, time_limit)
        .map_err(|reason| format!("the agent {reason}"))?;
    let results = fs::read(results_file).map_err(|_| "the agent left no results".to_owned())?;
    serde_json::from_slice(&results).map_err(|reason| format!("damaged results: {reason}"))
}

/// Runs a command of the run in `folder` to its end, with its output in the file `messages` there.
fn run_with_limit(command: &mut Command, folder: &Path, time_limit: Duration) -> Result<(), String> {
    let io_error = |error: std::io::Error| format!("cannot be run: {error}");
    let messages = fs::File::options().append(true).create(true).open(folder.join("messages")).map_err(io_error)?;
    let errors = messages.try_clone().map_err(io_error)?;
    // In a process group of its own, an interrupt of the terminal does not reach it: the reaper ends it.
    command.process_group(0).env(RUN_VARIABLE, folder).stdin(Stdio::null()).stdout(messages).stderr(errors);
    match wait(&mut command.spawn().map_err(io_error)?, time_limit).map_err(io_error)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("failed ({status})")),
        None => Err(format!("was still running after {} s", time_limit.as_secs())),
    }
}

/// The last command that `set -x` printed.
fn last_command(messages: &Path) -> Option<String> {
    let output = fs::read_to_string(messages).ok()?;
    output.lines().rev().find_map(|line| line.strip_prefix("+ ")).map(str::to_owned)
}

/// The queue disciplines of `candidates` that the kernel has, and whether it has policers, found by trying.
fn qdiscs(candidates: impl Iterator<Item = (&'static str, &'static str)>) -> (Vec<&'static str>, bool) {
    let name = format!("{}-try", testbed::name());
    let run = |line: &str| {
        Command::new("sh").args(["-c", line]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let has = |arguments: &str| run(&format!("tc -n {name} qdisc replace dev lo root {arguments}"));
    let has_namespace = run(&format!("ip netns add {name}"));
    let supported = candidates.filter(|(_, arguments)| has_namespace && has(arguments)).map(|(name, _)| name).collect();
    let policer = has_namespace && POLICER.iter().all(|arguments| run(&format!("tc -n {name} {arguments}")));
    run(&format!("ip netns del {name}"));
    (supported, policer)
}

/// The ends of all logs: those of the setup, of the agent, and of the processes that they started.
fn all_log_tails(folder: &Path) -> String {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "log")).collect();
    logs.sort();
    logs.insert(0, folder.join("messages"));
    let labelled_tail =
        |file: &PathBuf| format!("{}: {}", file.file_name().unwrap_or_default().display(), log_tail(file));
    logs.iter().map(labelled_tail).collect::<Vec<_>>().join("\n")
}

/// The last lines of a log.
pub(crate) fn log_tail(file: &Path) -> String {
    let output = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_setup(line: &str, time_limit: Duration) -> (Result<(), String>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let outcome = run_with_limit(
            Command::new("sh").args(["-e", "-c", &format!("set -x\necho begun\n{line}")]),
            folder.path(),
            time_limit,
        );
        end_all(folder.path());
        (outcome, last_command(&folder.path().join("messages")))
    }

    #[test]
    fn a_command_that_fails_or_hangs_is_named() {
        let (outcome, command) = run_setup("false --hopelessly", RUN_TIMEOUT);
        assert_eq!(
            (outcome.unwrap_err().as_str(), command.as_deref()),
            ("failed (exit status: 1)", Some("false --hopelessly"))
        );
        let (outcome, command) = run_setup("sleep 1000", Duration::from_secs(1));
        assert_eq!(
            (outcome.unwrap_err().as_str(), command.as_deref()),
            ("was still running after 1 s", Some("sleep 1000"))
        );
    }
}
