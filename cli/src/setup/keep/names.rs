//! Replaces the uplinks' resolvers by the tunnel's: through systemd-resolved, resolvconf, or `/etc/resolv.conf` itself.

use super::super::host;
use super::examine::{Fault, FaultKind, Wanted, start_command};
use super::{make_folder, run_file};
use daemon::control_plane::private_gateways;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file of the C library's resolver (resolv.conf(5)).
const FILE: &str = "/etc/resolv.conf";
/// The address of systemd-resolved's stub resolver.
const STUB: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 53));
/// The maximum number of resolvers that the C library uses (`MAXNS`).
const MAX_RESOLVERS: usize = 3;

/// The manager of this host's resolvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Resolved,
    Resolvconf,
    File,
}

fn manager() -> Manager {
    if uses_resolved() {
        Manager::Resolved
    } else if has_resolvconf() {
        Manager::Resolvconf
    } else {
        Manager::File
    }
}

/// Whether programs ask systemd-resolved: by its file, or by its module of the C library while it runs.
fn uses_resolved() -> bool {
    if fs::read_link(FILE).is_ok_and(|target| target.to_string_lossy().contains("/systemd/resolve/")) {
        return true;
    }
    let text = fs::read_to_string(FILE).unwrap_or_default();
    let is_asked = || {
        let switch = fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
        let hosts = switch.lines().find_map(|line| line.trim().strip_prefix("hosts:"));
        hosts.is_some_and(|hosts| hosts.split_whitespace().any(|word| word == "resolve"))
    };
    (resolvers(&text).contains(&STUB) || is_asked()) && host::output(&["resolvectl", "status"]).is_some()
}

/// Whether there is a separate resolvconf: systemd-resolved installs a link of that name to its own program.
fn has_resolvconf() -> bool {
    let program = host::program("resolvconf").and_then(|path| fs::canonicalize(path).ok());
    program.is_some_and(|path| path.file_name().is_none_or(|name| name != "resolvectl"))
}

/// The name of the earlier file, while the tunnel's file is in place.
fn backup(interface: &str) -> PathBuf {
    PathBuf::from(format!("{FILE}.before-{interface}"))
}

fn header(interface: &str) -> String {
    format!("# Of the tunnel {interface} (ropewalk); the earlier file is {}.", backup(interface).display())
}

fn is_own(text: &str, interface: &str) -> bool {
    text.lines().next() == Some(&header(interface))
}

/// Notes that a manager was given the tunnel's resolvers. The note is lost at a restart of this host, as are the managers'
/// settings.
fn note_file(interface: &str) -> PathBuf {
    run_file(interface, "resolvers")
}

fn is_wanted(wanted: &Wanted) -> bool {
    wanted.takes_all && !wanted.promises.client.dns.is_empty() && wanted.has_device()
}

/// Whether the resolvers differ from the wanted ones.
pub(super) fn fault(wanted: &Wanted) -> Option<Fault> {
    let interface = &wanted.interface;
    let text = fs::read_to_string(FILE).unwrap_or_default();
    let fault = |kind, text: &str| Fault {
        kind,
        is_expected: true,
        text: text.to_owned(),
        remedy: format!("{} sets it", start_command(interface)),
    };
    if !is_wanted(wanted) {
        let is_left = is_own(&text, interface) || note_file(interface).exists();
        return is_left.then(|| fault(FaultKind::NamesRestore, "the tunnel's resolvers are still set"));
    }
    let servers = &wanted.promises.client.dns;
    let is_right = match manager() {
        // While it restarts, it cannot be configured.
        Manager::Resolved => resolved_has("dns", interface).is_none_or(|words| {
            servers.iter().all(|server| words.contains(&server.to_string()))
                && resolved_has("domain", interface).is_none_or(|words| words.contains(&"~.".to_owned()))
        }),
        Manager::Resolvconf => resolvers(&text).first().is_some_and(|first| servers.contains(first)),
        Manager::File => is_own(&text, interface),
    };
    let asked: Vec<_> = resolvers(&text).iter().map(ToString::to_string).collect();
    let problem = format!(
        "names are resolved at {}, outside the tunnel, and not at all if that uplink fails",
        if asked.is_empty() { "no resolver".into() } else { asked.join(", ") }
    );
    (!is_right).then(|| fault(FaultKind::Names, &problem))
}

/// The resolvers or the domains that systemd-resolved has for a device; `None` if it does not answer.
fn resolved_has(what: &str, interface: &str) -> Option<Vec<String>> {
    let text = host::output(&["resolvectl", what, interface])?;
    Some(text.split_whitespace().map(str::to_owned).collect())
}

/// The resolvers of a file.
fn resolvers(text: &str) -> Vec<IpAddr> {
    let address = |line: &str| line.trim().strip_prefix("nameserver")?.trim().split('%').next()?.parse().ok();
    text.lines().filter_map(address).collect()
}

