//! The command that restarts a daemon, which depends on what started it.

use std::fs;

/// The command that restarts the tunnel `interface`, whose daemon is the process `pid`: `systemctl`, if it is the main
/// process of one of our units.
#[must_use]
pub fn restart_command(interface: &str, pid: u32) -> String {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    match unit(&groups) {
        Some(unit) => format!("`systemctl restart {unit}`"),
        None => format!("`ropewalk down {interface}`, then `up`"),
    }
}

/// The unit `ropewalk@NAME` that a process belongs to, by its control groups (`/proc/PID/cgroup`, cgroups(7)).
fn unit(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let unit = line.rsplit('/').next()?.strip_suffix(".service")?;
        unit.starts_with("ropewalk@").then_some(unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_of_the_unit_is_restarted_by_systemd_and_one_of_a_shell_is_not() {
        let system = "0::/system.slice/system-ropewalk.slice/ropewalk@rw0.service\n";
        assert_eq!(unit(system), Some("ropewalk@rw0"));
        let hybrid = "1:name=systemd:/system.slice/system-ropewalk.slice/ropewalk@rw0.service\n0::/\n";
        assert_eq!(unit(hybrid), Some("ropewalk@rw0"));
        for shell in ["0::/user.slice/user-0.slice/session-3.scope\n", "0::/system.slice/cron.service\n", "0::/\n", ""]
        {
            assert_eq!(unit(shell), None, "{shell}");
        }
        assert_eq!(restart_command("rw0", u32::MAX), "`ropewalk down rw0`, then `up`");
    }
}
