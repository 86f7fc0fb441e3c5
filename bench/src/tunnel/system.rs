//! The systems under test: how each is started on a testbed, and at which address its far end answers.

use super::cpu_accounting::CpuAccounting;
use super::testbed::{RIGHT, Testbed};
use super::{baselines, ropewalk};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Child;

/// A system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// TCP over the first link.
    Raw,
    /// The tunnel, encrypted.
    Ropewalk,
    /// The tunnel in `mpt` mode, in the clear.
    Mpt,
    /// wireguard-go, in user space.
    WireGuardGo,
    /// OpenVPN over UDP.
    OpenVpn,
    /// The kernel's MPTCP.
    Mptcp,
}

/// Programs of this workspace that a benchmark starts.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) ropewalk: PathBuf,
    pub(super) agent: PathBuf,
}

impl Programs {
    pub(super) fn find() -> Result<Self, String> {
        let release = crate::shell::release_folder()?;
        let programs = Self { ropewalk: release.join("ropewalk"), agent: release.join("ropewalk-lab-agent") };
        if !crate::shell::succeeds("iperf3 --version") {
            return Err("iperf3 is missing: apt-get install iperf3".to_owned());
        }
        std::fs::create_dir_all(super::scratch()).map_err(|why| why.to_string())?;
        Ok(programs)
    }
}

/// A system that has been started.
#[derive(Debug)]
pub(super) struct RunningSystem {
    /// The right host's address for TCP.
    pub(super) target: Ipv4Addr,
    /// The right host's address for datagrams, which MPTCP does not carry.
    pub(super) probed: Ipv4Addr,
    /// The command that iperf3 is run by.
    pub(super) wrapper: &'static str,
    pub(super) _processes: Processes,
}

impl RunningSystem {
    /// An address without processes.
    pub(super) fn plain(target: Ipv4Addr) -> Self {
        Self { target, probed: target, wrapper: "", _processes: Processes(Vec::new()) }
    }

    /// A tunnel: its far address and its processes.
    pub(super) fn tunnel(target: Ipv4Addr, processes: Vec<Child>) -> Self {
        Self { _processes: Processes(processes), ..Self::plain(target) }
    }
}

/// Processes that are killed when this is dropped.
#[derive(Debug)]
pub(super) struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl System {
    pub(super) const ALL: [Self; 6] =
        [Self::Raw, Self::Ropewalk, Self::Mpt, Self::WireGuardGo, Self::OpenVpn, Self::Mptcp];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Ropewalk => "ropewalk",
            Self::Mpt => "mpt",
            Self::WireGuardGo => "wireguard-go",
            Self::OpenVpn => "openvpn",
            Self::Mptcp => "mptcp",
        }
    }

    pub(super) fn read(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|system| system.name() == name);
        found.ok_or_else(|| format!("no system `{name}`; there are {}", names()))
    }

    /// Whether it is measured over so many links.
    pub(super) fn takes(self, links: usize) -> bool {
        match self {
            Self::Raw | Self::Ropewalk | Self::Mpt => true,
            Self::WireGuardGo | Self::OpenVpn => links == 1,
            Self::Mptcp => links > 1,
        }
    }

    /// Starts it; the error says why it cannot be.
    pub(super) fn start(
        self,
        testbed: &Testbed,
        programs: &Programs,
        accounting: &CpuAccounting,
    ) -> Result<RunningSystem, String> {
        match self {
            Self::Raw => Ok(RunningSystem::plain(testbed.address(0, RIGHT))),
            Self::Ropewalk | Self::Mpt => ropewalk::start(self == Self::Mpt, testbed, programs, accounting),
            Self::WireGuardGo => baselines::wireguard_go(testbed, accounting),
            Self::OpenVpn => baselines::openvpn(testbed, accounting),
            Self::Mptcp => baselines::mptcp(testbed),
        }
    }
}
