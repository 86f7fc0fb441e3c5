//! The diagnosis of a machine: the kernels and programs that the lab finds, and those that are missing.

use crate::guest::Guest;
use crate::guest_kernel::{self, GuestKernel};
use crate::host_kernel::HostKernel;
use crate::protocol::Plan;
use crate::support::{self, Capabilities};
use crate::{Error, testbed};
use serde::Serialize;
use std::path::Path;

/// A program that the lab calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The name of the program.
    pub name: &'static str,
    /// The Debian package that contains it.
    pub package: &'static str,
    /// The lab's use of it.
    pub purpose: &'static str,
}

/// Everything that the lab calls. `cargo xtask packages` installs the packages.
const PROGRAMS: &[Program] = &[
    Program { name: "linux", package: "user-mode-linux", purpose: "User-Mode Linux" },
    Program { name: "modprobe", package: "kmod", purpose: "its modules" },
    Program { name: "mount", package: "mount", purpose: "its file systems" },
    Program { name: "ip", package: "iproute2", purpose: "hosts, links, routes" },
    Program { name: "tc", package: "iproute2", purpose: "rates, queues, delays, losses" },
    Program { name: "ethtool", package: "ethtool", purpose: "devices without offloads" },
    Program { name: "sysctl", package: "procps", purpose: "TCP's settings" },
    Program { name: "timeout", package: "coreutils", purpose: "commands that wait" },
    Program { name: "tcpdump", package: "tcpdump", purpose: "`--capture`, if there is no dumpcap" },
    Program { name: "nice", package: "coreutils", purpose: "priority in real time" },
    Program { name: "iperf3", package: "iperf3", purpose: "`--traffic iperf3`" },
    Program { name: "mptcpize", package: "mptcpize", purpose: "such programs with MPTCP" },
    Program { name: "vsftpd", package: "vsftpd", purpose: "`--traffic ftp`: the server" },
    Program { name: "wget", package: "wget", purpose: "`--traffic ftp`: the client" },
    Program { name: "grep", package: "grep", purpose: "the wait for a tunnel" },
];

/// A backend of the lab, as `--on NAME` selects it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BackendReport {
    /// `uml` or `netns`.
    pub name: &'static str,
    /// The reason why the backend cannot run; none if it can.
    #[serde(rename = "fault")]
    pub unavailable_reason: Option<String>,
    /// The kernel's release: `6.1.176`.
    pub release: Option<String>,
    /// The kernel's program, for User-Mode Linux.
    pub program: Option<String>,
    /// Whether the kernel runs in virtual time.
    pub virtual_time: bool,
    /// Congestion controls, by the kernel's names.
    pub congestion: Vec<String>,
    /// Congestion controls that Ropewalk's eBPF programs add to them, by the registry's names.
    pub programs: Vec<&'static str>,
    /// The reason why there are none.
    #[serde(rename = "programs_fault")]
    pub programs_unavailable_reason: Option<String>,
    /// Multipath TCP.
    pub mptcp: bool,
    /// TUN devices, which tunnels need.
    pub tun: bool,
    /// The queue discipline netem; without it links are emulated.
    pub netem: bool,
    /// IPv6.
    pub ipv6: bool,
    /// 1/HZ, ms, if it is known.
    pub tick_ms: Option<f64>,
    /// Features that it cannot run and another kernel could.
    #[serde(rename = "lacks")]
    pub unsupported: Vec<&'static str>,
}

/// The kernels and programs that the lab finds on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// User-Mode Linux, then the machine's own kernel.
    pub backends: Vec<BackendReport>,
    /// Installed programs that the lab calls.
    pub present: Vec<Program>,
    /// Missing programs that the lab calls.
    pub missing: Vec<Program>,
    /// Features that only the simulator can run.
    pub simulator_only: &'static [&'static str],
    /// The command that installs what is missing, if there is one.
    #[serde(rename = "remedy")]
    pub install_command: Option<String>,
}

