//! `cargo xtask packages`: the Debian packages that the tests need.

use crate::{python, shell};
use std::path::Path;

/// A Debian package that some test needs. Without it the test is skipped.
#[derive(Debug, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    /// The program, or the file with its whole path, by which its presence is checked.
    pub(crate) command: &'static str,
    pub(crate) purpose: &'static str,
}

/// The packages of the lab's guests and of the programs that tests compare with. The simulator and its reports need
/// only Rust.
const PACKAGES: &[Package] = &[
    Package { name: "user-mode-linux", command: "linux", purpose: "the lab: the kernel" },
    Package { name: "kmod", command: "modprobe", purpose: "the lab: the kernel's modules" },
    Package { name: "mount", command: "mount", purpose: "the lab: the guest's file systems" },
    Package { name: "iproute2", command: "tc", purpose: "the lab: paths with rate, delay and loss" },
    Package { name: "nftables", command: "nft", purpose: "the tunnel's tests: firewalls, and the tables of a setup" },
    Package { name: "ethtool", command: "ethtool", purpose: "the lab: devices without offloads" },
    Package { name: "procps", command: "sysctl", purpose: "the lab: TCP's settings" },
    Package { name: "tcpdump", command: "tcpdump", purpose: "the lab: packets on record" },
    Package { name: "tshark", command: "tshark", purpose: "the tests of traces: captures as Wireshark reads them" },
    Package { name: "coreutils", command: "timeout", purpose: "the lab: commands that wait" },
    Package { name: "grep", command: "grep", purpose: "the lab: the output of commands" },
    Package { name: "util-linux", command: "nsenter", purpose: "test beds: programs in their hosts" },
    Package { name: "faketime", command: "faketime", purpose: "the tunnel's tests: clocks that are behind" },
    Package { name: "ansible-core", command: "ansible-playbook", purpose: "the packaging's tests: the role for hosts" },
    Package { name: "nix-bin", command: "nix-instantiate", purpose: "the packaging's tests: the module for NixOS" },
    Package {
        name: "prometheus",
        command: "promtool",
        purpose: "the daemon's metrics: their names, alerts and queries",
    },
    Package { name: "iputils-ping", command: "ping", purpose: "the tunnel's tests: whether a host answers" },
    Package { name: "conntrack", command: "conntrack", purpose: "the tunnel's tests: a carrier that forgets mappings" },
    Package { name: "bash", command: "bash", purpose: "the tunnel's tests: datagrams from a guest" },
    Package { name: "iperf3", command: "iperf3", purpose: "the lab and the tunnel's benchmark: traffic" },
    Package { name: "mptcpize", command: "mptcpize", purpose: "the lab: programs with MPTCP" },
    Package { name: "vsftpd", command: "vsftpd", purpose: "the lab: files by FTP" },
    Package { name: "wget", command: "wget", purpose: "the lab: files by FTP" },
    Package {
        name: "python3",
        command: "python3",
        purpose: "the tunnel's tests: a web server, a second implementation",
    },
    Package { name: "openssh-server", command: "sshd", purpose: "the tunnel's tests: a session" },
    Package { name: "openssh-client", command: "ssh", purpose: "the tunnel's tests: a session" },
    Package { name: "dbus", command: "dbus-daemon", purpose: "the tunnel's tests: NetworkManager's data on uplinks" },
    Package { name: "bpftool", command: "bpftool", purpose: "the eBPF programs' tests: their objects as files" },
    Package { name: "parallel", command: "parallel", purpose: "the recipe of a study on several hosts" },
    Package { name: "autoconf", command: "autoreconf", purpose: "the loader of eBPF programs: its libelf" },
    Package { name: "automake", command: "automake", purpose: "the loader of eBPF programs: its libelf" },
    Package { name: "autopoint", command: "autopoint", purpose: "the loader of eBPF programs: its libelf" },
    Package { name: "bison", command: "bison", purpose: "the loader of eBPF programs: its libelf" },
    Package { name: "flex", command: "flex", purpose: "the loader of eBPF programs: its libelf" },
    Package { name: "gawk", command: "gawk", purpose: "the loader of eBPF programs: its libelf" },
    Package { name: "make", command: "make", purpose: "the loader of eBPF programs: its libelf" },
    Package { name: "pkg-config", command: "pkg-config", purpose: "the loader of eBPF programs: its libelf" },
    Package { name: "clang", command: "clang", purpose: "the objects of eBPF programs, compared with the tree's" },
    Package { name: "llvm", command: "llvm-strip", purpose: "the objects of eBPF programs, compared with the tree's" },
    Package { name: "libbpf-dev", command: "/usr/include/bpf/bpf_helpers.h", purpose: "the sources of eBPF programs" },
    Package { name: "chromium", command: "chromium", purpose: "the dashboard and the site in a browser" },
    Package { name: "runc", command: "runc", purpose: "the image: a container of it" },
    Package { name: "crun", command: "crun", purpose: "the image: a container of it" },
    Package { name: "podman", command: "podman", purpose: "the image: loaded, and a container of it" },
    Package { name: "umoci", command: "umoci", purpose: "the image: unpacked" },
    Package {
        name: "systemd-standalone-sysusers",
        command: "systemd-sysusers",
        purpose: "the Debian package: its user",
    },
    Package { name: "debootstrap", command: "debootstrap", purpose: "booted machines: Debian's file systems" },
    Package { name: "systemd-container", command: "systemd-nspawn", purpose: "booted machines" },
    Package { name: "dnsmasq-base", command: "dnsmasq", purpose: "booted machines: DHCP and DNS of their routers" },
    Package { name: "gpg", command: "gpg", purpose: "the release: its signatures" },
    Package { name: "gpg-agent", command: "gpg-agent", purpose: "the release: its signatures" },
    Package { name: "busybox", command: "busybox", purpose: "OpenWrt: the shell of its scripts" },
    Package { name: "nodejs", command: "node", purpose: "OpenWrt: the form of its web page" },
    Package { name: "npm", command: "npm", purpose: "the dashboard in a browser: axe-core" },
    Package { name: "ns2", command: "ns", purpose: "an independent simulator" },
];

