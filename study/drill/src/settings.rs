//! Settings of a script's host: sysctls of its commands, and socket options.

use crate::call::{Call, SocketOption};
use crate::error::ScriptError;
use crate::parse::{Action, Script};

/// Settings for which the machines have Linux's defaults.
const FIXED: [(&str, &str); 6] = [
    ("tcp_pacing_ss_ratio", "200"),
    ("tcp_pacing_ca_ratio", "120"),
    ("tcp_recovery", "1"),
    ("tcp_frto", "2"),
    ("tcp_dsack", "1"),
    ("tcp_shrink_window", "0"),
];

/// Settings that commands and socket options change.
pub(crate) struct Settings {
    pub wmem: [u64; 2],
    pub rmem: [u64; 2],
    pub notsent_lowat: u64,
    pub slow_start_after_idle: bool,
    pub early_retrans: bool,
    pub reordering: u32,
    pub pacing: bool,
    pub congestion: Option<(usize, String)>,
    pub ignored: Vec<(usize, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wmem: [16_384, 4_194_304],
            rmem: [131_072, 6_291_456],
            notsent_lowat: u64::MAX,
            slow_start_after_idle: true,
            early_retrans: true,
            reordering: 3,
            pacing: false,
            congestion: None,
            ignored: Vec::new(),
        }
    }
}

impl Settings {
    /// Reads the settings of a script.
    pub(crate) fn read(script: &Script) -> Result<Self, ScriptError> {
        let mut settings = Settings::default();
        for (line, command) in &script.commands {
            command_settings(&mut settings, *line, command)?;
        }
        for event in &script.events {
            if let Action::Call(Call::Option(option)) = &event.action {
                settings.set_option(event.line, option);
            }
        }
        Ok(settings)
    }

    fn set_option(&mut self, line: usize, option: &SocketOption) {
        match option {
            // The kernel doubles them, and then turns autotuning off.
            SocketOption::SendBuffer(bytes) => self.wmem = [2 * bytes; 2],
            SocketOption::ReceiveBuffer(bytes) => self.rmem = [2 * bytes; 2],
            SocketOption::NotsentLowat(bytes) => self.notsent_lowat = *bytes,
            SocketOption::Congestion(name) => self.congestion = Some((line, name.clone())),
        }
    }

    fn set_sysctl(&mut self, line: usize, name: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is not a value of {name}"));
        match name {
            "tcp_slow_start_after_idle" => self.slow_start_after_idle = number()? != 0,
            "tcp_early_retrans" => self.early_retrans = number()? != 0,
            "tcp_reordering" => self.reordering = number()?.clamp(1, 300) as u32,
            "tcp_notsent_lowat" => self.notsent_lowat = number()?,
            "tcp_congestion_control" => self.congestion = Some((line, value.to_owned())),
            _ if FIXED.contains(&(name, value)) => {}
            // Settings that follow from the handshake.
            "tcp_sack" | "tcp_timestamps" | "tcp_ecn" => {}
            "tcp_tso_win_divisor" | "tcp_min_tso_segs" => self.ignored.push((line, name.to_owned())),
            other => return Err(format!("the sysctl `{other}` is not supported")),
        }
        Ok(())
    }

    /// The settings of `defaults.sh` in packetdrill's and in the kernel's own scripts that differ from Linux's defaults.
    fn set_common_defaults(&mut self) {
        self.rmem = [540_000, 15 << 20];
        self.wmem = [256 << 10, 4 << 20];
        self.slow_start_after_idle = false;
    }
}

/// The sysctls of a command, or those of the common `defaults.sh`.
fn command_settings(settings: &mut Settings, line: usize, command: &str) -> Result<(), ScriptError> {
    let command = command.split('#').next().unwrap_or_default();
    let words: Vec<&str> = command.split_whitespace().filter(|word| !word.starts_with('-')).collect();
    let help = "supported are `sysctl -q net.ipv4.tcp_NAME=VALUE`, `defaults.sh` and `tc qdisc add dev tun0 root fq`";
    let fault = |message: String| ScriptError::new(line, message, help);
    match words.split_first() {
        None => Ok(()),
        Some((program, assignments)) if is_file(program, &["sysctl", "set_sysctls.py"]) => {
            assignments.iter().try_for_each(|assignment| {
                let (name, value) =
                    assignment.split_once('=').ok_or_else(|| fault(format!("`{assignment}` sets nothing")))?;
                settings.set_sysctl(line, name.rsplit(['.', '/']).next().unwrap_or(name), value).map_err(fault)
            })
        }
        Some((&"tc", ["qdisc", "add" | "replace", "dev", "tun0", "root", discipline @ ("fq" | "pfifo")])) => {
            settings.pacing = *discipline == "fq";
            Ok(())
        }
        Some((path, [])) if is_file(path, &["defaults.sh"]) => {
            settings.set_common_defaults();
            Ok(())
        }
        _ => Err(fault(format!("the command `{command}` is not supported"))),
    }
}

/// Whether a path ends with one of the names.
fn is_file(path: &str, names: &[&str]) -> bool {
    path.rsplit('/').next().is_some_and(|name| names.contains(&name))
}
