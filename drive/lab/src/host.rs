//! The machine's own kernel: a run in network namespaces of this process's own.
//!
//! Everything is named `rw-PID-N-...` and vanishes with the run: its keeper is a process of its own that removes the
//! namespaces, and what runs in them, when this one is gone.

use crate::Error;
use crate::bed::{self, Keeper};
use crate::plan::{Observed, Plan};
use crate::support::Abilities;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs of this process so far: a part of their names.
static RUNS: AtomicU32 = AtomicU32::new(0);

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

    /// What it can do as far as this process can see. Only who may `try_it` finds netem.
    pub(crate) fn look(try_it: bool) -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let congestion = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let abilities = Abilities {
            congestion: congestion.split_whitespace().map(str::to_owned).collect(),
            mptcp: Path::new("/proc/sys/net/mptcp/enabled").exists(),
            netem: try_it && has_netem(),
            tun: Path::new("/dev/net/tun").exists(),
            v6: Path::new("/proc/net/if_inet6").exists(),
            tick: None, // nobody tells
        };
        Self { abilities, version: read("/proc/sys/kernel/osrelease").trim().to_owned() }
    }

    /// A name for a run's namespaces, without the last dash.
    pub(crate) fn name() -> String {
        format!("rw-{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed))
    }

    /// Lets the commands of `setup` lay out the network, and `agent` carry out `plan`, with files in `folder`.
    pub(crate) fn run(agent: &[String], name: &str, folder: &Path, setup: &[String], plan: &Plan) -> Result<Observed, Error> {
        bed::sweep();
        let words: Vec<&str> = agent.iter().map(String::as_str).collect();
        let _keeper = Keeper::start(&words, name).map_err(Error::guest)?;
        let observed = carry_out(agent, folder, setup, plan);
        observed.map_err(|why| Error::Guest { why, said: last_words(&folder.join("messages")) })
    }
}

fn carry_out(agent: &[String], folder: &Path, setup: &[String], plan: &Plan) -> Result<Observed, String> {
    let text = |why: std::io::Error| why.to_string();
    fs::write(folder.join("setup.sh"), format!("set -x\n{}\n", setup.join("\n"))).map_err(text)?;
    fs::write(folder.join("plan.json"), serde_json::to_vec(plan).map_err(|why| why.to_string())?).map_err(text)?;
    let messages = fs::File::create(folder.join("messages")).map_err(text)?;
    let mut background = Group::start(Command::new("sh").arg("-e").arg(folder.join("setup.sh")), &messages)?;
    background.wait("the set-up failed")?;
    let files = ["plan.json", "observed.json"].map(|name| folder.join(name));
    let mut command = Command::new(&agent[0]);
    Group::start(command.args(&agent[1..]).args(&files), &messages)?.wait("the agent failed")?;
    let answer = fs::read(&files[1]).map_err(|_| "the agent left no answer".to_owned())?;
    serde_json::from_slice(&answer).map_err(|why| format!("a damaged answer: {why}"))
}

/// A process and all that it leaves running, which end with this value.
struct Group(Child);

impl Group {
    fn start(command: &mut Command, messages: &fs::File) -> Result<Self, String> {
        let output = || messages.try_clone().map_err(|why| why.to_string());
        command.process_group(0).stdin(Stdio::null()).stdout(output()?).stderr(output()?);
        command.spawn().map(Self).map_err(|why| why.to_string())
    }

    fn wait(&mut self, or: &str) -> Result<(), String> {
        let status = self.0.wait().map_err(|why| why.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("{or} ({status})")) }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let group = nix::unistd::Pid::from_raw(self.0.id().cast_signed());
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

fn has_netem() -> bool {
    let name = format!("rw-{}-netem", std::process::id());
    let run = |line: &str| Command::new("sh").args(["-c", line]).stderr(Stdio::null()).status().is_ok_and(|it| it.success());
    let found = run(&format!("ip netns add {name} && tc -n {name} qdisc add dev lo root netem delay 1ms"));
    run(&format!("ip netns del {name}"));
    found
}

/// The end of what commands said.
pub(crate) fn last_words(file: &Path) -> String {
    let said = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

