//! Starts the daemon and keeps it running: by systemd, by OpenWrt's procd, or else in the background by the setup.

use super::host;
use super::keep;
use super::plan::{NewFile, Step, words};
use super::record::Undo;
use crate::output;
use crate::tunnel::runtime_directory;
use daemon::control_plane::{Client, RunFolder, StateFile, running_tunnel};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The unit, for machines without the program's package.
const UNIT: &str = include_str!("../../../packaging/ropewalk@.service");
/// The unit of `setup keep`.
const KEEP_UNIT: &str = include_str!("../../../packaging/ropewalk-keep@.service");
/// Folders of units that packages install.
const UNIT_FOLDERS: [&str; 4] =
    ["/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
/// The time for the daemon to start or to end.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The service manager of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Service {
    /// The unit `ropewalk@NAME`.
    Systemd(String),
    /// The script `/etc/init.d/ropewalk-NAME`.
    Procd(String),
    /// A process in the background, which is not started at boot.
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
    /// The service manager of this machine: `/run/systemd/system` exists under systemd (sd_booted(3)).
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

    /// The steps before the start.
    pub(super) fn steps(&self, interface: &str, config: &Path) -> Vec<Step> {
        match self {
            Self::Systemd(_) => systemd_steps(),
            Self::Procd(script) => {
                let text = procd_script(interface, config);
                vec![Step::File(NewFile::of_root(script.clone(), 0o755, text))]
            }
            Self::Background { log, .. } => {
                let logs = [log.clone(), keeper_log(interface)];
                logs.map(|log| Step::AtRemoval(Undo::File(log))).into()
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
    /// It does not start; the error says where its log is.
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
                let output = open_log(log)?;
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

    pub(super) fn keeper_description(&self) -> String {
        match self {
            Self::Systemd(unit) => format!("systemctl enable --now {}", keeper_unit(unit)),
            Self::Procd(_) => "`ropewalk setup keep`, by the same script".to_owned(),
            Self::Background { program, .. } => format!("{} setup keep in the background", program.display()),
        }
    }

    /// Starts the keeper of the promises in the record, and waits until it has examined the host.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start_keeper(&self, interface: &str) -> Result<(), String> {
        match self {
            Self::Systemd(unit) => host::run(&words(&["systemctl", "enable", "--now", &keeper_unit(unit)]))?,
            // The script starts both.
            Self::Procd(script) => {
                host::run(&words(&[script, "enable"]))?;
                host::run(&words(&[script, "start"]))?;
            }
            Self::Background { program, .. } => {
                let log = keeper_log(interface);
                let output = open_log(&log)?;
                let stderr = output.try_clone().map_err(|error| error.to_string())?;
                let mut command = Command::new(program);
                command.args(["setup", "keep", interface]).stdin(Stdio::null()).stdout(output).stderr(stderr);
                command.process_group(0).spawn().map_err(|error| format!("{}: {error}", program.display()))?;
            }
        }
        if wait(|| keep::is_running(interface)) {
            keep::look(interface);
            // The tunnel starts anyway.
            let faults = keep::examine(interface)?;
            faults
                .iter()
                .for_each(|fault| output::warn(&format!("problem: {}\n  remedy: {}", fault.text, fault.remedy)));
            return Ok(());
        }
        Err(format!("`ropewalk setup keep {interface}` does not start"))
    }

    /// Stops the keeper, and disables its start at boot.
    ///
    /// # Errors
    /// An error of systemd.
    pub(super) fn stop_keeper(&self, interface: &str) -> Result<(), String> {
        match self {
            Self::Systemd(unit) => host::run(&words(&["systemctl", "disable", "--now", &keeper_unit(unit)])),
            Self::Procd(_) | Self::Background { .. } => {
                keep::end(interface);
                Ok(())
            }
        }
    }

    /// Starts the daemon again, and waits until it answers.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub(super) fn restart(&self, interface: &str) -> Result<(), String> {
        if let Self::Systemd(unit) = self {
            return host::run(&words(&["systemctl", "restart", unit]));
        }
        self.stop(interface)?;
        self.start(interface)
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
                if running_tunnel(&directory, interface).is_none() {
                    return Ok(());
                }
                Client::new(&directory, interface).down().map_err(|error| error.to_string())?;
                // The user that it has become could not remove them.
                let folder = RunFolder::open(&directory).and_then(|folder| StateFile::remove(&folder, interface));
                folder.map_err(|error| error.to_string())?;
                let _ = fs::remove_dir(directory);
                Ok(())
            }
        }
    }
}

/// The path of this program.
pub(super) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ropewalk"))
}

/// Waits for a condition. Returns whether it became true.
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

/// The unit of the keeper that goes with the daemon's.
fn keeper_unit(unit: &str) -> String {
    unit.replacen("ropewalk@", "ropewalk-keep@", 1)
}

/// The keeper's log without systemd.
fn keeper_log(interface: &str) -> PathBuf {
    PathBuf::from(format!("/var/log/ropewalk-keep-{interface}.log"))
}

fn open_log(log: &Path) -> Result<File, String> {
    let open = OpenOptions::new().create(true).append(true).open(log);
    open.map_err(|error| format!("{}: {error}", log.display()))
}

/// The units that no package has installed.
fn systemd_steps() -> Vec<Step> {
    let reload = words(&["systemctl", "daemon-reload"]);
    let mut steps = vec![Step::AtRemoval(Undo::Command(reload.clone()))];
    for (name, text) in [("ropewalk@.service", UNIT), ("ropewalk-keep@.service", KEEP_UNIT)] {
        if !UNIT_FOLDERS.iter().any(|folder| Path::new(folder).join(name).exists()) {
            let text = text.replace("/usr/bin/ropewalk", &own_program().display().to_string());
            steps.push(Step::File(NewFile::of_root(Path::new("/etc/systemd/system").join(name), 0o644, text)));
        }
    }
    steps.push(Step::Command { run: reload, undo: None });
    steps
}

/// The folder of the history on OpenWrt, in memory: it is written every minute, which would wear out flash.
pub(super) const OPENWRT_STATE: &str = "/tmp/ropewalk";

/// OpenWrt's script (its guide "procd init scripts"): the keeper, which begins with the block of an exclusive tunnel, and
/// the daemon. It starts before the network (S20).
fn procd_script(interface: &str, config: &Path) -> String {
    let program = own_program();
    let (program, config) = (program.display(), config.display());
    format!(
        "#!/bin/sh /etc/rc.common\n# Of `ropewalk setup`.\nSTART=19\nSTOP=90\nUSE_PROCD=1\n\nstart_service() {{\n\
         \tprocd_open_instance keep\n\tprocd_set_param command {program} setup keep {interface}\n\
         \tprocd_set_param respawn\n\tprocd_set_param stderr 1\n\tprocd_close_instance\n\
         \tmkdir -p -m 0700 {OPENWRT_STATE}\n\tprocd_open_instance tunnel\n\
         \tprocd_set_param command {program} up {config}\n\
         \tprocd_set_param env STATE_DIRECTORY={OPENWRT_STATE}\n\tprocd_set_param respawn\n\
         \tprocd_set_param stderr 1\n\tprocd_close_instance\n}}\n"
    )
}
