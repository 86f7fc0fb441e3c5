//! The machine's own kernel: a run in network namespaces of this process's own.
//!
//! Everything is named `rw-PID-N-...` and vanishes with the run: its keeper is a process of its own that ends what runs and
//! removes namespaces and files when this one is gone.

use crate::Error;
use crate::bed;
use crate::plan::{Observed, Plan};
use crate::processes::{MARK, end_all, wait};
use crate::support::{Abilities, DISCIPLINES};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Far more than a set-up takes, or an agent beside the time of its run, so that only one that hangs is ended.
const PATIENCE: Duration = Duration::from_secs(60);
/// A command of the set-up, likewise.
const A_COMMAND: Duration = Duration::from_millis(200);

const NETEM: &str = "netem";

/// The kernel that this process runs on.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) abilities: Abilities,
    /// Its release, as `uname -r` has it.
    pub(crate) version: String,
}

impl Host {
    /// What this machine's kernel can do, if this process may make it do so.
    pub(crate) fn find() -> Result<Self, Error> {
        bed::possible().map_err(Error::NoKernel)?;
        Ok(Self::look(true))
    }

    /// What it can do as far as this process can see. Only who may `try_it` finds disciplines.
    pub(crate) fn look(try_it: bool) -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let words = |file: &str| read(file).split_whitespace().map(str::to_owned).collect();
        let all = DISCIPLINES.iter().map(|(name, _, how)| (*name, *how)).chain([(NETEM, "netem delay 1ms")]);
        let mut disciplines = if try_it { disciplines(all) } else { Vec::new() };
        let netem = disciplines.pop_if(|last| *last == NETEM).is_some();
        let abilities = Abilities {
            congestion: words("/proc/sys/net/ipv4/tcp_available_congestion_control"),
            defaults: words("/proc/sys/net/ipv4/tcp_allowed_congestion_control"),
            mptcp: Path::new("/proc/sys/net/mptcp/enabled").exists(),
            netem,
            disciplines,
            tun: Path::new("/dev/net/tun").exists(),
            v6: Path::new("/proc/net/if_inet6").exists(),
            tick: None, // nobody tells
        };
        Self { abilities, version: read("/proc/sys/kernel/osrelease").trim().to_owned() }
    }

    /// Lets the commands of `setup` lay out the network, and `agent` carry out `plan`, with files in `folder`. When it is
    /// back, nothing of it runs any more.
    pub(crate) fn run(agent: &[String], folder: &Path, setup: &[String], plan: &Plan) -> Result<Observed, Error> {
        let observed = carry_out(agent, folder, setup, plan);
        end_all(folder);
        observed.map_err(|why| Error::Guest { why, said: all_last_words(folder) })
    }
}

fn carry_out(agent: &[String], folder: &Path, setup: &[String], plan: &Plan) -> Result<Observed, String> {
    let text = |why: std::io::Error| why.to_string();
    let files = ["setup.sh", "plan.json", "observed.json", "messages"].map(|name| folder.join(name));
    let [script, wanted, answer, messages] = &files;
    fs::write(script, format!("set -x\n{}\n", setup.join("\n"))).map_err(text)?;
    fs::write(wanted, serde_json::to_vec(plan).map_err(|why| why.to_string())?).map_err(text)?;
    fs::File::create(messages).map_err(text)?;
    let patience = PATIENCE + A_COMMAND * setup.len() as u32;
    watched(Command::new("sh").arg("-e").arg(script), folder, patience).map_err(|why| {
        let at = last_command(messages).map_or(String::new(), |line| format!(", at `{line}`"));
        format!("the set-up {why}{at}")
    })?;
    let patience = PATIENCE + Duration::from_nanos((plan.duration + plan.drain).as_nanos());
    let mut command = Command::new(&agent[0]);
    watched(command.args(&agent[1..]).args([wanted, answer]), folder, patience)
        .map_err(|why| format!("the agent {why}"))?;
    let answer = fs::read(answer).map_err(|_| "the agent left no answer".to_owned())?;
    serde_json::from_slice(&answer).map_err(|why| format!("a damaged answer: {why}"))
}

/// Runs a command of the run in `folder` to its end; what it says goes to the messages there. Or what became of it.
fn watched(command: &mut Command, folder: &Path, patience: Duration) -> Result<(), String> {
    let text = |why: std::io::Error| format!("cannot be run: {why}");
    let messages = fs::File::options().append(true).create(true).open(folder.join("messages")).map_err(text)?;
    let errors = messages.try_clone().map_err(text)?;
    // In a group of its own, an interrupted terminal leaves it to the keeper.
    command.process_group(0).env(MARK, folder).stdin(Stdio::null()).stdout(messages).stderr(errors);
    match wait(&mut command.spawn().map_err(text)?, patience).map_err(text)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("failed ({status})")),
        None => Err(format!("was still running after {} s", patience.as_secs())),
    }
}

/// What `set -x` said last.
fn last_command(messages: &Path) -> Option<String> {
    let said = fs::read_to_string(messages).ok()?;
    said.lines().rev().find_map(|line| line.strip_prefix("+ ")).map(str::to_owned)
}

/// Which of these disciplines a device can be given.
fn disciplines(wanted: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<&'static str> {
    let name = format!("{}-try", bed::name());
    let run =
        |line: &str| Command::new("sh").args(["-c", line]).stderr(Stdio::null()).status().is_ok_and(|it| it.success());
    let has = |how: &str| run(&format!("tc -n {name} qdisc replace dev lo root {how}"));
    let there = run(&format!("ip netns add {name}"));
    let found = wanted.filter(|(_, how)| there && has(how)).map(|(word, _)| word).collect();
    run(&format!("ip netns del {name}"));
    found
}

/// Of the set-up and the agent, and of whatever they started.
fn all_last_words(folder: &Path) -> String {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|it| it == "log")).collect();
    logs.sort();
    logs.insert(0, folder.join("messages"));
    let of = |file: &PathBuf| format!("{}: {}", file.file_name().unwrap_or_default().display(), last_words(file));
    logs.iter().map(of).collect::<Vec<_>>().join("\n")
}

/// The end of what commands said.
pub(crate) fn last_words(file: &Path) -> String {
    let said = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_up(line: &str, patience: Duration) -> (Result<(), String>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let done = watched(
            Command::new("sh").args(["-e", "-c", &format!("set -x\necho begun\n{line}")]),
            folder.path(),
            patience,
        );
        end_all(folder.path());
        (done, last_command(&folder.path().join("messages")))
    }

    #[test]
    fn a_command_that_fails_or_hangs_is_named() {
        let (done, at) = set_up("false --hopelessly", PATIENCE);
        assert_eq!(
            (done.unwrap_err().as_str(), at.as_deref()),
            ("failed (exit status: 1)", Some("false --hopelessly"))
        );
        let (done, at) = set_up("sleep 1000", Duration::from_secs(1));
        assert_eq!((done.unwrap_err().as_str(), at.as_deref()), ("was still running after 1 s", Some("sleep 1000")));
    }
}
