//! Finds out what would keep a tunnel from working on this host and in its network, without starting it: for `ropewalk
//! check --live`.

use super::diagnosis::{Devices, Probe, Subject, local_cause};
use super::line::reached_by;
use super::routers::RouterProbes;
use super::routes::Routes;
use crate::config::{ConfiguredPath, ConfiguredPeer, TunnelConfig};
use crate::event::{Cause, CauseKind};
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

/// The maximum time until an ICMP error arrives.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// The findings about a path.
#[derive(Clone, Debug)]
pub struct PathFinding {
    /// Its name.
    pub path: String,
    /// The address that its datagrams leave with, if there is a route.
    pub source: Option<IpAddr>,
    /// The first routers on the path that revealed their addresses, the nearest first; none over IPv6.
    pub routers: Vec<IpAddr>,
    /// The cause that keeps it from working, if one was found.
    pub cause: Option<Cause>,
}

/// Examines every path of `config`, whose uplinks have been found, to every peer with an endpoint: name, device,
/// addresses, route, and a datagram that may be refused.
///
/// # Errors
/// Netlink does not answer.
pub fn examine_paths(config: &TunnelConfig) -> io::Result<Vec<PathFinding>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        let routes = Routes::new(handle);
        let devices = Devices::read();
        let mut findings = Vec::new();
        let mut probes = Vec::new();
        for path in &config.paths {
            for peer in &config.peers {
                let Some(found) = subjects(path, peer) else { continue };
                let (mut subject, mut cause) = (None, None);
                match found {
                    Err(unresolved) => cause = Some(unresolved),
                    // A path tries one address after the other: the first usable one counts, or else the cause of the
                    // first one.
                    Ok(candidates) => {
                        for candidate in candidates {
                            let found = local_cause(&candidate, &devices, &routes, &config.interface.name).await;
                            let can_be_sent_to = found.is_none();
                            if can_be_sent_to || subject.is_none() {
                                (subject, cause) = (Some(candidate), found);
                            }
                            if can_be_sent_to {
                                break;
                            }
                        }
                    }
                }
                let mut finding = PathFinding {
                    path: path.name.clone(),
                    source: subject.as_ref().and_then(Subject::source_address),
                    routers: Vec::new(),
                    cause,
                };
                if let (Some(subject), None) = (&subject, &finding.cause) {
                    match Probe::send(subject) {
                        Ok(probe) => probes.push((findings.len(), probe, RouterProbes::send(subject).ok())),
                        Err(cause) => finding.cause = Some(cause),
                    }
                }
                findings.push(finding);
            }
        }
        if !probes.is_empty() {
            tokio::time::sleep(REFUSAL_TIME).await;
        }
        for (index, probe, routers) in probes {
            findings[index].cause = probe.refusal();
            findings[index].routers = routers.map_or_else(Vec::new, |routers| routers.answers());
        }
        Ok(findings)
    })
}

/// The subjects of a path to a peer, one for each address, or why its endpoint has none; `None` if this end waits for the
/// peer.
fn subjects(path: &ConfiguredPath, peer: &ConfiguredPeer) -> Option<Result<Vec<Subject>, Cause>> {
    let endpoint = path.endpoint.as_ref().or(peer.endpoint.as_ref())?;
    Some(match endpoint.resolve(path.source) {
        Ok(addresses) => Ok(reached_by(path, addresses)
            .into_iter()
            .map(|remote| Subject { interface: path.interface.clone(), source: path.source, remote })
            .collect()),
        Err(error) => Err(Cause {
            kind: CauseKind::Unresolved,
            text: format!("`endpoint = \"{endpoint}\"` has no address: {error}"),
            remedy: "fix the name, or the name servers in /etc/resolv.conf".into(),
        }),
    })
}

impl Subject {
    /// The address that a datagram leaves with.
    fn source_address(&self) -> Option<IpAddr> {
        let unspecified: IpAddr =
            if self.remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((self.source.unwrap_or(unspecified), 0)).ok()?;
        if let Some(device) = &self.interface {
            socket2::SockRef::from(&socket).bind_device(Some(device.as_bytes())).ok()?;
        }
        socket.connect(self.remote).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    }
}

/// What an address shows about address translation before the Internet; `None` for a public address.
#[must_use]
pub fn translation(address: IpAddr) -> Option<&'static str> {
    let IpAddr::V4(v4) = address else { return None };
    let [a, b, ..] = v4.octets();
    if a == 100 && (64..128).contains(&b) {
        return Some(
            "an address of carrier-grade NAT (RFC 6598): it cannot be reached from outside, whatever is forwarded",
        );
    }
    v4.is_private().then_some("a private address: a router translates it; others reach it only by a forwarded port")
}

/// A router beyond the first that has no public address either: it translates a second time, unless both belong to one
/// network of several routers. `source` is the source address of datagrams that leave this host.
#[must_use]
pub fn second_translator(source: IpAddr, routers: &[IpAddr]) -> Option<IpAddr> {
    translation(source)?;
    routers.iter().skip(1).copied().find(|router| translation(*router).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_router_with_a_private_address_translates_again() {
        let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        for (source, routers, expected) in [
            ("192.168.8.100", &["192.168.8.1", "100.64.0.1", "203.0.113.1"][..], Some("100.64.0.1")),
            ("192.168.8.100", &["192.168.8.1", "203.0.113.1", "10.0.0.1"], Some("10.0.0.1")),
            ("192.168.8.100", &["192.168.8.1", "203.0.113.1"], None),
            ("203.0.113.9", &["203.0.113.1", "10.0.0.1"], None),
            ("192.168.8.100", &[], None),
        ] {
            let found = second_translator(source.parse().unwrap(), &addresses(routers));
            assert_eq!(found, expected.map(|text| text.parse().unwrap()), "{source} {routers:?}");
        }
    }

    #[test]
    fn private_and_shared_addresses_are_told_from_public_ones() {
        for (address, phrase) in [
            ("100.64.0.1", Some("carrier-grade")),
            ("100.127.255.254", Some("carrier-grade")),
            ("100.128.0.1", None),
            ("192.168.8.100", Some("a private address")),
            ("203.0.113.1", None),
            ("2001:db8::1", None),
        ] {
            let text = translation(address.parse().unwrap());
            assert_eq!(text.is_some(), phrase.is_some(), "{address}");
            assert!(text.unwrap_or_default().contains(phrase.unwrap_or_default()), "{address}");
        }
    }
}
