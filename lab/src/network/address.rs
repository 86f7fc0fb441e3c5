//! Addresses: every hop is a subnet, identified by an area and a number.

use super::host;
use scenario::model::Experiment;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The area of subnets between routers.
pub(crate) const ROUTERS: u8 = 0;

/// The IP version of hosts and routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// A subnet of two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    pub(crate) area: u8,
    pub(crate) number: u8,
}

impl Subnet {
    /// From the source of pair `k` to path `p`.
    pub(crate) fn source(k: usize, p: usize) -> Self {
        Self { area: 1 + 2 * p as u8, number: k as u8 }
    }

    /// From path `p` to the sink of pair `k`.
    pub(crate) fn sink(k: usize, p: usize) -> Self {
        Self { area: 2 + 2 * p as u8, number: k as u8 }
    }

    /// The address of end 1 or 2. A host is end 1 of its subnets.
    pub(crate) fn address(self, family: Family, end: u8) -> IpAddr {
        let Self { area, number } = self;
        match family {
            Family::V4 => Ipv4Addr::new(10, area, number, end).into(),
            Family::V6 => Ipv6Addr::new(0xfd00, area.into(), number.into(), 0, 0, 0, 0, end.into()).into(),
        }
    }

    /// The subnet in CIDR notation.
    pub(crate) fn network(self, family: Family) -> String {
        format!("{}/{}", self.address(family, 0), family.prefix())
    }

    /// The MAC address of end 1 or 2.
    pub(crate) fn mac(self, end: u8) -> String {
        format!("02:00:00:{:02x}:{:02x}:{end:02x}", self.area, self.number)
    }
}

impl Family {
    fn of(ip_header: u32) -> Self {
        if ip_header == 40 { Self::V6 } else { Self::V4 }
    }

    /// The IP version of an experiment: that of its first TCP flow.
    pub(crate) fn of_all(experiment: &Experiment) -> Self {
        experiment.flows.iter().find_map(host).map_or(Self::V4, |host| Self::of(host.ip_header))
    }

    /// Size of an IP header, bytes.
    pub(crate) fn header(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// Prefix length of a subnet.
    pub(crate) fn prefix(self) -> u8 {
        match self {
            Self::V4 => 24,
            Self::V6 => 64,
        }
    }

    /// The inner address of the tunnel's end 1 or 2.
    pub(crate) fn inner(self, end: u8) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::new(10, 77, 0, end).into(),
            Self::V6 => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, end.into()).into(),
        }
    }
}