/// Sets the tunnel's resolvers.
pub(super) fn set(wanted: &Wanted) -> Result<(), String> {
    let interface = &wanted.interface;
    let servers: Vec<_> = wanted.promises.client.dns.iter().map(ToString::to_string).collect();
    let manager = manager();
    if manager != Manager::File {
        let noted = make_folder().and_then(|()| fs::write(note_file(interface), ""));
        noted.map_err(|error| format!("{}: {error}", note_file(interface).display()))?;
    }
    match manager {
        Manager::Resolved => {
            let words = ["resolvectl", "dns", interface].into_iter().chain(servers.iter().map(String::as_str));
            host::run(&words.map(str::to_owned).collect::<Vec<_>>())?;
            host::run(&["resolvectl", "domain", interface, "~."].map(str::to_owned))
        }
        Manager::Resolvconf => {
            let lines: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
            host::run_with_input(&["resolvconf", "-a", &resolvconf_name(interface), "-m", "0", "-x"], &lines)
        }
        Manager::File => write(wanted, &servers).map_err(|error| format!("{FILE}: {error}")),
    }
}

/// Debian's resolvconf prefers names that begin with `tun`, as its list of preferences says.
fn resolvconf_name(interface: &str) -> String {
    let has_order = Path::new("/etc/resolvconf/interface-order").exists();
    if has_order { format!("tun.{interface}") } else { interface.to_owned() }
}

/// Writes the file, and keeps the earlier one. Its resolvers follow the tunnel's, and then the uplinks' routers: the
/// daemon's own lookups need them while the tunnel is down.
fn write(wanted: &Wanted, servers: &[String]) -> io::Result<()> {
    let backup = backup(&wanted.interface);
    let earlier = fs::read_to_string(FILE);
    let is_kept = earlier.as_ref().is_ok_and(|text| is_own(text, &wanted.interface));
    let is_there = fs::symlink_metadata(FILE).is_ok();
    let is_mount = !is_kept && is_there && link(&backup).is_err();
    if is_mount {
        // A container's file, which is mounted, can only be overwritten.
        fs::copy(FILE, &backup)?;
    }
    let earlier = fs::read_to_string(&backup).unwrap_or_default();
    let mut text = format!("{}\n", header(&wanted.interface));
    let earlier_resolvers = resolvers(&earlier).into_iter().map(|address| address.to_string());
    let mut all: Vec<String> = servers.to_vec();
    // The first uplink's resolvers may be gone with it: most routers are resolvers too.
    let routers = private_gateways().unwrap_or_default().into_iter().map(|address| address.to_string());
    for address in earlier_resolvers.chain(routers) {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    all.iter().take(MAX_RESOLVERS).for_each(|address| text += &format!("nameserver {address}\n"));
    let is_other = |line: &&str| !line.trim().starts_with("nameserver") && !line.starts_with('#');
    earlier.lines().filter(is_other).for_each(|line| text += &format!("{line}\n"));
    if is_mount {
        return fs::write(FILE, text);
    }
    let new = format!("{FILE}.ropewalk-new");
    let _ = fs::remove_file(&new);
    let mut file = File::create_new(&new)?;
    // All users read it, whatever the umask of the caller.
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())?;
    fs::rename(new, FILE)
}

/// A second name for the file, or for the symbolic link that it is. The file keeps its own name until the new file takes it
/// over, so a program that looks up a name at that moment finds one of them.
fn link(backup: &Path) -> io::Result<()> {
    match fs::remove_file(backup) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::hard_link(FILE, backup),
    }
}

/// Restores the earlier resolvers, if the tunnel's are set.
pub(super) fn restore(interface: &str) -> Result<(), String> {
    if fs::remove_file(note_file(interface)).is_ok() {
        // A manager that no longer exists has forgotten them, as systemd-resolved has with the device.
        match manager() {
            Manager::Resolved => drop(host::output(&["resolvectl", "revert", interface])),
            Manager::Resolvconf => drop(host::output(&["resolvconf", "-d", &resolvconf_name(interface), "-f"])),
            Manager::File => {}
        }
    }
    let backup = backup(interface);
    let is_own = fs::read_to_string(FILE).is_ok_and(|text| is_own(&text, interface));
    let result = match (is_own, fs::symlink_metadata(&backup).is_ok()) {
        (true, true) => fs::rename(&backup, FILE).or_else(|_| fs::copy(&backup, FILE).map(drop)),
        (true, false) => fs::remove_file(FILE),
        // Somebody has changed the file since then.
        (false, true) => fs::remove_file(&backup),
        (false, false) => Ok(()),
    };
    result.map_err(|error| format!("{FILE}: {error}"))
}
