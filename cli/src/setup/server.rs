//! `setup server`.

use super::client::with_port;
use super::clients::{Server, check_name};
use super::dns::{self, Dns};
use super::firewall::{Firewall, forwarding, sysctl_steps};
use super::plan::{NewFile, Plan, Step};
use super::promises::{Promises, ServerPromises};
use super::record::{Record, ServerRecord, Undo};
use super::ruleset;
use super::service::Service;
use super::token::server_address;
use super::{
    Go, SetupServer, announcement_file, audit, base_steps, carry_out, config_file, environment, host, key_file,
    next_key_file, peers_file,
};
use crate::{Failure, output};
use daemon::config::{DEFAULT_PORT, PeerEndpoint, TunnelConfig};
use daemon::control_plane::routed_devices;
use ipnet::{IpNet, Ipv6Net};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};

/// The inner network, if no other network of the host overlaps it; otherwise its second number is increased.
const DEFAULT_NETWORK: [u8; 4] = [10, 77, 0, 0];

/// The properties of the new server.
pub(super) struct Design {
    pub(super) endpoints: Vec<String>,
    pub(super) port: u16,
    /// The inner networks, with the server's address in each.
    networks: Vec<IpNet>,
    /// The inner networks that are routed here: their packets keep their addresses.
    routed: Vec<IpNet>,
    pub(super) uplinks: Vec<String>,
    dns: Dns,
}

pub(super) fn setup(arguments: &SetupServer) -> Result<(), Failure> {
    let name = &arguments.name;
    match Record::read(name).map_err(environment)? {
        Some(record) if record.is_complete => {
            return Err(Failure::Environment(format!(
                "{name} is set up already: --add NAME makes a token for another client, `ropewalk setup remove` undoes \
                 the setup, and --name makes another tunnel"
            )));
        }
        Some(record) if !arguments.dry_run => {
            output::warn("note: an earlier setup was interrupted; its steps are undone first");
            record.undo();
            Record::remove(name).map_err(environment)?;
        }
        _ => {}
    }
    let client = arguments.first_client();
    check_name(client)?;
    let design = design(arguments)?;
    let (open, behind) = own_and_behind(&arguments.lan);
    if let Some(network) = behind.first().filter(|_| arguments.no_client) {
        return Err(Failure::Usage(format!(
            "--lan {network}: this machine has no such network, and --no-client adds no client"
        )));
    }
    let mut plan = plan(name, client, &design, &open, &behind);
    if !arguments.no_client {
        plan.title += &format!("\nAt the end, a token for a first client, `{client}`.");
    }
    let mut record = Record {
        interface: name.clone(),
        server: Some(ServerRecord {
            endpoints: design.endpoints.clone(),
            port: design.port,
            dns: design.dns.addresses.clone(),
        }),
        promises: promises(&design, open),
        ..Record::default()
    };
    if carry_out(&plan, plan.steps.len(), &mut record, arguments.dry_run, arguments.yes)? == Go::No {
        return Ok(());
    }
    record.is_complete = true;
    record.write().map_err(environment)?;
    audit::note(name, "set-up", name, &design.endpoints.join(", "))?;
    let mut server = Server::open(name)?;
    if !arguments.forward.is_empty() || arguments.between_clients.is_some() {
        // A forward to the first client needs the client's address.
        server.promise(arguments, &behind)?;
    }
    if arguments.no_client {
        return output::print("`ropewalk setup server --add NAME` adds a client, --add-from FILE many\n");
    }
    server.add(client, &arguments.new_client(), &behind)
}

/// Divides the networks of `--lan` into those that this machine has, or to which a route other than a default route leads,
/// and the others, which are behind the client.
pub(super) fn own_and_behind(lans: &[IpNet]) -> (Vec<IpNet>, Vec<IpNet>) {
    lans.iter().partition(|lan| super::lan::named(&lan.to_string()).is_ok())
}

pub(super) fn promises(design: &Design, open: Vec<IpNet>) -> Promises {
    let server = ServerPromises {
        port: design.port,
        uplinks: design.uplinks.clone(),
        routed: design.routed.clone(),
        open,
        dns: design.dns.addresses.clone(),
        ..ServerPromises::default()
    };
    let sysctls = forwarding(design.networks.len() > 1, &design.uplinks);
    Promises { sysctls, server: Some(server), ..Promises::default() }
}

