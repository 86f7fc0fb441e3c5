//! How the daemon is started and kept running: by systemd, by OpenWrt's procd, or else in the background by the set-up.

use super::host;
use super::plan::{NewFile, Step, words};
use super::record::Undo;
use crate::tunnel::runtime_directory;
use daemon::control_plane::{Client, RunFolder, StateFile, running_tunnel};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The unit, for machines to which the program came without its package.
const UNIT: &str = include_str!("../../../packaging/ropewalk@.service");
/// Folders of units that packages bring.
const UNIT_FOLDERS: [&str; 4] =
    ["/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
/// The time for the daemon to start or to end.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What starts the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Service {
    /// The unit `ropewalk@NAME`.
    Systemd(String),
    /// The script `/etc/init.d/ropewalk-NAME`.
    Procd(String),
    /// A process in the background, which nothing starts at boot.
    Background {
        /// The program.
        program: PathBuf,
        /// The configuration.
        config: PathBuf,
        /// The log.
        log: PathBuf,
    },
}

impl Service {
    /// What this machine has: `/run/systemd/system` is there under systemd (sd_booted(3)).
    pub(super) fn detect(name: &str, config: &Path) -> Self {
        if Path::new("/run/systemd/system").is_dir() {
            Self::Systemd(format!("ropewalk@{name}"))
        } else if Path::new("/sbin/procd").exists() {
            Self::Procd(format!("/etc/init.d/ropewalk-{name}"))
        } else {
            let log = PathBuf::from(format!("/var/log/ropewalk-{name}.log"));
            Self::Background { program: own_program(), config: config.to_owned(), log }
        }
    }

    /// The steps before the start. `start` and `stop` are commands that go with the daemon.
    pub(super) fn steps(&self, config: &Path, start: &[Vec<String>], stop: &[Vec<String>]) -> Vec<Step> {
        match self {
            Self::Systemd(unit) => systemd_steps(unit, start, stop),
            Self::Procd(script) => {
                let text = procd_script(config, start, stop);
                vec![Step::File(NewFile::of_root(script.clone(), 0o755, text))]
            }
            Self::Background { log, .. } => {
                // In pairs: what a command of the start has done, that of the stop takes back.
                let undo = stop.iter().cloned().map(|stop| Step::AtRemoval(Undo::Command(stop)));
                let run = start.iter().cloned().map(|run| Step::Command { run, undo: None });
                [Step::AtRemoval(Undo::File(log.clone()))].into_iter().chain(undo).chain(run).collect()
            }
        }
    }

    pub(super) fn start_description(&self) -> String {
        match self {
            Self::Systemd(unit) => format!("systemctl enable --now {unit}"),
            Self::Procd(script) => format!("{script} enable; {script} start"),
            Self::Background { program, config, log } => format!(
                "{} up {} in the background, its log in {}. This machine has neither systemd nor procd: nothing starts it \
                 at boot",
                program.display(),
                config.display(),
                log.display()
            ),
        }
    }

    pub(super) fn stop_description(&self) -> String {
        match self {
            Self::Systemd(unit) => format!("systemctl disable --now {unit}"),
            Self::Procd(script) => format!("{script} stop; {script} disable"),
            Self::Background { config, .. } => format!("ropewalk down {}", config.display()),
        }
    }

    /// Starts the daemon, and waits until it answers.
    ///
    /// # Errors
    /// It does not start; the text says where its log is.
    pub(super) fn start(&self, interface: &str) -> Result<(), String> {
        let log = match self {
            Self::Systemd(unit) => {
                host::run(&words(&["systemctl", "enable", "--now", unit]))?;
                format!("`journalctl -u {unit}` shows why")
            }
            Self::Procd(script) => {
                host::run(&words(&[script, "enable"]))?;
                host::run(&words(&[script, "start"]))?;
                "`logread -e ropewalk` shows why".to_owned()
            }
            Self::Background { program, config, log } => {
                let open = OpenOptions::new().create(true).append(true).open(log);
                let output = open.map_err(|error| format!("{}: {error}", log.display()))?;
                let stderr = output.try_clone().map_err(|error| error.to_string())?;
                let mut command = Command::new(program);
                command.arg("up").arg(config).stdin(Stdio::null()).stdout(output).stderr(stderr).process_group(0);
                command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
                format!("{} says why", log.display())
            }
        };
        if wait(|| Client::new(&runtime_directory(), interface).status().is_ok()) {
            return Ok(());
        }
        Err(format!("the daemon does not start: {log}"))
    }

