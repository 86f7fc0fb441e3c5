//! `setup client TOKEN`.

use super::firewall::sysctl_steps;
use super::host::{self, DefaultRoute};
use super::inner;
use super::plan::{NewFile, Plan, Step, words};
use super::record::{ClientRecord, Record};
use super::service::Service;
use super::token::Token;
use super::{Go, SetupClient, base_steps, carry_out, clients, config_file, enrolment, environment, key_file, probe};
use crate::{Failure, output};
use daemon::config::unix_time;
use daemon::control_plane::has_strict_reverse_path;
use ipnet::IpNet;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// An uplink, and which of the server's endpoints it reaches.
#[derive(Clone, Debug)]
pub(super) struct Uplink {
    pub(super) device: String,
    pub(super) endpoint: String,
}

pub(super) fn setup(arguments: &SetupClient) -> Result<(), Failure> {
    let name = &arguments.name;
    let token = match arguments.token.as_str() {
        "-" => {
            let text = host::ask("The token: ");
            let text = text.map_err(|error| Failure::Usage(format!("cannot read the token: {error}")))?;
            Token::decode(&text)
        }
        text => Token::decode(text),
    };
    let token = token.map_err(Failure::Usage)?;
    inner::check(&token.addresses, &host::addresses(), name).map_err(Failure::Usage)?;
    let one_time_key = token.private_key.public_key().to_string();
    let earlier = Record::read(name).map_err(environment)?;
    if earlier.as_ref().is_some_and(|record| record.is_complete) {
        return Err(Failure::Environment(format!(
            "{name} is set up already: `ropewalk setup remove` undoes that, and --name makes another tunnel"
        )));
    }
    // The server may have taken the key of an interrupted set-up with this token.
    let of_token = earlier.as_ref().and_then(|record| record.client.clone());
    let of_token = of_token.filter(|client| client.token == one_time_key);
    let expires = u64::from(token.expires);
    if of_token.is_none() && expires <= unix_time() {
        return Err(Failure::Environment(format!(
            "the token expired {}: `ropewalk setup server --add {}` on the server makes a new one (if this machine's clock \
             is right)",
            clients::date(expires),
            token.name
        )));
    }
    if let (Some(record), false) = (&earlier, arguments.dry_run) {
        output::warn("note: an earlier set-up was interrupted; what it had done is undone first");
        record.undo();
        Record { undo: Vec::new(), ..record.clone() }.write().map_err(environment)?;
    }
    let private_key = of_token.as_ref().map_or_else(daemon::keys::genkey, |client| client.private_key.clone().into());
    let uplinks = uplinks(&token, name)?;
    let config = config_text(&token, &uplinks, &networks(&token, &arguments.networks));
    let plan = plan(name, &token, &uplinks, &config, &private_key);
    let is_resumed = of_token.is_some();
    let client = ClientRecord { token: one_time_key, private_key: private_key.to_string() };
    let mut record = Record { interface: name.clone(), client: Some(client), ..Record::default() };
    let start = plan.steps.iter().position(|step| matches!(step, Step::Start(_))).unwrap_or(plan.steps.len());
    if carry_out(&plan, start, &mut record, arguments.dry_run, arguments.yes)? == Go::No {
        return Ok(());
    }
    enrolment::enrol(name, &token, &uplinks, &private_key, is_resumed)?;
    plan.carry_out(start.., &mut record).map_err(environment)?;
    record.is_complete = true;
    // The key is in its file now.
    record.client = None;
    record.write().map_err(environment)?;
    probe::report(name, &token, &uplinks)
}

/// The uplinks of this host that reach the server.
fn uplinks(token: &Token, name: &str) -> Result<Vec<Uplink>, Failure> {
    let routes = host::default_routes();
    let mut devices: Vec<&String> = routes.iter().map(|route| &route.device).filter(|device| *device != name).collect();
    devices.sort();
    devices.dedup();
    let has = |device: &String, is_ipv4: bool| routes.contains(&DefaultRoute { device: device.clone(), is_ipv4 });
    let is_reachable = |device: &String, endpoint: &String| match endpoint.parse::<IpAddr>() {
        Ok(address) => has(device, address.is_ipv4()),
        Err(_) => true,
    };
    let uplink = |device: &String| {
        let endpoint = token.endpoints.iter().find(|endpoint| is_reachable(device, endpoint))?;
        Some(Uplink { device: device.clone(), endpoint: with_port(endpoint, token.port) })
    };
    let uplinks: Vec<Uplink> = devices.iter().filter_map(|device| uplink(device)).collect();
    if !uplinks.is_empty() {
        return Ok(uplinks);
    }
    let endpoints = token.endpoints.join(", ");
    Err(Failure::Environment(if devices.is_empty() {
        "no device has a default route: is this machine connected? `ip route` shows its routes".to_owned()
    } else {
        format!("no default route leads to the server ({endpoints}), which has another version of IP")
    }))
}

pub(super) fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The networks that go through the tunnel: everything, or the given ones and the inner networks.
fn networks(token: &Token, given: &[IpNet]) -> Vec<IpNet> {
    let inner = token.addresses.iter().map(IpNet::trunc);
    if given.is_empty() {
        return inner.map(|network| if network.addr().is_ipv4() { IPV4_ANY } else { IPV6_ANY }).collect();
    }
    let mut networks: Vec<_> = inner.chain(given.iter().map(IpNet::trunc)).collect();
    networks.sort();
    networks.dedup();
    networks
}

