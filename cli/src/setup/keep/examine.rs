//! Finds the promises of a setup that this host does not meet.

use super::super::access::user_ids;
use super::super::host;
use super::super::promises::{ClientPromises, Promises};
use super::super::record::{Record, read_sysctl};
use super::super::ruleset::{self, Surroundings, Tables};
use super::super::service::Service;
use super::{bypass, comment, make_folder, names, run_file};
use crate::setup::{DAEMON_USER, config_file};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// The time in which a running keeper restores things.
const MENDING_TIME: Duration = Duration::from_secs(5);

/// A promise that does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(super) kind: FaultKind,
    /// Whether this is normal at a start or after a change of the promises, so that it is not reported.
    pub(super) is_expected: bool,
    /// The fault and its consequence.
    pub(crate) text: String,
    /// The fix.
    pub(crate) remedy: String,
}

/// The thing that has to be restored.
#[derive(Clone, Debug)]
pub(super) enum FaultKind {
    /// The tunnel's own tables.
    Tables,
    /// Rules in a chain of others: `FAMILY TABLE CHAIN`.
    Rules {
        place: String,
        rules: Vec<String>,
    },
    Sysctl {
        key: String,
        value: String,
    },
    Bypass,
    Names,
    /// The tunnel's resolvers are in use without the tunnel.
    NamesRestore,
    /// Nothing restores it, or it cannot be restored.
    Keeper,
}

/// The state that should hold.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) interface: String,
    pub(super) promises: Promises,
    /// Whether all traffic goes through the tunnel now: not before its server has answered.
    pub(super) takes_all: bool,
    pub(super) surroundings: Surroundings,
    pub(super) tables: Tables,
}

/// A table as it was loaded: its text, and the listing of nft since then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Loaded {
    text: String,
    shown: String,
}

impl Wanted {
    /// The state that the record and the configuration of a tunnel ask for; `None` if they ask for nothing.
    pub(super) fn read(interface: &str) -> Result<Option<Self>, String> {
        let record = Record::read(interface)?;
        let promises = record.as_ref().map(|record| record.promises.clone());
        let config = daemon::config::load(&config_file(interface));
        let loaded = loaded(interface);
        let was_set_up = |of: fn(&ClientPromises) -> bool| promises.as_ref().is_some_and(|made| of(&made.client));
        let is_on_trial = record.as_ref().is_some_and(is_on_trial);
        let is_any = |network: &IpNet| network.prefix_len() == 0;
        let (is_exclusive, takes_all) = match &config {
            _ if is_on_trial => (was_set_up(|client| client.is_exclusive), was_set_up(|client| client.is_full)),
            Ok(config) => {
                let has_any = config.peers.iter().any(|peer| peer.allowed_ips.iter().any(is_any));
                (config.interface.exclusive, has_any && was_set_up(|client| client.is_full))
            }
            // A file that cannot be read opens nothing.
            Err(_) => {
                let is_loaded = loaded.contains_key(&ruleset::exclusive_table_name(interface));
                (is_loaded || was_set_up(|client| client.is_exclusive), was_set_up(|client| client.is_full))
            }
        };
        if promises.is_none() && !is_exclusive && loaded.is_empty() {
            return Ok(None);
        }
        let promises = promises.unwrap_or_default();
        let user = config.ok().and_then(|config| config.interface.user);
        let user = user.as_deref().unwrap_or(DAEMON_USER);
        let surroundings = Surroundings {
            is_exclusive,
            daemon_user: user_ids(user).map_or(0, |(user, _)| user),
            networks: networks(interface, &promises),
        };
        let tables = ruleset::tables(interface, &promises, &surroundings);
        Ok(Some(Self { interface: interface.to_owned(), promises, takes_all, surroundings, tables }))
    }

    /// Whether the tunnel's device exists.
    pub(super) fn has_device(&self) -> bool {
        nix::net::if_::if_nametoindex(self.interface.as_str()).is_ok()
    }