/// Examines this machine; boots a guest if there is a kernel for it. `program` and `agent` are as for
/// [`Lab::find`](crate::Lab::find).
#[must_use]
pub fn doctor(program: &str, agent: &str) -> Diagnosis {
    let backends = vec![guest(program, agent), host()];
    let (present, missing): (Vec<Program>, Vec<Program>) =
        PROGRAMS.iter().partition(|program| is_installed(program, &backends[0]));
    let machine = Machine::probe();
    let install_command = install_command(&missing, &backends[0], machine);
    Diagnosis { backends, present, missing, simulator_only: support::SIMULATOR_ONLY, install_command }
}

/// Whether a program or its substitute is installed: a kernel may have any name.
fn is_installed(program: &Program, guest: &BackendReport) -> bool {
    let has_substitute = match program.name {
        "linux" => guest.program.is_some(),
        "tcpdump" => guest_kernel::on_path("dumpcap").is_some(),
        _ => false,
    };
    has_substitute || guest_kernel::on_path(program.name).is_some()
}

fn guest(program: &str, agent: &str) -> BackendReport {
    let kernel = match GuestKernel::find() {
        Ok(kernel) => kernel,
        Err(error) => {
            return BackendReport {
                name: "uml",
                unavailable_reason: Some(error.to_string()),
                ..BackendReport::default()
            };
        }
    };
    let unavailable_reason = boot(&kernel, program, agent).err().map(|error| error.to_string());
    BackendReport {
        unavailable_reason,
        release: Some(kernel.version.clone()),
        program: Some(kernel.program.display().to_string()),
        virtual_time: kernel.is_virtual,
        ..report("uml", &kernel.capabilities)
    }
}

/// The machine's own kernel: what can be seen without root is reported; a missing capability is the reason why the backend
/// is unavailable.
fn host() -> BackendReport {
    let possible = testbed::possible();
    let host = HostKernel::probe(possible.is_ok());
    BackendReport {
        unavailable_reason: possible.err(),
        release: Some(host.version),
        ..report("netns", &host.capabilities)
    }
}

fn report(name: &'static str, capabilities: &Capabilities) -> BackendReport {
    BackendReport {
        name,
        congestion: capabilities.congestion_controls.clone(),
        programs: added_programs(capabilities),
        programs_unavailable_reason: capabilities.programs.unavailable_reason.clone(),
        mptcp: capabilities.mptcp,
        tun: capabilities.tun,
        netem: capabilities.netem,
        ipv6: capabilities.ipv6,
        tick_ms: capabilities.jiffy.map(|tick| tick.as_secs_f64() * 1e3),
        unsupported: support::unsupported(capabilities),
        ..BackendReport::default()
    }
}

/// The programs for algorithms that the kernel lacks.
fn added_programs(capabilities: &Capabilities) -> Vec<&'static str> {
    let is_added = |name: &&str| !capabilities.congestion_controls.iter().any(|own| own == name);
    capabilities.programs.names.iter().map(|(name, _)| *name).filter(is_added).collect()
}

/// Boots a guest that sets up a link and does nothing else: a kernel that may not run here, or has no modules, shows
/// it.
fn boot(kernel: &GuestKernel, program: &str, agent: &str) -> Result<(), Error> {
    let folder = tempfile::Builder::new().prefix("ropewalk-lab-").tempdir().map_err(Error::failed)?;
    let agent = [program, agent].map(str::to_owned);
    let mut setup =
        vec!["ip link add v0 type veth peer name v1", "tc qdisc add dev v0 root tbf rate 1mbit burst 2kb limit 9kb"];
    setup.extend(kernel.capabilities.netem.then_some("tc qdisc add dev v1 root netem delay 1ms"));
    setup.extend(kernel.capabilities.ipv6.then_some("sysctl -n net.ipv6.conf.all.forwarding"));
    setup.extend(kernel.capabilities.tun.then_some("ip tuntap add t0 mode tun"));
    let setup: Vec<String> = setup.into_iter().map(str::to_owned).collect();
    Guest::new(kernel, folder.path()).run(&agent, &setup, &Plan::default()).map(drop)
}

