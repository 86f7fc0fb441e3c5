//! Finds User-Mode Linux, and reads from its configuration what it can do.

use crate::Error;
use crate::programs::Programs;
use crate::support::{Capabilities, QDISCS};
use std::path::{Path, PathBuf};
use std::process::Command;
use units::Span;

/// The environment variable that names another kernel than Debian's.
const VARIABLE: &str = "ROPEWALK_LINUX";
/// The kernel that `cargo xtask kernel` builds, relative to the sources' folder.
const BUILT: &str = "target/kernel/linux";
/// User-Mode Linux has HZ=100.
const TICK: Span = Span::from_millis(10);
/// Congestion controls whose names differ from those of their configuration options.
const NAMES: [(&str, &str); 1] = [("hstcp", "highspeed")];

/// A User-Mode Linux program.
#[derive(Clone, Debug)]
pub(crate) struct UmlKernel {
    pub(crate) program: PathBuf,
    /// `6.1.176`.
    pub(crate) version: String,
    /// Virtual time (`CONFIG_UML_TIME_TRAVEL_SUPPORT`): the clock stops while the kernel computes, so that neither its
    /// work nor the load of the machine changes a run.
    pub(crate) is_virtual: bool,
    pub(crate) capabilities: Capabilities,
}

impl UmlKernel {
    /// The kernel that `ROPEWALK_LINUX` names, or the one built here, or `linux` on the path.
    pub(crate) fn find() -> Result<Self, Error> {
        let built = || Some(PathBuf::from(BUILT)).filter(|program| program.is_file());
        let program = match std::env::var_os(VARIABLE) {
            Some(program) => PathBuf::from(program),
            None => built().or_else(|| on_path("linux")).ok_or_else(|| {
                let remedy = "install it (Debian: apt-get install user-mode-linux), or name one in";
                Error::NoKernel(format!("there is no User-Mode Linux here: no program `linux`; {remedy} {VARIABLE}"))
            })?,
        };
        let program = std::path::absolute(&program).unwrap_or(program);
        let version = output_of(&program, "--version")?.trim().to_owned();
        if !version.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(Error::NoKernel(format!("{} is no User-Mode Linux kernel", program.display())));
        }
        let configuration = output_of(&program, "--showconfig")?;
        let is_virtual = configuration.contains("CONFIG_UML_TIME_TRAVEL_SUPPORT=y");
        Ok(Self { program, version, is_virtual, capabilities: capabilities(&configuration) })
    }
}

/// The capabilities of a kernel with this configuration, built in or as modules.
fn capabilities(configuration: &str) -> Capabilities {
    let has =
        |key: &str| ["y", "m"].iter().any(|value| configuration.lines().any(|line| line == format!("{key}={value}")));
    let options =
        configuration.lines().filter_map(|line| line.strip_prefix("CONFIG_TCP_CONG_")?.strip_suffix(['y', 'm']));
    let words = options.filter_map(|option| option.strip_suffix('=')).filter(|word| *word != "ADVANCED");
    let name = |word: &str| {
        let word = word.to_lowercase();
        NAMES.iter().find(|(option, _)| *option == word).map_or(word, |(_, name)| (*name).to_owned())
    };
    let mut congestion: Vec<String> = words.map(name).chain(["reno".to_owned()]).collect();
    congestion.sort();
    let qdiscs = QDISCS.iter().map(|(name, ..)| *name);
    Capabilities {
        default_congestion_controls: congestion.clone(), // `init.sh` allows them
        congestion_controls: congestion,
        programs: Programs::default(), // it has no compiler of eBPF
        mptcp: has("CONFIG_MPTCP"),
        netem: has("CONFIG_NET_SCH_NETEM"),
        policer: ["NET_SCH_INGRESS", "NET_CLS_MATCHALL", "NET_ACT_POLICE"]
            .iter()
            .all(|option| has(&format!("CONFIG_{option}"))),
        qdiscs: qdiscs.filter(|name| has(&format!("CONFIG_NET_SCH_{}", name.to_uppercase()))).collect(),
        tun: has("CONFIG_TUN"),
        ipv6: has("CONFIG_IPV6"),
        jiffy: Some(TICK),
    }
}

/// Finds a program on the path, or in `/usr/sbin` and `/sbin`, which need not be on it.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

fn output_of(program: &Path, option: &str) -> Result<String, Error> {
    let output = Command::new(program).arg(option).output();
    let output = output.map_err(|error| Error::NoKernel(format!("cannot run {}: {error}", program.display())))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_configuration_says_what_it_can_do() {
        let text = "CONFIG_TCP_CONG_ADVANCED=y\nCONFIG_TCP_CONG_HSTCP=m\nCONFIG_TCP_CONG_CUBIC=y\n# CONFIG_MPTCP is not set\n\
                    CONFIG_TUN=m\nCONFIG_NET_SCH_NETEM=y\nCONFIG_NET_SCH_FQ_CODEL=m\nCONFIG_NET_SCH_CAKE=y\n";
        let kernel = capabilities(text);
        assert_eq!(kernel.congestion_controls, ["cubic", "highspeed", "reno"]);
        assert_eq!(kernel.qdiscs, ["fq_codel", "cake"]);
        assert_eq!((kernel.mptcp, kernel.netem, kernel.tun, kernel.ipv6), (false, true, true, false));
    }
}
