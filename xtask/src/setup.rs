//! `cargo xtask setup`: what the tests need beside the Rust toolchain.

use crate::shell;
use std::path::Path;

/// A Debian package that some test needs.
#[derive(Debug, PartialEq)]
struct Package {
    name: &'static str,
    /// The program by which we see that it is there.
    command: &'static str,
    why: &'static str,
}

/// What tests compare with. Where it is missing, they say so and are skipped.
const PACKAGES: &[Package] = &[Package { name: "ns2", command: "ns", why: "an independent simulator" }];

/// Components of the toolchain: what `cargo` calls them, what `rustup` calls them.
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

/// Installs what is missing where that is possible, and otherwise says how to.
pub(crate) fn run() -> Result<(), String> {
    components()?;
    let missing = missing(PACKAGES, on_path);
    if missing.is_empty() {
        return shell::say("setup: nothing is missing\n");
    }
    for package in &missing {
        shell::say(&format!("setup: `{}` is missing ({})\n", package.command, package.why))?;
    }
    let install = install_line(&missing);
    let root_on_debian = Path::new("/etc/debian_version").exists() && shell::output("id -u")?.trim() == "0";
    if !root_on_debian {
        // The tests that compare with these programs are skipped, and say so.
        return shell::say(&format!("setup can install packages only as root on Debian; there: {install}\n"));
    }
    shell::run("apt-get update")?;
    shell::run(&install)
}

fn components() -> Result<(), String> {
    let missing: Vec<_> = COMPONENTS
        .iter()
        .filter(|(cargo, _)| !shell::succeeds(&format!("cargo {cargo} --version")))
        .map(|(_, rustup)| *rustup)
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("missing: rustup component add {}", missing.join(" "))) }
}

fn missing(packages: &'static [Package], present: impl Fn(&str) -> bool) -> Vec<&'static Package> {
    packages.iter().filter(|package| !present(package.command)).collect()
}

fn install_line(packages: &[&Package]) -> String {
    let names: Vec<_> = packages.iter().map(|package| package.name).collect();
    format!("apt-get install --yes --no-install-recommends {}", names.join(" "))
}

fn on_path(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Package] = &[
        Package { name: "coreutils", command: "ls", why: "is everywhere" },
        Package { name: "iperf3", command: "iperf3", why: "measures kernels" },
    ];

    #[test]
    fn only_what_is_missing_is_installed() {
        let missing = missing(TABLE, |command| command == "ls");
        assert_eq!(missing, [&TABLE[1]]);
        assert_eq!(install_line(&missing), "apt-get install --yes --no-install-recommends iperf3");
    }

    #[test]
    fn a_program_on_the_path_is_found_and_another_is_not() {
        assert!(on_path("cargo"));
        assert!(!on_path("no-program-has-this-name"));
    }
}
