//! CPU time and peak memory of a program.
//!
//! `getrusage` sums over all children and keeps the maximum peak, so a new process (`ropewalk-bench measure`) runs one
//! program and nothing else, and then queries the usage of its children.

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// CPU time, peak memory and output of a program.
#[derive(Debug)]
pub(crate) struct Cost {
    /// User and system time, seconds.
    pub(crate) cpu_s: f64,
    /// Maximum resident set, bytes.
    pub(crate) peak_bytes: u64,
    /// Standard output.
    pub(crate) stdout: String,
}

/// Runs `command` under a new process of this program.
pub(crate) fn measure(command: &[&str]) -> Result<Cost, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .arg("measure")
        .args(command)
        .current_dir(crate::shell::root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run `ropewalk-bench measure`: {error}"))?;
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|_| format!("`{}` failed", command.join(" ")))?;
    Ok(Cost {
        cpu_s: report["cpu_s"].as_f64().unwrap_or_default(),
        peak_bytes: report["peak_bytes"].as_u64().unwrap_or_default(),
        stdout: report["printed"].as_str().unwrap_or_default().to_owned(),
    })
}

/// `ropewalk-bench measure COMMAND...`: runs one program and prints its CPU time, peak memory and output as JSON.
pub(crate) fn run(command: &[&str]) -> Result<(), String> {
    let [program, arguments @ ..] = command else { return Err("measure what?".to_owned()) };
    let output = Command::new(program)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} failed ({})", output.status));
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let times = [usage.user_time(), usage.system_time()];
    let cpu_s: f64 = times.iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum();
    let stdout = String::from_utf8_lossy(&output.stdout);
    crate::shell::print(&json!({"cpu_s": cpu_s, "peak_bytes": usage.max_rss() * 1024, "printed": stdout}).to_string())
}
