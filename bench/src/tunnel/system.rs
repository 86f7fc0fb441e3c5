//! The systems under test: their names, and how each is started on a testbed.

use super::cpu_accounting::CpuAccounting;
use super::programs::Programs;
use super::ropewalk::Mode;
use super::running::RunningSystem;
use super::testbed::{SERVER, Testbed};
use super::{baselines, bonding, ropewalk};

/// A system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// TCP over the first link.
    Raw,
    /// The tunnel, encrypted.
    Ropewalk,
    /// The tunnel, encrypted, with TCP relayed.
    RopewalkRelay,
    /// The tunnel in `mpt` mode, in the clear.
    Mpt,
    /// wireguard-go, in user space.
    WireGuardGo,
    /// OpenVPN over UDP.
    OpenVpn,
    /// The kernel's MPTCP.
    Mptcp,
    /// glorytun.
    Glorytun,
    /// MLVPN.
    Mlvpn,
    /// engarde under wireguard-go.
    Engarde,
}

impl System {
    pub(super) const ALL: [Self; 10] = [
        Self::Raw,
        Self::Ropewalk,
        Self::RopewalkRelay,
        Self::Mpt,
        Self::WireGuardGo,
        Self::OpenVpn,
        Self::Mptcp,
        Self::Glorytun,
        Self::Mlvpn,
        Self::Engarde,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Ropewalk => "ropewalk",
            Self::RopewalkRelay => "ropewalk-relay",
            Self::Mpt => "mpt",
            Self::WireGuardGo => "wireguard-go",
            Self::OpenVpn => "openvpn",
            Self::Mptcp => "mptcp",
            Self::Glorytun => "glorytun",
            Self::Mlvpn => "mlvpn",
            Self::Engarde => "engarde",
        }
    }

    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let system = Self::ALL.into_iter().find(|system| system.name() == name);
        system.ok_or_else(|| format!("no system `{name}`; there are {}", names()))
    }

    /// Whether the system is measured over this number of links.
    pub(super) fn supports_links(self, links: usize) -> bool {
        match self {
            Self::Raw | Self::Ropewalk | Self::RopewalkRelay | Self::Mpt => true,
            Self::WireGuardGo | Self::OpenVpn => links == 1,
            Self::Mptcp | Self::Glorytun | Self::Mlvpn | Self::Engarde => links > 1,
        }
    }

    /// Starts the system; the error is the reason why that is not possible.
    pub(super) fn start(
        self,
        testbed: &Testbed,
        programs: &Programs,
        accounting: &CpuAccounting,
    ) -> Result<RunningSystem, String> {
        match self {
            Self::Raw => Ok(RunningSystem::plain(testbed.address(0, SERVER))),
            Self::Ropewalk => ropewalk::start(Mode::Packets, testbed, programs, accounting),
            Self::RopewalkRelay => ropewalk::start(Mode::Relay, testbed, programs, accounting),
            Self::Mpt => ropewalk::start(Mode::Mpt, testbed, programs, accounting),
            Self::WireGuardGo => baselines::wireguard_go(testbed, accounting),
            Self::OpenVpn => baselines::openvpn(testbed, accounting),
            Self::Mptcp => baselines::mptcp(testbed),
            Self::Glorytun => bonding::glorytun(testbed, accounting),
            Self::Mlvpn => bonding::mlvpn(testbed, accounting),
            Self::Engarde => bonding::engarde(testbed, accounting),
        }
    }
}