fn design(arguments: &SetupServer) -> Result<Design, Failure> {
    let devices = routed_devices().map_err(|error| environment(format!("netlink: {error}")))?;
    let uplinks: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
    let endpoints = if arguments.endpoint.is_empty() { public_addresses(&uplinks)? } else { given(arguments)? };
    let has_ipv6 = devices.iter().any(|device| device.has_ipv6);
    let mut networks = vec![match arguments.subnet {
        Some(network) => checked_network(network, 30, "--subnet")?,
        None => free_network()?,
    }];
    let mut routed = Vec::new();
    if let Some(prefix) = arguments.prefix {
        networks.push(checked_network(IpNet::V6(prefix), 126, "--prefix")?);
        routed.extend(networks.last());
    } else if has_ipv6 {
        networks.push(unique_local_network());
    }
    let with_address = |network: &IpNet| {
        let address = server_address(*network).and_then(|address| IpNet::new(address, network.prefix_len()).ok());
        address.ok_or_else(|| Failure::Usage(format!("{network} has no address for the server")))
    };
    let networks = networks.iter().map(with_address).collect::<Result<Vec<_>, _>>()?;
    let addresses: Vec<IpAddr> = networks.iter().map(IpNet::addr).collect();
    let texts: Vec<_> = networks.iter().map(|network| network.trunc().to_string()).collect();
    let dns = dns::choose(&arguments.name, &arguments.dns, &addresses, &texts, networks.len() > 1);
    Ok(Design { endpoints, port: arguments.port, networks, routed, uplinks, dns })
}

/// The properties of a server that a backup has: its inner networks, port and resolvers, at the addresses of this host.
pub(super) fn design_of_backup(
    arguments: &SetupServer,
    config: &TunnelConfig,
    server: &ServerRecord,
    promises: &ServerPromises,
) -> Result<Design, Failure> {
    let devices = routed_devices().map_err(|error| environment(format!("netlink: {error}")))?;
    let uplinks: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
    let endpoints = if arguments.endpoint.is_empty() { public_addresses(&uplinks)? } else { given(arguments)? };
    let networks = config.interface.addresses.clone();
    if let Some((network, other)) = networks.iter().find_map(|network| Some((network, overlapping(network.trunc())?))) {
        return Err(Failure::Usage(format!("the inner network {network} overlaps {other}, which this machine has")));
    }
    let addresses: Vec<IpAddr> = networks.iter().map(IpNet::addr).collect();
    let texts: Vec<_> = networks.iter().map(|network| network.trunc().to_string()).collect();
    let dns = dns::choose(&config.interface.name, &server.dns, &addresses, &texts, networks.len() > 1);
    Ok(Design { endpoints, port: server.port, networks, routed: promises.routed.clone(), uplinks, dns })
}

/// The public addresses of the uplinks, one of each family.
fn public_addresses(uplinks: &[String]) -> Result<Vec<String>, Failure> {
    let addresses: Vec<IpAddr> = host::addresses()
        .into_iter()
        .filter(|address| uplinks.contains(&address.device))
        .map(|address| address.network.addr())
        .collect();
    let public = |is_ipv4: bool| {
        addresses.iter().find(|address| address.is_ipv4() == is_ipv4 && host::is_public(**address)).copied()
    };
    let found: Vec<String> =
        [public(true), public(false)].into_iter().flatten().map(|address| address.to_string()).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let private: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    let reason = if private.is_empty() {
        "this machine has no default route".to_owned()
    } else {
        format!("the address of this machine is private ({}), it is behind a NAT", private.join(", "))
    };
    Err(Failure::Usage(format!(
        "{reason}: --endpoint HOST names the public address or host name that clients reach it by; the router there must \
         forward the UDP port"
    )))
}

/// The endpoints of the command line, without ports.
fn given(arguments: &SetupServer) -> Result<Vec<String>, Failure> {
    hosts("--endpoint", &arguments.endpoint)
}

/// Hosts with the port of the tunnel.
pub(super) fn endpoints(given: &[String], port: u16) -> Result<Vec<String>, Failure> {
    Ok(hosts("--move-to", given)?.iter().map(|host| with_port(host, port)).collect())
}

/// The hosts of an option, without ports.
fn hosts(option: &str, given: &[String]) -> Result<Vec<String>, Failure> {
    let check = |text: &String| {
        let host = text.trim_matches(['[', ']']);
        match PeerEndpoint::parse(text) {
            Ok(endpoint) if endpoint.to_string() == with_port(host, DEFAULT_PORT) => Ok(host.to_owned()),
            Ok(_) => Err(Failure::Usage(format!("{option} {text}: the port is given by --port"))),
            Err(error) => Err(Failure::Usage(format!("{option}: {error}: a host name or an address"))),
        }
    };
    if given.len() > 8 || given.iter().any(|text| text.len() > 253) {
        return Err(Failure::Usage(format!("{option}: at most 8, of at most 253 characters")));
    }
    given.iter().map(check).collect()
}

fn checked_network(network: IpNet, longest: u8, option: &str) -> Result<IpNet, Failure> {
    if network.prefix_len() > longest {
        return Err(Failure::Usage(format!(
            "{option} {network} has no room for clients: the longest prefix is /{longest}"
        )));
    }
    match overlapping(network) {
        Some(other) => Err(Failure::Usage(format!("{option} {network} overlaps {other}, which this machine has"))),
        None => Ok(network.trunc()),
    }
}