    /// Loads the tables, and removes a table that is no longer wanted.
    pub(super) fn load_tables(&self) -> Result<(), String> {
        let (mut text, before) = (String::new(), loaded(&self.interface));
        for name in before.keys() {
            if !self.tables.tables.iter().any(|(wanted, _)| wanted == name) {
                text += &format!("table inet {name} {{}}\ndelete table inet {name}\n");
            }
        }
        text += &self.tables.to_string();
        host::run_with_input(&["nft", "-f", "-"], &text)?;
        // Somebody may have taken rules away before the listing: of the same table an earlier listing is then the right one.
        let listing = |name: &str, text: &str| {
            let now = shown(name).unwrap_or_default();
            let lines = now.lines().count();
            let fuller = before.get(name).filter(|before| before.text == text && before.shown.lines().count() > lines);
            fuller.map_or(now, |before| before.shown.clone())
        };
        let loaded =
            |(name, text): &(String, String)| (name.clone(), Loaded { text: text.clone(), shown: listing(name, text) });
        let loaded: BTreeMap<_, _> = self.tables.tables.iter().map(loaded).collect();
        self.open_portal()?;
        let text = serde_json::to_string(&loaded).map_err(|error| error.to_string())?;
        let path = run_file(&self.interface, "tables");
        let new = run_file(&self.interface, "tables.new");
        let written = make_folder().and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(new, &path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The time for which the portal is still open, seconds.
    pub(super) fn portal_s(&self) -> Option<u64> {
        let text = fs::read_to_string(run_file(&self.interface, "portal")).ok()?;
        let end: u64 = text.trim().parse().ok()?;
        end.checked_sub(daemon::config::unix_time()).filter(|left| *left > 0 && self.surroundings.is_exclusive)
    }

    /// Lets DNS and web pages out for as long as the portal is open.
    pub(super) fn open_portal(&self) -> Result<(), String> {
        let Some(left) = self.portal_s() else { return Ok(()) };
        let elements: Vec<_> = bypass::PORTAL.iter().map(|(_, port)| format!("{port} timeout {left}s")).collect();
        let table = ruleset::exclusive_table_name(&self.interface);
        let text =
            format!("flush set inet {table} portal\nadd element inet {table} portal {{ {} }}\n", elements.join(", "));
        host::run_with_input(&["nft", "-f", "-"], &text)
    }
}

/// Whether a trial has given the running daemon networks that its file does not have.
fn is_on_trial(record: &Record) -> bool {
    let is_running = record.trial.as_ref().is_some_and(|trial| trial.process != 0);
    let routes = || host::output(&["ip", "-4", "route", "show", "dev", &record.interface]).unwrap_or_default();
    is_running && routes().lines().any(|line| line.starts_with("0.0.0.0/1") || line.starts_with("default"))
}

/// The networks of this host's devices, without the tunnel's and those of a server's uplinks.
fn networks(interface: &str, promises: &Promises) -> Vec<IpNet> {
    let Some(server) = &promises.server else { return Vec::new() };
    let is_other = |device: &String| device != interface && !server.uplinks.contains(device);
    let mut networks: Vec<_> = host::addresses()
        .into_iter()
        .filter(|address| is_other(&address.device))
        .map(|address| address.network.trunc())
        .collect();
    networks.sort();
    networks.dedup();
    networks
}

/// The loaded tables, by name.
fn loaded(interface: &str) -> BTreeMap<String, Loaded> {
    let text = fs::read_to_string(run_file(interface, "tables")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// A table as nft shows it, without what changes by itself.
fn shown(table: &str) -> Option<String> {
    host::output(&["nft", "-s", "-t", "list", "table", "inet", table])
}

/// The checks, in this order: until the tables are loaded, packets can leave outside an exclusive tunnel.
const LOOKS: [fn(&Wanted) -> Vec<Fault>; 5] = [
    |wanted| tables(wanted).into_iter().collect(),
    |wanted| wanted.promises.sysctls.iter().filter_map(sysctl).collect(),
    others_chains,
    |wanted| bypass::fault(wanted).into_iter().collect(),
    |wanted| names::fault(wanted).into_iter().collect(),
];

/// The faults that exist now. Each check is made after the previous faults have been consumed.
pub(super) fn faults(wanted: &Wanted) -> impl Iterator<Item = Fault> {
    LOOKS.into_iter().flat_map(|look| look(wanted))
}

/// The faults to report: a fault that a running keeper fixes in the meantime does not count.
pub(crate) fn examine(interface: &str) -> Result<Vec<Fault>, String> {
    let Some(wanted) = Wanted::read(interface)? else { return Ok(Vec::new()) };
    if Record::read(interface)?.is_some_and(|record| !record.is_kept()) {
        return Ok(vec![early_fault(interface)]);
    }
    let start = Instant::now();
    loop {
        let is_kept = super::is_running(interface);
        let mut faults: Vec<_> = faults(&wanted).collect();
        if !is_kept {
            faults.push(keeper_fault(interface));
        }
        if faults.is_empty() || !is_kept || start.elapsed() > MENDING_TIME {
            faults.extend(bypass::around(&wanted));
            return Ok(faults);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn keeper_fault(interface: &str) -> Fault {
    Fault {
        kind: FaultKind::Keeper,
        is_expected: false,
        text: format!(
            "`ropewalk setup keep {interface}` does not run: nothing restores settings for the tunnel that this host loses"
        ),
        remedy: start_command(interface),
    }
}

/// The command that starts the keeper, also one that runs.
pub(super) fn start_command(interface: &str) -> String {
    match Service::detect(interface, &config_file(interface)) {
        Service::Systemd(_) => {
            format!("`systemctl enable ropewalk-keep@{interface}; systemctl restart ropewalk-keep@{interface}`")
        }
        Service::Procd(script) => format!("`{script} restart`"),
        Service::Background { .. } => format!("`ropewalk setup keep {interface} &`"),
    }
}

/// For a setup of version 0.1.0, which recorded no promises to keep.
fn early_fault(interface: &str) -> Fault {
    Fault {
        kind: FaultKind::Keeper,
        is_expected: false,
        text: early_text(interface),
        remedy: format!("`ropewalk setup remove --name {interface}`, and a new setup"),
    }
}

/// The fault of such a setup.
pub(in super::super) fn early_text(interface: &str) -> String {
    format!(
        "{interface} was set up by an earlier version, whose firewall rules and resolvers are not restored when they are lost"
    )
}

fn sysctl((key, value): &(String, String)) -> Option<Fault> {
    let now = read_sysctl(key)?;
    (now != *value).then(|| Fault {
        kind: FaultKind::Sysctl { key: key.clone(), value: value.clone() },
        is_expected: false,
        text: format!("{key} is {now}, but the setup made it {value}: packets are not forwarded as they should be"),
        remedy: format!("`sysctl -w {key}={value}`"),
    })
}

fn tables(wanted: &Wanted) -> Option<Fault> {
    let remedy = format!("{} restores it, or its log says why it cannot", start_command(&wanted.interface));
    let loaded = loaded(&wanted.interface);
    if wanted.tables.tables.is_empty() && loaded.is_empty() {
        return None;
    }
    let of_wanted: Vec<_> = wanted.tables.tables.iter().map(|(name, text)| (name, text)).collect();
    let is_loaded = of_wanted.len() == loaded.len()
        && of_wanted.iter().all(|(name, text)| loaded.get(*name).is_some_and(|loaded| loaded.text == **text));
    let fault =
        |text: String, is_expected| Some(Fault { kind: FaultKind::Tables, is_expected, text, remedy: remedy.clone() });
    if host::program("nft").is_none() {
        return fault("nft, which translates, forwards and blocks, is not installed".into(), false);
    }
    let lost = loaded.iter().find_map(|(name, loaded)| match shown(name) {
        None => Some(format!("the nftables table {name} is missing (something flushed the ruleset)")),
        Some(now) if now != loaded.shown => Some(format!("the nftables table {name} was changed")),
        Some(_) => None,
    });
    match lost {
        Some(text) => fault(format!("{text}: {}", purpose(wanted)), false),
        None if is_loaded => None,
        None => fault(format!("the nftables tables are not loaded: {}", purpose(wanted)), true),
    }
}

/// The purpose of the tables.
fn purpose(wanted: &Wanted) -> &'static str {
    match (&wanted.promises.server, wanted.surroundings.is_exclusive) {
        (Some(_), _) => "without it clients have no Internet",
        (None, true) => "without it packets leave outside the tunnel",
        (None, false) => "without it the networks behind this host have no Internet",
    }
}

/// Chains of other programs that drop by default, and do not accept the tunnel's traffic.
fn others_chains(wanted: &Wanted) -> Vec<Fault> {
    let Some(text) = host::output(&["nft", "-j", "-t", "list", "ruleset"]) else { return Vec::new() };
    let ruleset: Value = serde_json::from_str(&text).unwrap_or_default();
    let objects = || ruleset["nftables"].as_array().into_iter().flatten();
    let word = |object: &Value, key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let comment = comment(&wanted.interface);
    let mut faults = Vec::new();
    for chain in objects().map(|object| &object["chain"]).filter(|chain| chain["hook"].is_string()) {
        let (family, table, name) = (word(chain, "family"), word(chain, "table"), word(chain, "name"));
        if table.starts_with("ropewalk_") || !["ip", "ip6", "inet"].contains(&&*family) {
            continue;
        }
        let hook = word(chain, "hook");
        let rules = ruleset::accepting_rules(&wanted.interface, &wanted.promises, &hook);
        let is_of_chain =
            |rule: &&Value| rule["family"] == *family && rule["table"] == *table && rule["chain"] == *name;
        let of_chain: Vec<&Value> = objects().map(|object| &object["rule"]).filter(is_of_chain).collect();
        let own = of_chain.iter().filter(|rule| rule["comment"] == *comment).count();
        let first_drop = of_chain.iter().position(|rule| drops_all(rule));
        let is_before = |count: usize| first_drop.is_none_or(|index| index >= count);
        let drops = chain["policy"] == "drop" || first_drop.is_some();
        if rules.is_empty() || !drops || own == rules.len() && is_before(own) {
            continue;
        }
        let place = format!("{family} {table} {name}");
        faults.push(Fault {
            is_expected: false,
            text: format!("the nftables chain {place} drops what the tunnel {} needs", wanted.interface),
            remedy: format!("`nft insert rule {place} {}`", rules.join(&format!("`, `nft insert rule {place} "))),
            kind: FaultKind::Rules { place, rules },
        });
    }
    faults
}

/// Whether a rule drops or refuses every packet that reaches it.
fn drops_all(rule: &Value) -> bool {
    let is_drop = |expression: &Value| {
        expression.get("drop").is_some() || expression.get("reject").is_some() || expression["xt"]["name"] == "REJECT"
    };
    let expressions = rule["expr"].as_array().map_or(&[][..], Vec::as_slice);
    expressions.iter().any(is_drop)
        && expressions.iter().all(|expression| is_drop(expression) || expression.get("counter").is_some())
}

/// Deletes the rules with this comment of one chain.
pub(super) fn delete_rules_of(place: &str, comment: &str) -> Result<(), String> {
    let words: Vec<&str> = ["nft", "-j", "-t", "list", "chain"].into_iter().chain(place.split(' ')).collect();
    let text = host::output(&words).ok_or_else(|| format!("`{}` fails", words.join(" ")))?;
    let chain: Value = serde_json::from_str(&text).unwrap_or_default();
    let rules = chain["nftables"].as_array().into_iter().flatten().map(|object| &object["rule"]);
    let own = rules.filter(|rule| rule["comment"] == comment);
    let lines: String = own.map(|rule| format!("delete rule {place} handle {}\n", rule["handle"])).collect();
    if lines.is_empty() { Ok(()) } else { host::run_with_input(&["nft", "-f", "-"], &lines) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_that_refuses_everything_is_told_from_one_with_a_condition() {
        let rule = |expressions: Value| json!({ "expr": expressions });
        assert!(drops_all(&rule(json!([{ "counter": {} }, { "drop": null }]))));
        assert!(drops_all(&rule(json!([{ "reject": { "type": "icmpx" } }]))));
        assert!(drops_all(&rule(json!([{ "counter": {} }, { "xt": { "type": "target", "name": "REJECT" } }]))));
        assert!(!drops_all(&rule(json!([{ "match": {} }, { "drop": null }]))));
        assert!(!drops_all(&rule(json!([{ "accept": null }]))) && !drops_all(&rule(json!([]))));
    }
}
