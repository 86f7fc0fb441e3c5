//! Finds the kernel that the lab boots for each run, and reads from its configuration what it can do: User-Mode Linux, or an
//! image for PCs in a virtual machine.

use crate::Error;
use crate::kernel_image;
use crate::processor;
use crate::programs::Programs;
use crate::support::{Capabilities, QDISCS};
use std::path::{Path, PathBuf};
use std::process::Command;
use units::Span;

/// The environment variable that names another kernel than Debian's.
const VARIABLE: &str = "ROPEWALK_LINUX";
/// The kernel that `cargo xtask kernel` builds, relative to the sources' folder.
const BUILT: &str = "target/kernel/linux";
/// Congestion controls whose names differ from those of their configuration options.
const NAMES: [(&str, &str); 1] = [("hstcp", "highspeed")];

/// A kernel that is booted for each run.
#[derive(Clone, Debug)]
pub(crate) struct GuestKernel {
    /// A User-Mode Linux program, or an image.
    pub(crate) program: PathBuf,
    /// Whether it is an image for PCs.
    pub(crate) is_image: bool,
    /// `6.1.176`.
    pub(crate) version: String,
    /// Virtual time: the load of the machine does not change a run. With `CONFIG_UML_TIME_TRAVEL_SUPPORT` the clock stops
    /// while the kernel computes; an image's clock counts instructions.
    pub(crate) is_virtual: bool,
    pub(crate) capabilities: Capabilities,
}

impl GuestKernel {
    /// The kernel that `ROPEWALK_LINUX` names, or the one built here, or `linux` on the path.
    pub(crate) fn find() -> Result<Self, Error> {
        let built = || Some(PathBuf::from(BUILT)).filter(|program| program.is_file());
        let program = match std::env::var_os(VARIABLE) {
            Some(program) => PathBuf::from(program),
            None => built().or_else(|| on_path("linux")).ok_or_else(|| {
                let remedy = "install it (Debian: apt-get install user-mode-linux), or name a kernel in";
                Error::NoKernel(format!("there is no User-Mode Linux here: no program `linux`; {remedy} {VARIABLE}"))
            })?,
        };
        let program = std::path::absolute(&program).unwrap_or(program);
        if kernel_image::is_image(&program) {
            let read = kernel_image::read(&program);
            let (version, configuration) =
                read.map_err(|reason| Error::NoKernel(format!("{}: {reason}", program.display())))?;
            let capabilities = configuration.capabilities();
            return Ok(Self { program, is_image: true, version, is_virtual: true, capabilities });
        }
        let version = output_of(&program, "--version")?.trim().to_owned();
        if !version.starts_with(|first: char| first.is_ascii_digit()) {
            let reason = "is neither User-Mode Linux nor a kernel image for PCs";
            return Err(Error::NoKernel(format!("{} {reason}", program.display())));
        }
        if !processor::can_run(&program) {
            let program = program.display();
            let reason = "does not start on this processor, because it has no room for its AMX registers";
            let remedy = "`cargo xtask kernel` builds one that does";
            return Err(Error::Processor(format!("{program}, User-Mode Linux {version}, {reason}; {remedy}")));
        }
        let configuration = Configuration { text: output_of(&program, "--showconfig")?, has_modules: true };
        let is_virtual = configuration.has("UML_TIME_TRAVEL_SUPPORT");
        let capabilities = configuration.capabilities();
        Ok(Self { program, is_image: false, version, is_virtual, capabilities })
    }
}

/// The build configuration of a kernel.
#[derive(Debug)]
pub(crate) struct Configuration {
    text: String,
    /// Whether modules are loaded too.
    has_modules: bool,
}

impl Configuration {
    /// The configuration of a kernel whose modules are not loaded.
    pub(crate) fn without_modules(text: String) -> Self {
        Self { text, has_modules: false }
    }

    /// Whether the kernel has an option, named without `CONFIG_`.
    pub(crate) fn has(&self, option: &str) -> bool {
        let is_set = |value: &str| value == "y" || (self.has_modules && value == "m");
        self.settings().any(|(key, value)| key == option && is_set(value))
    }

    fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.lines().filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
    }

    /// What the kernel can do.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let name = |word: &str| {
            let word = word.to_lowercase();
            NAMES.iter().find(|(option, _)| *option == word).map_or(word, |(_, name)| (*name).to_owned())
        };
        let options = self.settings().filter_map(|(key, _)| key.strip_prefix("TCP_CONG_").filter(|_| self.has(key)));
        let words = options.filter(|word| *word != "ADVANCED");
        let mut congestion: Vec<String> = words.map(name).chain(["reno".to_owned()]).collect();
        congestion.sort();
        let qdiscs = QDISCS.iter().map(|(name, ..)| *name);
        let hz = self.settings().find_map(|(key, value)| (key == "HZ").then(|| value.parse().ok())?);
        Capabilities {
            default_congestion_controls: congestion.clone(), // `init.sh` allows them
            congestion_controls: congestion,
            programs: Programs::default(), // the lab loads no programs into a guest
            mptcp: self.has("MPTCP"),
            netem: self.has("NET_SCH_NETEM"),
            policer: ["NET_SCH_INGRESS", "NET_CLS_MATCHALL", "NET_ACT_POLICE"].iter().all(|option| self.has(option)),
            qdiscs: qdiscs.filter(|name| self.has(&format!("NET_SCH_{}", name.to_uppercase()))).collect(),
            tun: self.has("TUN"),
            ipv6: self.has("IPV6"),
            jiffy: hz.filter(|hz| *hz > 0).map(|hz: u64| Span(1_000_000_000 / hz)),
        }
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
        let text = "CONFIG_HZ=100\nCONFIG_TCP_CONG_ADVANCED=y\nCONFIG_TCP_CONG_HSTCP=m\nCONFIG_TCP_CONG_CUBIC=y\n# CONFIG_MPTCP is not set\n\
                    CONFIG_TUN=m\nCONFIG_NET_SCH_NETEM=y\nCONFIG_NET_SCH_FQ_CODEL=m\nCONFIG_NET_SCH_CAKE=y\n";
        let kernel = Configuration { text: text.to_owned(), has_modules: true }.capabilities();
        assert_eq!(kernel.jiffy, Some(Span::from_millis(10)));
        assert_eq!(kernel.congestion_controls, ["cubic", "highspeed", "reno"]);
        assert_eq!(kernel.qdiscs, ["fq_codel", "cake"]);
        assert_eq!((kernel.mptcp, kernel.netem, kernel.tun, kernel.ipv6), (false, true, true, false));
        let kernel = Configuration::without_modules(text.to_owned()).capabilities();
        assert_eq!((kernel.congestion_controls, kernel.tun), (["cubic", "reno"].map(str::to_owned).to_vec(), false));
    }
}