/// A network of the host that has addresses in common with `network`.
fn overlapping(network: IpNet) -> Option<IpNet> {
    let networks = host::addresses().into_iter().map(|address| address.network.trunc());
    networks.into_iter().find(|other| other.contains(&network) || network.contains(other))
}

fn free_network() -> Result<IpNet, Failure> {
    let [first, second, third, fourth] = DEFAULT_NETWORK;
    let candidates =
        (second..=u8::MAX).filter_map(|second| IpNet::new(IpAddr::from([first, second, third, fourth]), 24).ok());
    let mut candidates = candidates.filter(|network| overlapping(*network).is_none());
    candidates.next().ok_or_else(|| Failure::Usage("--subnet names the inner network: 10.0.0.0/8 is in use".into()))
}

/// A random unique local network (RFC 4193, section 3.2.2).
fn unique_local_network() -> IpNet {
    let mut random = [0; 8];
    seal::Entropy::fill(&mut seal::SystemEntropy, &mut random);
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&random);
    octets[0] = 0xfd;
    (octets[6], octets[7]) = (0, 0);
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::from(octets), 64))
}

pub(super) fn plan(name: &str, client: &str, design: &Design, open: &[IpNet], behind: &[IpNet]) -> Plan {
    let Design { endpoints, port, networks, dns, .. } = design;
    let config = config_file(name);
    let service = Service::detect(name, &config);
    let has_ipv6 = networks.len() > 1;
    let promises = promises(design, open.to_vec());
    let tables = ruleset::tables(name, &promises, &ruleset::Surroundings::default());
    let (mut steps, user) = base_steps(name);
    let peers_file = peers_file(name);
    steps.push(Step::AtRemoval(Undo::File(peers_file.clone())));
    steps.push(Step::AtRemoval(Undo::DaemonFile(announcement_file(name))));
    steps.push(Step::AtRemoval(Undo::DaemonFile(next_key_file(name))));
    steps.push(Step::AtRemoval(Undo::DaemonFile(peers_file.with_extension("clients"))));
    let key = daemon::keys::genkey();
    steps.push(Step::File(NewFile {
        path: key_file(name),
        mode: 0o600,
        owner: user.clone(),
        text: key,
        shown_as: Some("a new private key"),
    }));
    let addresses: Vec<_> = networks.iter().map(|network| format!("\"{network}\"")).collect();
    let mut text = format!("# Of `ropewalk setup server`.\n[interface]\naddress = [{}]\n", addresses.join(", "));
    let _ = writeln!(text, "private-key-file = \"{name}.key\"\nlisten-port = {port}\nrouting = \"auto\"");
    let _ = writeln!(text, "peers-file = \"{}\"", peers_file.display());
    user.iter().for_each(|user| {
        let _ = writeln!(text, "user = \"{user}\"");
    });
    let mut file = NewFile::of_root(config, 0o600, text);
    file.owner = user;
    steps.push(Step::File(file));
    steps.extend(sysctl_steps(name, &promises.sysctls));
    steps.extend(Firewall { interface: name, port: *port }.steps());
    steps.extend(service.steps(name, &config_file(name)));
    steps.push(Step::Keep(service.clone()));
    let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
    let title = format!(
        "A server of the tunnel {name}, {} inside, which clients reach at {}, UDP port {port}.\n\
         Their resolver: {}.",
        networks.join(" and "),
        endpoints.join(" and "),
        dns.description
    );
    let mut plan = Plan { title, steps, notes: vec![reach(open, client, behind)] };
    plan.notes.push(format!("while the tunnel is set up, these tables are kept in nftables:\n\n{tables}"));
    plan.add_dns(dns, service);
    if !has_ipv6 {
        plan.notes.push("this machine has no IPv6 to offer, so that clients' IPv6 does not use the tunnel".into());
    }
    plan
}

/// The networks that clients reach, in a sentence or two.
fn reach(open: &[IpNet], client: &str, behind: &[IpNet]) -> String {
    let list = |networks: &[IpNet]| networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut text = "clients reach the Internet".to_owned();
    if !open.is_empty() {
        text += &format!(" and {}", list(open));
    }
    text += ", and neither this machine, its metadata service and private networks nor each other; --lan NETWORK opens one, \
             --between-clients yes lets them reach each other";
    if !behind.is_empty() {
        text += &format!(". {} is the network behind {client}", list(behind));
    }
    text
}

impl Plan {
    /// The resolver's configuration, the start, and the steps that need the device.
    fn add_dns(&mut self, dns: &Dns, service: Service) {
        self.steps.extend(dns.before.iter().cloned());
        self.steps.push(Step::Start(service));
        self.steps.extend(dns.after.iter().cloned());
    }
}
