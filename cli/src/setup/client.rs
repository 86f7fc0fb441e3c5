//! `setup client TOKEN`.
//!
//! The tunnel starts with only its inner networks. The other networks follow once the server answers through it, so that a
//! failed setup leaves this machine's traffic unchanged.

use super::access::user_ids;
use super::choices::{Choices, choose};
use super::client_uplinks::{ClientUplinks, find};
use super::enrolment::OwnKeys;
use super::firewall::sysctl_steps;
use super::host;
use super::inner;
use super::plan::{NewFile, Plan, Step, Traffic, replace_text};
use super::promises::{Lan, Promises};
use super::record::{ClientRecord, Record};
use super::ruleset::{self, Surroundings};
use super::service::Service;
use super::token::Token;
use super::{
    DAEMON_USER, Go, SetupClient, base_steps, carry_out, clients, config_file, enrolment, environment, key_file, probe,
    trial,
};
use crate::{Failure, output};
use daemon::config::unix_time;
use ipnet::IpNet;
use seal::{PresharedKey, PrivateKey};
use std::fmt::Write as _;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use zeroize::Zeroizing;

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
    inner::check(&token.addresses).map_err(Failure::Usage)?;
    let one_time_key = token.private_key.public_key().to_string();
    let earlier = Record::read(name).map_err(environment)?;
    if earlier.as_ref().is_some_and(|record| record.is_complete) {
        return Err(Failure::Environment(format!(
            "{name} is set up already: `ropewalk setup remove` undoes that, and --name makes another tunnel"
        )));
    }
    // The server may have taken the key of an interrupted setup with this token.
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
        output::warn("note: an earlier setup was interrupted; its steps are undone first");
        record.undo();
        Record { undo: Vec::new(), ..record.clone() }.write().map_err(environment)?;
    }
    let own = own_keys(of_token.as_ref()).map_err(environment)?;
    let networks = networks(&token, &arguments.networks);
    let uplinks = find(name, &token, &networks, &arguments.lan)?;
    let choices = choose(arguments, &token, &uplinks.devices)?;
    let login = trial::remote_login().filter(|login| trial::is_affected(*login, &networks));
    let plan = plan(arguments, &token, &uplinks, &networks, &own, &choices, login);
    let is_resumed = of_token.is_some();
    let taken = of_token.map_or_else(Vec::new, |client| client.taken);
    let client = record_of(&own, one_time_key, &taken);
    let promises = Promises { sysctls: choices.sysctls, client: choices.promises, server: None };
    let mut record = Record { interface: name.clone(), client: Some(client), promises, ..Record::default() };
    let position = |is: fn(&Step) -> bool| plan.steps.iter().position(is).unwrap_or(plan.steps.len());
    let start = position(|step| matches!(step, Step::Start(_)));
    let traffic = position(|step| matches!(step, Step::Traffic(_)));
    if carry_out(&plan, start, &mut record, arguments.dry_run, arguments.yes)? == Go::No {
        return Ok(());
    }
    let lans: Vec<IpNet> = record.promises.client.lans.iter().map(|lan| lan.network).collect();
    let new = enrolment::enrol(name, &token, &uplinks.endpoints, &own, is_resumed, &lans)?;
    if !new.has_new_psk {
        replace_text(&psk_file(name), &token.preshared_key.to_text()).map_err(environment)?;
    }
    note_taken(&mut record, &token, &new.taken.unwrap_or(taken));
    plan.carry_out(start..traffic, &mut record).map_err(environment)?;
    probe::report(name, &token, uplinks.paths.len())?;
    let trial_time = arguments.confirm_within.or(login.filter(|_| !arguments.yes).map(|_| trial::TIME_S));
    trial::take(&plan, traffic, &mut record, trial_time)?;
    complete(name, &token, record, trial_time)?;
    trial_time.map_or(Ok(()), |seconds| trial::ask(name, login, seconds, arguments.yes))
}

/// This host's keys: those that the server may already have accepted, or new ones.
fn own_keys(earlier: Option<&ClientRecord>) -> Result<OwnKeys, String> {
    let text = earlier.map_or_else(daemon::keys::genkey, |client| client.private_key.clone().into());
    let preshared = earlier.and_then(|client| client.preshared_key.clone());
    let preshared = preshared.map_or_else(daemon::keys::genpsk, Zeroizing::new);
    let read = || Ok(OwnKeys { private_key: text.parse()?, preshared_key: preshared.parse()? });
    read().map_err(|error: seal::KeyError| error.to_string())
}

/// The keys that a client is about to have: new ones, unless a change to others was interrupted. They are kept until they are
/// in use.
pub(super) fn pending_keys(record: &mut Record) -> Result<(PrivateKey, PresharedKey), String> {
    let keys = own_keys(record.client.as_ref())?;
    if record.client.is_none() {
        record.client = Some(record_of(&keys, String::new(), &[]));
        record.write()?;
    }
    Ok((keys.private_key, keys.preshared_key))
}

