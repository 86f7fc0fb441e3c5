//! Scenarios on real kernels, as a person runs them: the results are those worked out by hand, the files of a run are
//! kept, and nothing else stays on the machine.
//!
//! Without such a kernel a test is skipped. The kernels' time is real here: a test asserts counts, the order of events,
//! and times that no machine can undercut.
//!
//! - `uml`: User-Mode Linux. `netns`: this machine's kernel, as root.
//! - `wires`: what links do to packets there. `traffic`: what flows do. `tools`: runs whose traffic is iperf3's or
//!   FTP's.
//! - `probe`: measurements of known links. `ends`: interrupted and failing runs there. `coupled`: eBPF programs on this machine's kernel.

#![allow(clippy::disallowed_methods, reason = "folders of tests are theirs alone")]

mod coupled;
mod ends;
mod netns;
mod probe;
#[path = "../program/mod.rs"]
mod program;
mod tools;
mod traffic;
mod uml;
mod wires;

use program::{folder, write};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use testing::{Reason, skip};

/// The time limit of a run whose flows have a size: the run ends with them.
const MAX_SECONDS: u32 = 60;

/// Serialises the tests: each needs the CPU for its links.
fn cpu_lock() -> MutexGuard<'static, ()> {
    static CPU_LOCK: Mutex<()> = Mutex::new(());
    CPU_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A path as a scenario has it, 20 ms there and back, Ethernet's 38 bytes around each packet.
fn path(name: &str, mbit: u32, queue: u32) -> String {
    format!(
        "[[path]]\nname = \"{name}\"\nrate = \"{mbit}mbit\"\ndelay = \"10ms\"\noverhead = \"38b\"\n\
         queue = {{ limit = \"{queue}p\" }}\n"
    )
}

/// A finished study of one run.
struct Study {
    /// The one run of the JSON document.
    run: Value,
    dir: PathBuf,
    /// Id of its process.
    pid: u32,
}

/// Runs a scenario of this length to its end, unless this machine cannot. `on`: the kernel, and further options.
fn study(name: &str, seconds: u32, rest: &str, on: &str) -> Option<Study> {
    let _cpu_lock = cpu_lock();
    let dir = folder(name);
    write(&dir, "scenario.toml", &format!("name = \"{name}\"\nduration = \"{seconds}s\"\n{rest}"));
    let results = dir.join("results");
    let [file, out] = [dir.join("scenario.toml"), results.clone()].map(|path| path.display().to_string());
    let arguments = ["run", &file, "--out", &out, "--json", "--quiet", "--on"].into_iter().chain(on.split(' '));
    let mut command = program::command(&arguments.collect::<Vec<_>>());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (pid, output) = (child.id(), child.wait_with_output().unwrap());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => {}
        Some(4) if stderr.contains("does not start on this processor") => return no_run(Reason::Processor, &stderr),
        Some(4) => return no_run(Reason::Missing, &stderr),
        Some(3) if stderr.contains("the lab has no") => return no_run(Reason::Kernel, &stderr),
        _ => panic!("{stderr}"),
    }
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    Some(Study { run: document["runs"][0].clone(), dir: results, pid })
}

impl Study {
    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.join("raw/0-1").join(name)).unwrap_or_else(|reason| panic!("{name}: {reason}"))
    }

    fn raw(&self, name: &str) -> Value {
        serde_json::from_str(&self.file(name)).unwrap()
    }

    /// The only flow's `bytes` have all arrived, and no sooner than links of `mbps` of payload in all can carry them.
    fn assert_carried(&self, bytes: u64, mbps: f64) {
        let flow = &self.run["flows"][0];
        assert_eq!(flow["delivered_bytes"], bytes);
        let min_s = bytes as f64 * 8e-6 / mbps;
        assert!(
            flow["completion_s"].as_f64().is_some_and(|completion_s| completion_s >= min_s),
            "not before {min_s} s: {flow}"
        );
    }
}

fn no_run(reason: Reason, message: &str) -> Option<Study> {
    skip(reason, message);
    None
}

/// The network namespaces of a process's runs.
fn namespaces(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("rw-{pid}-"))).collect()
}
