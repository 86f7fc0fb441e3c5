//! One virtual machine from boot to power-off.

use super::debian::Kernel;
use crate::shell;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines of the kernel's log that a failure shows.
const SHOWN: usize = 40;

/// The output of a machine.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    /// The kernel's release, as `uname -r`.
    pub(super) release: String,
    /// The output of `ropewalk-stress` for each program; for a soak its last line.
    pub(super) rows: Vec<String>,
    /// For each program its hooks with the number of calls: `rw_lia ssthresh=3 ...`.
    pub(super) hooks: Vec<String>,
    /// Whether it ended successfully: a machine that panics does not end.
    pub(super) succeeded: bool,
}

/// Boots a kernel, which panics at any warning, with `words` as the arguments of `ropewalk-stress`.
pub(super) fn run(kernel: &Kernel, initramfs: &Path, folder: &Path, words: &str) -> Result<Report, String> {
    let console = folder.join(format!("{}.log", kernel.name));
    let settings = format!("console=ttyS0 panic=-1 oops=panic panic_on_warn=1 -- {words}");
    let mut command = Command::new("qemu-system-x86_64");
    command.args(["-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "1024"]);
    command.args(["-nodefaults", "-display", "none", "-no-reboot", "-serial"]);
    command.arg(format!("file:{}", console.display())).args(["-serial", "stdio", "-append", &settings]);
    command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(initramfs);
    eprintln!("\n$ {command:?}");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("cannot run qemu-system-x86_64: {error}"))?;
    let mut report = Report { release: kernel.name.clone(), ..Report::default() };
    for line in BufReader::new(child.stdout.take().expect("it is piped")).split(b'\n') {
        let line = line.map_err(|error| error.to_string())?;
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        shell::print(&format!("{line}\n"))?;
        report.read(&line);
    }
    child.wait().map_err(|error| error.to_string())?;
    if !report.succeeded {
        let log = fs::read(&console).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        shell::print(&format!("{}\n", lines[lines.len().saturating_sub(SHOWN)..].join("\n")))?;
        report.rows.push("FAILED; see above".to_owned());
    }
    Ok(report)
}

impl Report {
    fn read(&mut self, line: &str) {
        if let Some(release) = line.strip_prefix("kernel ") {
            release.clone_into(&mut self.release);
        } else if let Some(status) = line.strip_prefix("ended ") {
            self.succeeded = status == "0";
        } else if let Some(row) = line.strip_prefix("trial ") {
            self.rows.push(row.to_owned());
        } else if let Some(hooks) = line.strip_prefix("hooks ") {
            self.hooks.push(hooks.to_owned());
        } else if line.starts_with("soak ") {
            self.rows = vec![line.to_owned()];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_does_not_come_to_its_end_has_failed() {
        let read = |text: &str| {
            let mut report = Report::default();
            text.lines().for_each(|line| report.read(line));
            report
        };
        let report = read("kernel 6.1.0\ntrial rw_lia: carried 8 MB\nended 0");
        assert!(report.succeeded && report.release == "6.1.0" && report.rows == ["rw_lia: carried 8 MB"]);
        assert!(!read("kernel 6.1.0\ntrial rw_lia: FAILED\nended 1").succeeded);
        assert!(!read("kernel 6.1.0\nsoak 10 s: MB 4").succeeded);
        assert_eq!(read("soak 10 s: MB 4\nsoak 20 s: MB 8").rows, ["soak 20 s: MB 8"]);
    }
}