    /// Stops the daemon, and waits for its end.
    pub(super) fn stop(&self, interface: &str) -> Result<(), String> {
        match self {
            Self::Systemd(unit) => host::run(&words(&["systemctl", "disable", "--now", unit])),
            Self::Procd(script) => {
                host::run(&words(&[script, "stop"]))?;
                host::run(&words(&[script, "disable"]))
            }
            Self::Background { .. } => {
                let directory = runtime_directory();
                let Some(state) = running_tunnel(&directory, interface) else { return Ok(()) };
                let _ = Client::new(&directory, interface).request("POST", "/v1/down", "");
                if !wait(|| !state.is_alive()) {
                    return Err(format!("the process {} of {interface} does not end", state.pid));
                }
                // The user that it has become could not remove them.
                let folder = RunFolder::open(&directory).and_then(|folder| StateFile::remove(&folder, interface));
                folder.map_err(|error| error.to_string())?;
                let _ = fs::remove_dir(directory);
                Ok(())
            }
        }
    }
}

/// The program that this is.
pub(super) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ropewalk"))
}

/// Waits for a condition; whether it became true.
pub(super) fn wait(mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > TIMEOUT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

/// The unit if no package has brought it, and what goes with it.
fn systemd_steps(unit: &str, start: &[Vec<String>], stop: &[Vec<String>]) -> Vec<Step> {
    let reload = words(&["systemctl", "daemon-reload"]);
    let mut steps = vec![Step::AtRemoval(Undo::Command(reload.clone()))];
    let has_unit = UNIT_FOLDERS.iter().any(|folder| Path::new(folder).join("ropewalk@.service").exists());
    if !has_unit {
        let text = UNIT.replace("/usr/bin/ropewalk", &own_program().display().to_string());
        steps.push(Step::File(NewFile::of_root("/etc/systemd/system/ropewalk@.service", 0o644, text)));
    }
    let folder = PathBuf::from(format!("/etc/systemd/system/{unit}.service.d"));
    let line = |key: &'static str, prefix: &'static str| {
        move |command: &Vec<String>| {
            let program = host::program(&command[0]).unwrap_or_else(|| PathBuf::from(&command[0]));
            let arguments: Vec<_> = command[1..].iter().map(|word| quoted(word)).collect();
            format!("{key}={prefix}{} {}\n", program.display(), arguments.join(" "))
        }
    };
    let lines = start.iter().map(line("ExecStartPre", "+")).chain(stop.iter().map(line("ExecStopPost", "-+")));
    let lines: String = lines.collect();
    if !lines.is_empty() {
        let text = format!("# Of `ropewalk setup`.\n[Service]\n{lines}");
        steps.push(Step::Folder { path: folder.clone(), mode: 0o755, owner: None });
        steps.push(Step::File(NewFile::of_root(folder.join("setup.conf"), 0o644, text)));
    }
    steps.push(Step::Command { run: reload, undo: None });
    steps
}

/// A word of a unit's command line, or of a shell's.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | ':' | '@' | ',' | '=');
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{word}'") }
}

/// The folder of the history on OpenWrt, in memory: it is written every minute, which wears flash out.
pub(super) const OPENWRT_STATE: &str = "/tmp/ropewalk";

/// OpenWrt's script (its guide "procd init scripts").
fn procd_script(config: &Path, start: &[Vec<String>], stop: &[Vec<String>]) -> String {
    let lines = |commands: &[Vec<String>]| -> String {
        let line = |command: &Vec<String>| {
            let line: Vec<_> = command.iter().map(|word| quoted(word)).collect();
            format!("\t{}\n", line.join(" "))
        };
        commands.iter().map(line).collect()
    };
    format!(
        "#!/bin/sh /etc/rc.common\n# Of `ropewalk setup`.\nSTART=95\nSTOP=10\nUSE_PROCD=1\n\nstart_service() {{\n{}\
         \tmkdir -p -m 0700 {OPENWRT_STATE}\n\tprocd_open_instance\n\tprocd_set_param command {} up {}\n\
         \tprocd_set_param env STATE_DIRECTORY={OPENWRT_STATE}\n\tprocd_set_param respawn\n\
         \tprocd_set_param stderr 1\n\tprocd_close_instance\n}}\n\nstop_service() {{\n{}\ttrue\n}}\n",
        lines(start),
        own_program().display(),
        config.display(),
        lines(stop)
    )
}
