//! `check --live`: what a tunnel is for. What the set-up promised of this host, whether packets come back from beyond the
//! server, for this host and the networks behind it, and whose packets are dropped because nobody knows them.

use super::live::Findings;
use crate::setup::{self, ClientPromises};
use daemon::control_plane::{Answer, ENROLMENT_PORT, Question, ask_beyond};
use daemon::status::{PathState, PeerStatus, TunnelStatus};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// The time for the server's answer through the tunnel.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Whom a client asks whose server named no resolver of a family: Quad9.
const RESOLVERS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)), IpAddr::V6(Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0xfe))];

/// What of the set-up's promises does not hold.
pub(super) fn promises(interface: &str, findings: &mut Findings) {
    if !nix::unistd::geteuid().is_root() {
        return findings.note("what the set-up promised of this host is seen by root only");
    }
    match setup::examine(interface) {
        Ok(faults) => faults.iter().for_each(|fault| findings.problem(&fault.text, &fault.remedy)),
        Err(error) => findings.note(&error),
    }
}

/// Packets of peers that are dropped because their source is in nobody's allowed IPs.
pub(super) fn unallowed(status: &TunnelStatus, findings: &mut Findings) {
    for peer in &status.peers {
        for source in &peer.unallowed_sources {
            let Ok(address) = source.address.parse::<IpAddr>() else { continue };
            // It may have been added since; link-local packets are of no use beyond the link.
            if is_link_local(address) || status.peers.iter().any(|peer| is_allowed(peer, address)) {
                continue;
            }
            let name = peer.name.as_deref().unwrap_or("the peer");
            let network = probable_network(address);
            findings.problem(
                &format!("{address} is not in {name}'s allowed-ips: {} packets of it were dropped here", source.packets),
                &format!(
                    "if it is behind {name}: `ropewalk setup server --client {name} --lan {network}`, or `allowed-ips` of the \
                     [[peer]]; otherwise {name} should translate it"
                ),
            );
        }
    }
}

fn is_allowed(peer: &PeerStatus, address: IpAddr) -> bool {
    peer.allowed_ips.iter().filter_map(|text| text.parse::<IpNet>().ok()).any(|network| network.contains(&address))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_unspecified(),
    }
}

/// The network of an address as most have it.
fn probable_network(address: IpAddr) -> IpNet {
    let prefix_len = if address.is_ipv4() { 24 } else { 64 };
    IpNet::new(address, prefix_len).map_or(IpNet::from(address), |network| network.trunc())
}

/// Asks from beyond the server, through a tunnel that works, from this host's inner addresses and from those in the networks
/// behind it.
pub(super) fn ask(status: &TunnelStatus, findings: &mut Findings) {
    let device = &status.interface.name;
    let Some(client) = setup::client_promises(device) else { return };
    if !client.is_full || !status.paths().any(|(_, path)| path.state == PathState::Up) {
        return;
    }
    let addresses = status.interface.addresses.iter().filter_map(|text| text.parse::<IpNet>().ok());
    for source in addresses.map(|address| address.addr()) {
        let (family, resolver) = (family(source), resolver(&client, source));
        if !is_answered(device, &client, source, resolver, findings) {
            silence(&client, family, source, findings);
            continue;
        }
        for (lan, own) in own_addresses(&client, source.is_ipv4()) {
            if !is_answered(device, &client, own, resolver, findings) {
                findings.problem(
                    &format!("{own}, this machine in the network behind {lan}, gets no answer from beyond the server"),
                    "`ropewalk check --live` on the server names the address if it is in nobody's allowed-ips; \
                     `ropewalk setup server --client NAME --lan NETWORK` there adds the network",
                );
            }
        }
    }
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn resolver(client: &ClientPromises, source: IpAddr) -> IpAddr {
    let is_of_family = |address: &&IpAddr| address.is_ipv4() == source.is_ipv4();
    client.dns.iter().chain(&RESOLVERS).find(is_of_family).copied().unwrap_or(RESOLVERS[0])
}

/// This host's addresses in the networks behind it.
fn own_addresses(client: &ClientPromises, is_ipv4: bool) -> Vec<(String, IpAddr)> {
    let own = daemon::control_plane::own_addresses();
    let of_lan = |lan: &setup::Lan| {
        let address = own.iter().find(|address| lan.network.contains(*address))?;
        (address.is_ipv4() == is_ipv4).then(|| (lan.device.clone(), *address))
    };
    client.lans.iter().filter_map(of_lan).collect()
}

fn is_answered(
    device: &str,
    client: &ClientPromises,
    source: IpAddr,
    resolver: IpAddr,
    findings: &mut Findings,
) -> bool {
    let question = Question { device, source, resolver, server: &client.server };
    match ask_beyond(&question) {
        Ok(Some(Answer { from, is_name })) => {
            findings.note(&format!("{} beyond the server: {from} answers {source}", family(source)));
            if !is_name && client.dns.contains(&resolver) {
                findings.problem(
                    &format!("the tunnel's resolver {resolver} does not answer {source}: names are not found"),
                    "on the server: `ropewalk setup server --dns ADDRESS` for a new set-up, or let its firewall pass port 53",
                );
            }
            true
        }
        Ok(None) => false,
        Err(error) => {
            findings.note(&format!("{source}: nothing can be asked through the tunnel: {error}"));
            false
        }
    }
}

/// Tells at which end the fault lies.
fn silence(client: &ClientPromises, family: &str, source: IpAddr, findings: &mut Findings) {
    let server = client.server.iter().find(|address| address.is_ipv4() == source.is_ipv4());
    let server = server.map(|address| SocketAddr::new(*address, ENROLMENT_PORT));
    let answers = server.is_some_and(|server| match TcpStream::connect_timeout(&server, TIMEOUT) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
    });
    if answers {
        findings.problem(
            &format!("the tunnel works, but nothing comes back from beyond the server ({family})"),
            "the fault is at the server: `ropewalk check --live` there, as root, tells whether forwarding, translation or a \
             firewall is at fault",
        );
    } else {
        findings.problem(
            &format!("the server's inner address does not answer through the tunnel ({family})"),
            "`ropewalk check --live` at the server, as root",
        );
    }
}