const IPV4_ANY: IpNet = IpNet::V4(ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::UNSPECIFIED, 0));
const IPV6_ANY: IpNet = IpNet::V6(ipnet::Ipv6Net::new_assert(std::net::Ipv6Addr::UNSPECIFIED, 0));

/// The configuration but for `[interface]`: the server and the paths to it.
pub(super) fn peer_and_paths(token: &Token, uplinks: &[Uplink], allowed_ips: &[IpNet]) -> String {
    let networks: Vec<_> = allowed_ips.iter().map(|network| format!("\"{network}\"")).collect();
    let endpoint = with_port(&token.endpoints[0], token.port);
    let mut text = format!("\n[[peer]]\nname = \"server\"\npublic-key = \"{}\"\n", token.server_key);
    let _ = writeln!(text, "preshared-key-file = \"PSK\"\nallowed-ips = [{}]", networks.join(", "));
    let _ = writeln!(text, "endpoint = \"{endpoint}\"");
    for uplink in uplinks {
        let _ = write!(text, "\n[[path]]\ninterface = \"{}\"\n", uplink.device);
        if uplink.endpoint != endpoint {
            let _ = writeln!(text, "endpoint = \"{}\"", uplink.endpoint);
        }
    }
    text
}

pub(super) fn address_line(token: &Token) -> String {
    let addresses: Vec<_> = token.addresses.iter().map(|address| format!("\"{address}\"")).collect();
    format!("address = [{}]\n", addresses.join(", "))
}

/// The configuration. The daemon finds uplinks and makes their routes by itself; a `[[path]]` is there only for an uplink
/// that reaches another endpoint than the first.
fn config_text(token: &Token, uplinks: &[Uplink], networks: &[IpNet]) -> String {
    let first = with_port(&token.endpoints[0], token.port);
    let others: Vec<Uplink> = uplinks.iter().filter(|uplink| uplink.endpoint != first).cloned().collect();
    format!(
        "[interface]\n{}uplinks = \"auto\"\nrouting = \"auto\"\n{}",
        address_line(token),
        peer_and_paths(token, &others, networks)
    )
}

fn plan(name: &str, token: &Token, uplinks: &[Uplink], config: &str, private_key: &Zeroizing<String>) -> Plan {
    let (mut steps, user) = base_steps(name);
    let psk_file = PathBuf::from(format!("/etc/ropewalk/{name}.psk"));
    let secret = |path: PathBuf, text: Zeroizing<String>, shown_as| {
        Step::File(NewFile { path, mode: 0o600, owner: user.clone(), text, shown_as: Some(shown_as) })
    };
    steps.push(secret(key_file(name), private_key.clone(), "this machine's new private key"));
    steps.push(secret(psk_file, token.preshared_key.to_text(), "the secret that it shares with the server"));
    let mut lines = format!("private-key-file = \"{name}.key\"\n");
    user.iter().for_each(|user| {
        let _ = writeln!(lines, "user = \"{user}\"");
    });
    let config = config.replace("[interface]\n", &format!("# Of `ropewalk setup client`.\n[interface]\n{lines}"));
    let mut file = NewFile::of_root(config_file(name), 0o600, config.replace("\"PSK\"", &format!("\"{name}.psk\"")));
    file.owner = user.clone();
    steps.push(Step::File(file));
    let strict = uplinks.iter().filter(|uplink| uplinks.len() > 1 && has_strict_reverse_path(&uplink.device));
    let strict: Vec<_> = strict.map(|uplink| (format!("net/ipv4/conf/{}/rp_filter", uplink.device), "2")).collect();
    if !strict.is_empty() {
        steps.extend(sysctl_steps(name, &strict));
    }
    let service = Service::detect(name, &config_file(name));
    steps.extend(service.steps(&config_file(name), &[], &[]));
    steps.push(Step::Start(service));
    let mut notes = Vec::new();
    let is_full = config.contains("\"0.0.0.0/0\"");
    if is_full && !token.dns.is_empty() {
        let servers: Vec<_> = token.dns.iter().map(ToString::to_string).collect();
        match resolver_step(name, &servers) {
            Some(step) => steps.push(step),
            None => notes.push(format!(
                "the resolvers of this machine stay as they are; through the tunnel it could ask {}",
                servers.join(", ")
            )),
        }
    }
    if is_full && token.addresses.iter().all(|address| address.addr().is_ipv4()) {
        notes.push("the server has no IPv6: this machine's IPv6, if it has any, does not use the tunnel".into());
    }
    let devices: Vec<_> = uplinks.iter().map(|uplink| format!("{} to {}", uplink.device, uplink.endpoint)).collect();
    let title = format!(
        "A client of the tunnel {name}, {} there, over {}.\nThe token is valid until {}.",
        token.addresses[0].addr(),
        devices.join(" and "),
        clients::date(u64::from(token.expires))
    );
    Plan { title, steps, notes }
}

/// With systemd-resolved, the tunnel's resolvers are those of its device, and end with it.
fn resolver_step(name: &str, servers: &[String]) -> Option<Step> {
    host::output(&["resolvectl", "status"])?;
    let servers = servers.join(" ");
    let script = format!("resolvectl dns {name} {servers} && resolvectl domain {name} '~.'");
    Some(Step::Command { run: words(&["sh", "-c", &script]), undo: None })
}