fn record_of(own: &OwnKeys, token: String, taken: &[IpNet]) -> ClientRecord {
    ClientRecord {
        token,
        private_key: own.private_key.to_text().to_string(),
        preshared_key: Some(own.preshared_key.to_text().to_string()),
        taken: taken.to_vec(),
    }
}

pub(super) fn psk_file(name: &str) -> PathBuf {
    PathBuf::from(format!("/etc/ropewalk/{name}.psk"))
}

/// Notes which of the networks behind this host the server has accepted; the others are translated.
fn note_taken(record: &mut Record, token: &Token, taken: &[IpNet]) {
    let lans = &mut record.promises.client.lans;
    for lan in lans.iter_mut() {
        lan.is_translated = !taken.iter().chain(&token.lans).any(|network| network.contains(&lan.network));
    }
    translated(lans).iter().for_each(|note| output::warn(&format!("note: {note}")));
    record.client.iter_mut().for_each(|client| client.taken = taken.to_vec());
}

/// Completes a setup if the server still answers through the tunnel now that the tunnel has this machine's traffic.
fn complete(name: &str, token: &Token, mut record: Record, trial_time: Option<u32>) -> Result<(), Failure> {
    if !probe::answers(token) {
        trial::give_back(&mut record).map_err(environment)?;
        return Err(Failure::Environment(format!(
            "the server has stopped answering since the traffic of this machine goes through {name}: it goes as before again, \
             and {name} carries its inner networks alone; `ropewalk setup confirm` tries once more"
        )));
    }
    // The end of a trial may have changed the record.
    record = Record::read(name).map_err(environment)?.unwrap_or(record);
    record.trial = record.trial.filter(|_| trial_time.is_some());
    record.is_complete = true;
    // The key is now in its file.
    record.client = None;
    record.write().map_err(environment)?;
    output::print(&format!(
        "`ropewalk test` measures rates, `ropewalk top {name}` watches it, `ropewalk setup remove` undoes it.\n"
    ))
}

/// The consequence for networks behind this host that the server did not accept.
fn translated(lans: &[Lan]) -> Option<String> {
    let lans: Vec<_> = lans.iter().filter(|lan| lan.is_translated).map(|lan| lan.network.to_string()).collect();
    (!lans.is_empty()).then(|| {
        format!(
            "the server has {} from elsewhere, or it is no private network: its packets get this machine's inner address. \
             It has Internet; no port is forwarded to it, and other sites do not reach it",
            lans.join(", ")
        )
    })
}

pub(super) fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The networks that go through the tunnel at the end: everything, or the given ones and the inner networks.
fn networks(token: &Token, given: &[IpNet]) -> Vec<IpNet> {
    if given.is_empty() {
        let any = |network: &IpNet| if network.addr().is_ipv4() { IPV4_ANY } else { IPV6_ANY };
        // An uplink may have a route to the same resolver: networkd adds one for each resolver of a lease.
        let is_of_tunnel =
            |server: &&IpAddr| token.addresses.iter().any(|own| own.addr().is_ipv4() == server.is_ipv4());
        let resolvers = token.dns.iter().filter(is_of_tunnel).copied().map(IpNet::from);
        return with_servers(token, token.addresses.iter().map(any).chain(resolvers));
    }
    with_servers(token, token.addresses.iter().chain(given).map(IpNet::trunc))
}

/// The networks that go through the tunnel from the start.
fn inner_networks(token: &Token) -> Vec<IpNet> {
    with_servers(token, token.addresses.iter().map(IpNet::trunc))
}

/// Networks with the server's own addresses: their routes work even if an uplink has the same network as the tunnel.
fn with_servers(token: &Token, networks: impl Iterator<Item = IpNet>) -> Vec<IpNet> {
    let mut networks: Vec<_> = networks.chain(token.server_addresses().into_iter().map(IpNet::from)).collect();
    networks.sort();
    networks.dedup();
    networks
}

const IPV4_ANY: IpNet = IpNet::V4(ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::UNSPECIFIED, 0));
const IPV6_ANY: IpNet = IpNet::V6(ipnet::Ipv6Net::new_assert(std::net::Ipv6Addr::UNSPECIFIED, 0));

/// A list of TOML.
fn list<T: ToString>(values: &[T]) -> String {
    let values: Vec<_> = values.iter().map(|value| format!("\"{}\"", value.to_string())).collect();
    format!("[{}]", values.join(", "))
}

/// The token with the server's names and their addresses: while everything else is blocked, a name could only be resolved by
/// resolvers that are blocked too.
fn with_resolved(token: &Token) -> Token {
    let mut token = token.clone();
    for name in token.endpoints.clone().iter().filter(|endpoint| endpoint.parse::<IpAddr>().is_err()) {
        let addresses = (name.as_str(), token.port).to_socket_addrs().into_iter().flatten();
        let mut new: Vec<_> = addresses.map(|address| address.ip().to_string()).collect();
        new.retain(|address| !token.endpoints.contains(address));
        new.dedup();
        token.endpoints.extend(new);
    }
    token
}

