//! The properties of this host: uplinks, addresses, programs, users, the init system.

use ipnet::IpNet;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use zeroize::Zeroizing;

/// A device's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceAddress {
    pub(super) device: String,
    pub(super) network: IpNet,
}

/// The addresses of all devices that are up, without loopback and link-local ones.
pub(super) fn addresses() -> Vec<DeviceAddress> {
    let entries = getifaddrs().into_iter().flatten();
    let up = entries.filter(|entry| {
        entry.flags.contains(InterfaceFlags::IFF_UP) && !entry.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    });
    up.filter_map(|entry| {
        let ip = |storage: &nix::sys::socket::SockaddrStorage| {
            let v4 = storage.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            v4.or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        };
        let (address, mask) = (ip(entry.address.as_ref()?)?, ip(entry.netmask.as_ref()?)?);
        let is_link_local = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let network = IpNet::with_netmask(address, mask).ok()?;
        (!is_link_local).then_some(DeviceAddress { device: entry.interface_name, network })
    })
    .collect()
}

/// Whether the address is of a kind that hosts elsewhere can reach.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            !(address.is_private() || is_shared || address.is_loopback() || address.is_link_local())
                && !(address.is_unspecified() || address.is_multicast() || address == Ipv4Addr::BROADCAST)
        }
        IpAddr::V6(address) => is_global_unicast(address),
    }
}

/// 2000::/3 (RFC 4291).
fn is_global_unicast(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xe000 == 0x2000
}

/// The path of a program, from `PATH` and the folders of system programs.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The output of a program; `None` if it does not exist or fails.
pub(super) fn output(command: &[&str]) -> Option<String> {
    let mut process = Command::new(program(command[0])?);
    let output = process.args(&command[1..]).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether this is OpenWrt, whose `/var` is lost at a restart.
pub(super) fn is_openwrt() -> bool {
    Path::new("/etc/openwrt_release").exists()
}

/// Runs a command.
///
/// # Errors
/// The output of the command, or the reason why it did not start.
pub(super) fn run(command: &[String]) -> Result<(), String> {
    let line = command.join(" ");
    let path = program(&command[0]).unwrap_or_else(|| PathBuf::from(&command[0]));
    let output = Command::new(path).args(&command[1..]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("`{line}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).trim().to_owned());
    Err(format!("`{line}`: {}", text.into_iter().find(|text| !text.is_empty()).unwrap_or(output.status.to_string())))
}

/// Runs a command with this on its standard input.
///
/// # Errors
/// As [`run`].
pub(super) fn run_with_input(command: &[&str], input: &str) -> Result<(), String> {
    let line = command.join(" ");
    let to_error = |error: std::io::Error| format!("`{line}`: {error}");
    let path = program(command[0]).unwrap_or_else(|| PathBuf::from(command[0]));
    let mut process = Command::new(path);
    process.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = process.spawn().map_err(to_error)?;
    // A program that has failed reads no more; its error is handled below.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(to_error)?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{line}`: {}", text.lines().next().unwrap_or("it fails").trim()))
}

/// Asks `Continue?`, and returns whether the answer is yes.
pub(super) fn confirm() -> bool {
    ask("\nContinue? [y/N] ").is_ok_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Asks a question, and returns whether the answer is yes; `default` is the answer of an empty line.
pub(super) fn is_agreed(question: &str, default: bool) -> bool {
    let answer = ask(&format!("{question} [{}] ", if default { "Y/n" } else { "y/N" }));
    answer.is_ok_and(|answer| match answer.trim() {
        "" => default,
        answer => matches!(answer, "y" | "Y" | "yes"),
    })
}

/// The maximum length of an answer, bytes.
const MAX_ANSWER_LEN: u64 = 8192;

/// A line of standard input, which may be a secret. On a terminal the user is asked for it.
pub(super) fn ask(question: &str) -> io::Result<Zeroizing<String>> {
    if io::stdin().is_terminal() {
        let _ = write!(io::stderr(), "{question}");
    }
    // The buffer does not grow: no copy of a secret stays behind.
    let mut answer = Zeroizing::new(String::with_capacity(MAX_ANSWER_LEN as usize + 64));
    io::stdin().lock().take(MAX_ANSWER_LEN).read_line(&mut answer)?;
    Ok(answer)
}

/// The host's name, as it is set.
pub(super) fn name() -> String {
    nix::unistd::gethostname().map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_shared_and_local_addresses_are_not_public() {
        for text in ["10.0.0.1", "192.168.1.1", "172.20.0.1", "100.64.0.1", "127.0.0.1", "fd00::1", "fe80::1", "::1"] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["203.0.113.1", "9.9.9.9", "100.128.0.1", "2001:db8::1"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
