//! Who is measured: how it is started over a bed, and where its far end is reached then.

use super::account::Account;
use super::bed::{Bed, RIGHT};
use super::{ours, peers};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Child;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// TCP over the first link.
    Raw,
    /// Our tunnel, encrypted.
    Ropewalk,
    /// Our tunnel as MPT's peer, in the clear.
    Mpt,
    WireGuardGo,
    OpenVpn,
    Mptcp,
}

/// Programs that a bench needs.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) ropewalk: PathBuf,
    pub(super) agent: PathBuf,
}

impl Tools {
    pub(super) fn find(release: &Path) -> Result<Self, String> {
        let tools = Self { ropewalk: release.join("ropewalk"), agent: release.join("ropewalk-lab-agent") };
        if !crate::shell::succeeds("iperf3 --version") {
            return Err("iperf3 is missing: apt-get install iperf3".to_owned());
        }
        std::fs::create_dir_all(super::scratch()).map_err(|why| why.to_string())?;
        Ok(tools)
    }
}

/// A subject that is up.
#[derive(Debug)]
pub(super) struct Carrier {
    /// The right host's address for TCP.
    pub(super) target: Ipv4Addr,
    /// The right host's address for datagrams: those do not go through MPTCP.
    pub(super) probed: Ipv4Addr,
    /// What iperf3 is run by.
    pub(super) wrapper: &'static str,
    pub(super) _processes: Processes,
}

impl Carrier {
    /// Nothing but an address.
    pub(super) fn plain(target: Ipv4Addr) -> Self {
        Self { target, probed: target, wrapper: "", _processes: Processes(Vec::new()) }
    }

    /// A tunnel: its far address and its processes.
    pub(super) fn tunnel(target: Ipv4Addr, processes: Vec<Child>) -> Self {
        Self { _processes: Processes(processes), ..Self::plain(target) }
    }
}

/// Ended with this value.
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

impl Subject {
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
        let found = Self::ALL.into_iter().find(|subject| subject.name() == name);
        found.ok_or_else(|| format!("no subject `{name}`; there are {}", names()))
    }

    /// Has it a place in a bench over so many links?
    pub(super) fn carries(self, links: usize) -> bool {
        match self {
            Self::Raw | Self::Ropewalk | Self::Mpt => true,
            Self::WireGuardGo | Self::OpenVpn => links == 1,
            Self::Mptcp => links > 1,
        }
    }

    /// Brings it up; an error says why that cannot be.
    pub(super) fn start(self, bed: &Bed, tools: &Tools, account: &Account) -> Result<Carrier, String> {
        match self {
            Self::Raw => Ok(Carrier::plain(bed.address(0, RIGHT))),
            Self::Ropewalk | Self::Mpt => ours::start(self == Self::Mpt, bed, tools, account),
            Self::WireGuardGo => peers::wireguard_go(bed, account),
            Self::OpenVpn => peers::openvpn(bed, account),
            Self::Mptcp => peers::mptcp(bed),
        }
    }
}