/// A configuration, in which `interface` is the first lines of [interface]. The daemon finds uplinks and makes their routes
/// itself, and chooses the endpoint that fits the IP version of an uplink.
pub(super) fn config_text(token: &Token, interface: &str, psk_file: &str, allowed_ips: &[IpNet]) -> String {
    let endpoints: Vec<_> = token.endpoints.iter().map(|endpoint| with_port(endpoint, token.port)).collect();
    let endpoint = if let [endpoint] = &endpoints[..] { format!("\"{endpoint}\"") } else { list(&endpoints) };
    format!(
        "[interface]\n{interface}address = {}\nuplinks = \"auto\"\nrouting = \"auto\"\n\n\
         [[peer]]\nname = \"server\"\npublic-key = \"{}\"\npreshared-key-file = \"{psk_file}\"\n\
         allowed-ips = {}\nendpoint = {endpoint}\n",
        list(&token.addresses),
        token.server_key,
        list(allowed_ips)
    )
}

fn plan(
    arguments: &SetupClient,
    token: &Token,
    uplinks: &ClientUplinks,
    networks: &[IpNet],
    own: &OwnKeys,
    choices: &Choices,
    login: Option<IpAddr>,
) -> Plan {
    let name = &arguments.name;
    let (mut steps, user) = base_steps(name);
    let secret = |path: PathBuf, text: Zeroizing<String>, shown_as| {
        Step::File(NewFile { path, mode: 0o600, owner: user.clone(), text, shown_as: Some(shown_as) })
    };
    steps.push(secret(key_file(name), own.private_key.to_text(), "this machine's new private key"));
    steps.push(secret(psk_file(name), own.preshared_key.to_text(), "the secret that it shares with the server"));
    let mut lines = format!("private-key-file = \"{name}.key\"\n");
    user.iter().for_each(|user| {
        let _ = writeln!(lines, "user = \"{user}\"");
    });
    let token_of_config = if choices.is_exclusive { with_resolved(token) } else { token.clone() };
    let text = |networks: &[IpNet], is_exclusive: bool| {
        let exclusive = if is_exclusive { "exclusive = true\n" } else { "" };
        let text = config_text(&token_of_config, &format!("{lines}{exclusive}"), &format!("{name}.psk"), networks);
        format!("# Of `ropewalk setup client`.\n{text}")
    };
    let inner = text(&inner_networks(token), false);
    let mut file = NewFile::of_root(config_file(name), 0o600, inner.clone());
    file.owner.clone_from(&user);
    steps.push(Step::File(file));
    if !choices.sysctls.is_empty() {
        steps.extend(sysctl_steps(name, &choices.sysctls));
    }
    let service = Service::detect(name, &config_file(name));
    steps.extend(service.steps(name, &config_file(name)));
    steps.push(Step::Start(service.clone()));
    steps.push(Step::Keep(service));
    steps.push(Step::Traffic(Traffic {
        config: config_file(name),
        before: inner,
        after: text(networks, choices.is_exclusive),
        allowed_ips: list(networks),
        is_exclusive: choices.is_exclusive,
    }));
    let mut notes = notes(name, token, choices);
    notes.extend(uplinks.notices.iter().map(|notice| format!("{}: {}", notice.text, notice.remedy)));
    notes.extend(login.map(|login| trial::note(login, arguments)));
    let title = format!(
        "A client of the tunnel {name}, {} there, over {}.\nThe token is valid until {}.",
        token.addresses[0].addr(),
        uplinks.paths.join(" and "),
        clients::date(u64::from(token.expires))
    );
    Plan { title, steps, notes }
}

/// Notes on the host's settings while the tunnel is set up, and on traffic that the tunnel does not carry.
fn notes(name: &str, token: &Token, choices: &Choices) -> Vec<String> {
    let mut notes = choices.notes.clone();
    let promises = Promises { client: choices.promises.clone(), ..Promises::default() };
    let user = user_ids(DAEMON_USER).map_or(0, |(user, _)| user);
    let surroundings = Surroundings { is_exclusive: choices.is_exclusive, daemon_user: user, networks: Vec::new() };
    let tables = ruleset::tables(name, &promises, &surroundings);
    if !tables.tables.is_empty() {
        notes.push(format!("while the tunnel is set up, these tables are kept in nftables:\n\n{tables}"));
    }
    let servers: Vec<_> = choices.promises.dns.iter().map(ToString::to_string).collect();
    if !servers.is_empty() {
        notes.push(format!("while the tunnel is up, names are resolved at {}, through it", servers.join(", ")));
    }
    if choices.promises.is_full
        && !choices.is_exclusive
        && token.addresses.iter().all(|address| address.addr().is_ipv4())
    {
        notes.push("the server has no IPv6: this machine's IPv6, if it has any, does not use the tunnel".into());
    }
    notes
}