/// The version of axe-core.
const AXE: &str = "4.14.1";

/// Debian's Python makes no virtual environments without it; others have it built in.
const VENV: &[Package] =
    &[Package { name: "python3-venv", command: "no-program-of-its-own", purpose: "the tests' virtual environment" }];

/// The packages of the quick tier, whose purposes are in [`PACKAGES`].
const QUICK: &[&str] = &["iproute2", "procps", "util-linux"];

/// Components of the toolchain: their names for `cargo` and for `rustup`.
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

/// As [`run`], but only the packages of the quick tier.
pub(crate) fn install_quick() -> Result<(), String> {
    install_or_tell(|package| QUICK.contains(&package.name))
}

/// Installs the missing packages if that is possible, and otherwise says how to install them.
pub(crate) fn run() -> Result<(), String> {
    components()?;
    install_or_tell(|_| true)?;
    if !shell::succeeds("python3 -m ensurepip --version") {
        install(VENV)?;
    }
    axe().or_else(|error| shell::print(&format!("axe-core: its tests are skipped; {error}\n")))?;
    // Without a network the tests that need it are skipped.
    python::run().or_else(|error| shell::print(&format!("python: the tests that need it are skipped; {error}\n")))
}

fn install_or_tell(wanted: impl Fn(&Package) -> bool) -> Result<(), String> {
    match install(PACKAGES.iter().filter(|package| wanted(package)))? {
        None => shell::print("packages: nothing is missing\n"),
        Some(by_hand) => shell::print(&format!("packages: tests that need these are skipped; {by_hand}\n")),
    }
}

/// Installs the missing ones of `packages`. If that is not possible, it names them and says how to install them.
pub(crate) fn install(packages: impl IntoIterator<Item = &'static Package>) -> Result<Option<String>, String> {
    let missing = missing(packages, is_installed);
    if missing.is_empty() {
        return Ok(None);
    }
    for package in &missing {
        shell::print(&format!("packages: `{}` is missing ({})\n", package.command, package.purpose))?;
    }
    let install = install_line(&missing);
    let root_on_debian = Path::new("/etc/debian_version").exists() && shell::output("id -u")?.trim() == "0";
    if !root_on_debian {
        return Ok(Some(format!("packages can be installed only as root on Debian; there: {install}")));
    }
    shell::run("apt-get update")?;
    shell::run(&install).map(|()| None)
}

/// Fetches axe-core (MPL-2.0), which checks pages in a browser for accessibility. It is only used by tests.
fn axe() -> Result<(), String> {
    let folder = shell::target().join("axe");
    if folder.join("package/axe.min.js").is_file() {
        return Ok(());
    }
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder = folder.display();
    shell::run(&format!("npm pack axe-core@{AXE} --silent --pack-destination {folder}"))?;
    shell::run(&format!("tar -xzf {folder}/axe-core-{AXE}.tgz -C {folder}"))
}

fn components() -> Result<(), String> {
    let missing: Vec<_> = COMPONENTS
        .iter()
        .filter(|(cargo, _)| !shell::succeeds(&format!("cargo {cargo} --version")))
        .map(|(_, rustup)| *rustup)
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("missing: rustup component add {}", missing.join(" "))) }
}

fn missing(
    packages: impl IntoIterator<Item = &'static Package>,
    present: impl Fn(&str) -> bool,
) -> Vec<&'static Package> {
    packages.into_iter().filter(|package| !present(package.command)).collect()
}

fn install_line(packages: &[&Package]) -> String {
    let names: Vec<_> = packages.iter().map(|package| package.name).collect();
    format!("apt-get install --yes --no-install-recommends {}", names.join(" "))
}

/// A program for administrators counts as present even if it is not on an ordinary user's path.
fn is_installed(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.into_iter().any(|folder| folder.join(command).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Package] = &[
        Package { name: "coreutils", command: "ls", purpose: "is everywhere" },
        Package { name: "iperf3", command: "iperf3", purpose: "measures kernels" },
    ];

    #[test]
    fn only_what_is_missing_is_installed() {
        let missing = missing(TABLE, |command| command == "ls");
        assert_eq!(missing, [&TABLE[1]]);
        assert_eq!(install_line(&missing), "apt-get install --yes --no-install-recommends iperf3");
    }

    /// The programs of `ropewalk doctor` are rows of a table in its source.
    #[test]
    fn every_program_that_the_lab_calls_is_in_the_list() {
        let source = include_str!("../../lab/src/doctor.rs");
        let rows: Vec<&str> = source.lines().filter(|line| line.trim_start().starts_with("Program { name:")).collect();
        assert!(rows.len() >= 8, "its table is not where it was");
        for row in rows {
            let package = row.split('"').nth(3).unwrap();
            assert!(PACKAGES.iter().any(|known| known.name == package), "{package}");
        }
    }

    #[test]
    fn a_program_on_the_path_is_found_and_another_is_not() {
        assert!(is_installed("cargo") && is_installed("/etc/hosts"));
        assert!(!is_installed("no-program-has-this-name"));
    }
}
