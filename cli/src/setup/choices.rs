//! The decisions of a client's setup other than the paths: the networks behind it, and whether the tunnel is exclusive.
//! Options decide first, then an answer at the terminal, then a default that suits most users.

use super::promises::{ClientPromises, Lan};
use super::token::Token;
use super::{SetupClient, firewall, host, lan, trial};
use crate::{Failure, output};
use daemon::control_plane::has_strict_reverse_path;
use std::io::IsTerminal;

/// The port of remote logins, if this setup does not run in one.
const SSH_PORT: u16 = 22;

/// The shortest prefix of a network behind this machine that a token may name.
const MIN_PREFIX_LEN: u8 = 8;

/// The decisions.
pub(super) struct Choices {
    pub(super) promises: ClientPromises,
    pub(super) is_exclusive: bool,
    /// Kernel settings.
    pub(super) sysctls: Vec<(String, String)>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

/// Decides. `uplinks` are the devices of the paths.
pub(super) fn choose(arguments: &SetupClient, token: &Token, uplinks: &[String]) -> Result<Choices, Failure> {
    let is_full = arguments.networks.is_empty();
    let mut notes = Vec::new();
    let lans = lans(arguments, token, &mut notes)?;
    let is_exclusive = is_exclusive(arguments, is_full)?;
    let login =
        (is_exclusive && arguments.login.as_deref() != Some("no")).then(|| trial::login_port().unwrap_or(SSH_PORT));
    let promises = ClientPromises {
        is_full,
        dns: if is_full { token.dns.clone() } else { Vec::new() },
        server: token.server_addresses(),
        is_exclusive,
        login,
        local_networks: arguments.local_networks,
        bypass: arguments.bypass.clone(),
        lans,
    };
    notes.extend(describe(&promises, is_exclusive));
    let sysctls = sysctls(&promises, uplinks);
    Ok(Choices { promises, is_exclusive, sysctls, notes })
}

fn is_asked(arguments: &SetupClient) -> bool {
    !arguments.yes && !arguments.dry_run && std::io::stdin().is_terminal()
}

/// The networks behind this host that use the tunnel.
fn lans(arguments: &SetupClient, token: &Token, notes: &mut Vec<String>) -> Result<Vec<Lan>, Failure> {
    if arguments.lan.iter().any(|text| text == lan::NONE) {
        return Ok(Vec::new());
    }
    if !arguments.lan.is_empty() {
        let named = arguments.lan.iter().map(|text| lan::named(text).map_err(Failure::Usage));
        return Ok(named.collect::<Result<Vec<_>, _>>()?.concat());
    }
    let mut lans = Vec::new();
    for network in &token.lans {
        match lan::named(&network.to_string()) {
            // The default route does not count.
            _ if network.prefix_len() < MIN_PREFIX_LEN => {
                notes.push(format!(
                    "the token names {network} as a network behind this machine, which is too large for one"
                ));
            }
            Ok(named) => lans.extend(named),
            Err(error) => notes.push(format!("the token names a network behind this machine: {error}")),
        }
    }
    if !token.lans.is_empty() {
        return Ok(lans);
    }
    let candidates = lan::candidates(&arguments.name);
    let is_router = lan::is_router();
    let Some(first) = candidates.first() else { return Ok(Vec::new()) };
    let list = list(&candidates);
    let takes_them = if is_asked(arguments) {
        host::is_agreed(&format!("{list} seems to be behind this machine. Should it use the tunnel?"), is_router)
    } else {
        is_router
    };
    if takes_them {
        return Ok(candidates);
    }
    notes.push(format!("{list} does not use the tunnel; --lan {} makes this machine its router", first.device));
    Ok(Vec::new())
}

fn list(lans: &[Lan]) -> String {
    let texts: Vec<_> = lans.iter().map(|lan| format!("{} ({})", lan.network, lan.device)).collect();
    texts.join(" and ")
}

/// Whether everything but the tunnel is blocked.
fn is_exclusive(arguments: &SetupClient, is_full: bool) -> Result<bool, Failure> {
    match (arguments.exclusive.as_deref(), is_full) {
        (Some("yes"), false) => Err(Failure::Usage("--exclusive yes is for all traffic, without --networks".into())),
        (Some(word), _) => Ok(word == "yes"),
        (None, false) => Ok(false),
        (None, true) if host::program("nft").is_none() => {
            output::warn("note: nft is not installed: traffic outside the tunnel is not blocked (--exclusive no)");
            Ok(false)
        }
        (None, true) if is_asked(arguments) => {
            Ok(host::is_agreed("Should everything else be blocked, even while the tunnel is down?", true))
        }
        (None, true) => Ok(true),
    }
}

fn describe(promises: &ClientPromises, is_exclusive: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !promises.lans.is_empty() {
        notes.push(format!("{} uses the tunnel through this machine", list(&promises.lans)));
    }
    if !promises.bypass.is_empty() {
        let texts: Vec<_> = promises.bypass.iter().map(ToString::to_string).collect();
        notes.push(format!("{} does not use the tunnel", texts.join(", ")));
    }
    if is_exclusive {
        let login = promises.login.map_or_else(String::new, |port| format!(", answers to logins at TCP port {port}"));
        notes.push(format!(
            "everything but the tunnel is blocked, even while it is down, until `ropewalk setup remove`, except DHCP, \
             neighbour discovery{login}. --exclusive no allows the rest; `ropewalk portal` opens it for a hotel's login page"
        ));
    }
    notes
}

/// Kernel settings: forwarding for the networks behind this host, and reverse path filtering that lets replies in.
fn sysctls(promises: &ClientPromises, uplinks: &[String]) -> Vec<(String, String)> {
    let has_ipv6 = promises.lans.iter().any(|lan| lan.network.addr().is_ipv6());
    let mut keys = if promises.lans.is_empty() { Vec::new() } else { firewall::forwarding(has_ipv6, uplinks) };
    let needs_loose = uplinks.len() > 1 || !promises.bypass.is_empty();
    let strict = uplinks.iter().filter(|uplink| needs_loose && has_strict_reverse_path(uplink));
    keys.extend(strict.map(|uplink| (format!("net/ipv4/conf/{uplink}/rp_filter"), "2".to_owned())));
    keys
}