/// The properties of the machine that determine the command.
#[derive(Clone, Copy, Debug)]
struct Machine {
    root: bool,
    debian: bool,
    /// Whether the working directory is a checkout of Ropewalk.
    checkout: bool,
}

impl Machine {
    fn probe() -> Self {
        Self {
            root: nix::unistd::Uid::effective().is_root(),
            debian: Path::new("/etc/debian_version").exists(),
            checkout: ["xtask/Cargo.toml", "lab/Cargo.toml"].iter().all(|file| Path::new(file).is_file()),
        }
    }
}

/// Missing packages, then the kernel with virtual time and MPTCP, which Debian's lacks.
fn install_command(missing: &[Program], guest: &BackendReport, machine: Machine) -> Option<String> {
    let mut packages: Vec<&str> = missing.iter().map(|program| program.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let kernel = machine.checkout && !(guest.virtual_time && guest.mptcp);
    match (packages.is_empty(), machine) {
        (true, _) => kernel.then(|| "cargo xtask kernel".to_owned()),
        (_, Machine { root: true, debian: true, checkout: true }) => Some("cargo xtask setup".to_owned()),
        (_, Machine { root, debian: true, .. }) => {
            let sudo = if root { "" } else { "sudo " };
            let packages = packages.join(" ");
            let kernel_command = if kernel { " && cargo xtask kernel" } else { "" };
            Some(format!("{sudo}apt-get install --yes --no-install-recommends {packages}{kernel_command}"))
        }
        (false, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVELOPER: Machine = Machine { root: true, debian: true, checkout: true };

    fn kernel_with_all_features() -> BackendReport {
        BackendReport { virtual_time: true, mptcp: true, ..BackendReport::default() }
    }

    #[test]
    fn one_command_installs_all_that_is_missing() {
        assert_eq!(install_command(&[], &kernel_with_all_features(), DEVELOPER), None);
        assert_eq!(install_command(&[], &BackendReport::default(), DEVELOPER).unwrap(), "cargo xtask kernel");
        let command = install_command(PROGRAMS, &BackendReport::default(), DEVELOPER).unwrap();
        assert_eq!(command, "cargo xtask setup");
        let elsewhere = Machine { checkout: false, ..DEVELOPER };
        assert_eq!(
            install_command(&[], &BackendReport::default(), elsewhere),
            None,
            "there is nothing to build it from"
        );
        let ip_packages = &PROGRAMS[3..5];
        let install = "apt-get install --yes --no-install-recommends iproute2";
        assert_eq!(
            install_command(ip_packages, &kernel_with_all_features(), elsewhere).unwrap(),
            install,
            "a package once"
        );
        let user = Machine { root: false, ..elsewhere };
        assert_eq!(install_command(ip_packages, &kernel_with_all_features(), user).unwrap(), format!("sudo {install}"));
        assert_eq!(
            install_command(ip_packages, &kernel_with_all_features(), Machine { debian: false, ..elsewhere }),
            None
        );
    }

    #[test]
    fn what_is_found_agrees_with_itself() {
        let diagnosis = doctor("/bin/false", "");
        assert_eq!(diagnosis.backends.iter().map(|backend| backend.name).collect::<Vec<_>>(), ["uml", "netns"]);
        assert!(diagnosis.backends[0].unavailable_reason.is_some(), "a guest whose agent does nothing has no answer");
        assert!(diagnosis.backends[1].congestion.iter().any(|name| name == "reno"), "Linux always has it");
        assert!(diagnosis.present.iter().all(|program| !diagnosis.missing.contains(program)));
    }
}
