//! `check --live`, the purpose of a tunnel: the promises of the setup on this host; whether packets return from beyond the
//! server, for this host and the networks behind it; and packets that are dropped because their source is unknown.

use super::live::Findings;
use crate::setup::{self, Bypass, ClientPromises, Lan};
use daemon::control_plane::{Answer, ENROLMENT_PORT, Question, ask_beyond};
use daemon::status::{PathState, PeerStatus, TunnelStatus};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// The time for the server's answer through the tunnel.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The resolver for a client whose server named none of a family: Quad9.
const RESOLVERS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)), IpAddr::V6(Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0xfe))];

/// The promises of the setup that do not hold.
pub(super) fn promises(interface: &str, findings: &mut Findings) {
    if !nix::unistd::geteuid().is_root() {
        return findings.note("only root can see the promises of the setup on this host");
    }
    match setup::examine(interface) {
        Ok(faults) => faults.iter().for_each(|fault| findings.problem(&fault.text, &fault.remedy)),
        Err(error) => findings.note(&error),
    }
}

/// Packets of peers that are dropped because their source is in no peer's allowed IPs.
pub(super) fn unallowed(status: &TunnelStatus, findings: &mut Findings) {
    for peer in &status.peers {
        for source in &peer.unallowed_sources {
            let Ok(address) = source.address.parse::<IpAddr>() else { continue };
            // The address may have been added since; link-local packets are of no use beyond the link.
            if is_link_local(address) || status.peers.iter().any(|peer| is_allowed(peer, address)) {
                continue;
            }
            let name = peer.name.as_deref().unwrap_or("the peer");
            let network = probable_network(address);
            findings.problem(
                &format!("{address} is not in {name}'s allowed-ips: {} of its packets dropped here", source.packets),
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

/// The usual network of an address.
fn probable_network(address: IpAddr) -> IpNet {
    let prefix_len = if address.is_ipv4() { 24 } else { 64 };
    IpNet::new(address, prefix_len).map_or(IpNet::from(address), |network| network.trunc())
}

/// Asks a host beyond the server, from this host's inner addresses and from those in the networks behind it. These networks
/// are only known from a setup's record, which only root can read.
pub(super) fn ask(status: &TunnelStatus, findings: &mut Findings) {
    let device = &status.interface.name;
    let is_any = |text: &String| text.parse::<IpNet>().is_ok_and(|network| network.prefix_len() == 0);
    let is_full = status.peers.iter().any(|peer| peer.allowed_ips.iter().any(is_any));
    let client = setup::client_promises(device).unwrap_or_default();
    if !is_full {
        return;
    }
    if !status.paths().any(|(_, path)| path.state == PathState::Up) {
        return if findings.has_no_problem() {
            findings.problem("no path works yet: no packet returns from beyond the server", "ask again in 10 s");
        };
    }
    let addresses = status.interface.addresses.iter().filter_map(|text| text.parse::<IpNet>().ok());
    for source in addresses.map(|address| address.addr()) {
        let Some((resolver, answer)) = question(device, &client, source, findings) else {
            silence(&client, family(source), source, findings);
            continue;
        };
        let has_answered = |other: &IpAddr| *other == resolver && answer.is_name;
        names(device, &client, source, has_answered, findings);
        for (lan, own) in own_addresses(&client, source.is_ipv4()) {
            let behind = &lan.device;
            if question(device, &client, own, findings).is_none() {
                findings.problem(
                    &format!(
                        "{own}, this machine in the network behind {behind}, gets no answer from beyond the server"
                    ),
                    "`ropewalk check --live` on the server names the address if it is in nobody's allowed-ips; \
                     `ropewalk setup server --client NAME --lan NETWORK` there adds the network",
                );
            } else if let Some(where_to) = setup::misrouted(lan, own, resolver, device) {
                findings.problem(
                    &format!("packets of the network behind {behind} do not go into the tunnel: {where_to}"),
                    &format!(
                        "`ip rule`; `sysctl -w net.ipv4.conf.{behind}.forwarding=1 net.ipv4.conf.{behind}.rp_filter=2`"
                    ),
                );
            }
        }
    }
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// The networks behind this host that use the tunnel, with its address in each.
fn own_addresses(client: &ClientPromises, is_ipv4: bool) -> Vec<(&Lan, IpAddr)> {
    let own = daemon::control_plane::own_addresses();
    let bypasses = |lan: &Lan| client.bypass.contains(&Bypass::Device(lan.device.clone()));
    let lans = client.lans.iter().filter(|lan| lan.network.addr().is_ipv4() == is_ipv4 && !bypasses(lan));
    lans.filter_map(|lan| Some((lan, own.iter().copied().find(|own| lan.network.contains(own))?))).collect()
}

/// Asks a resolver beyond the server from an address of this host: Returns the resolver and its answer.
fn question(
    device: &str,
    client: &ClientPromises,
    source: IpAddr,
    findings: &mut Findings,
) -> Option<(IpAddr, Answer)> {
    let is_beyond = |address: &&IpAddr| address.is_ipv4() == source.is_ipv4() && !client.server.contains(address);
    let resolver = *client.dns.iter().chain(&RESOLVERS).find(is_beyond)?;
    match ask_beyond(&Question { device, source, resolver, server: &client.server }) {
        Ok(answer) => {
            let answer = answer?;
            findings.note(&format!("{} beyond the server: {} answers {source}", family(source), answer.from));
            Some((resolver, answer))
        }
        Err(error) => {
            findings.note(&format!("{source}: nothing can be asked through the tunnel: {error}"));
            None
        }
    }
}

/// Asks the tunnel's resolvers, one of which may be the server.
fn names(
    device: &str,
    client: &ClientPromises,
    source: IpAddr,
    has_answered: impl Fn(&IpAddr) -> bool,
    findings: &mut Findings,
) {
    let silent = client.dns.iter().filter(|resolver| resolver.is_ipv4() == source.is_ipv4() && !has_answered(resolver));
    for resolver in silent {
        let answer = ask_beyond(&Question { device, source, resolver: *resolver, server: &[] });
        if !answer.is_ok_and(|answer| answer.is_some_and(|answer| answer.is_name)) {
            findings.problem(
                &format!("the tunnel's resolver {resolver} does not answer {source}: names are not found"),
                "on the server: `ropewalk setup server --dns ADDRESS` for a new setup, or let its firewall pass port 53",
            );
        }
    }
}

/// Finds the end at which the fault lies.
fn silence(client: &ClientPromises, family: &str, source: IpAddr, findings: &mut Findings) {
    let server = client.server.iter().find(|address| address.is_ipv4() == source.is_ipv4());
    let server = server.map(|address| SocketAddr::new(*address, ENROLMENT_PORT));
    let answers = server.is_some_and(|server| match TcpStream::connect_timeout(&server, TIMEOUT) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
    });
    if answers {
        findings.problem(
            &format!("the tunnel works, but no packet returns from beyond the server ({family})"),
            "the fault is at the server: `ropewalk check --live` there, as root, reports whether forwarding, translation or a \
             firewall is at fault",
        );
    } else {
        findings.problem(
            &format!("the server's inner address does not answer through the tunnel ({family})"),
            "`ropewalk check --live` at the server, as root",
        );
    }
}
