//! `[interface]`.

use super::context::{Context, flag, missing};
use super::{role, value};
use crate::config::endpoint::DEFAULT_PORT;
use crate::config::model::{InterfaceConfig, TunnelConfig, UplinkOptions};
use crate::config::tables::{InterfaceTable, NumberOrWord, UplinksValue};
use crate::data_plane::MAX_THREADS;
use parse::{Diagnostic, Spanned, suggest};
use std::path::Path;

/// Linux's limit (IFNAMSIZ - 1).
const MAX_NAME_LEN: usize = 15;

/// Whether `mode` is `mpt`.
pub(super) fn is_mpt(table: &InterfaceTable, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let Some(mode) = &table.mode else { return false };
    if !["mpt", "ropewalk"].contains(&mode.get().as_str()) {
        let diagnostic = Diagnostic::new(mode.span(), format!("unknown mode `{}`", mode.get()));
        diagnostics.push(diagnostic.with_help(suggest(mode.get(), &["ropewalk", "mpt"])));
    }
    if mode.get() == "mpt" && !cfg!(feature = "mpt") {
        let diagnostic = Diagnostic::new(mode.span(), "this build has no `mpt` mode");
        diagnostics.push(diagnostic.with_help("cargo build --release --features mpt"));
    }
    mode.get() == "mpt"
}

pub(super) fn interface(
    table: Option<&Spanned<InterfaceTable>>,
    path: &Path,
    context: &mut Context<'_>,
) -> InterfaceConfig {
    let span = table.map_or(0..0, Spanned::span);
    let values = table.map_or_else(InterfaceTable::default, |table| table.get().clone());
    let name = name(&values, span.clone(), path, context);
    let texts = value::strings(values.address.as_ref());
    let addresses = texts.into_iter().filter_map(|(text, span)| {
        check_prefix(&text, span.clone(), context);
        context.ok(value::parse_network(&text, span))
    });
    let addresses: Vec<_> = addresses.collect();
    if table.is_some() && values.address.is_none() {
        context.report(missing(span, "address").with_help("the inner address, such as `address = \"10.77.0.1/24\"`"));
    }
    let min_mtu = if addresses.iter().any(|address| address.addr().is_ipv6()) { 1280 } else { 576 };
    InterfaceConfig {
        name,
        mtu: values
            .mtu
            .as_ref()
            .map(|_| value::integer(values.mtu.as_ref(), min_mtu..=65_000, min_mtu, context) as u16),
        addresses,
        listen_port: value::integer(values.listen_port.as_ref(), 0..=65_535, i64::from(DEFAULT_PORT), context) as u16,
        routes: flag(values.routes.as_ref(), true),
        peers_file: values.peers_file.map(|file| context.folder.join(file.get())),
        uplinks: values.uplinks.as_ref().and_then(|value| context.ok(uplinks(value))),
        policy_routing: values.routing.as_ref().is_some_and(|text| auto(text, context)),
        exclusive: flag(values.exclusive.as_ref(), false),
        threads: threads(values.threads.as_ref(), context),
        user: values.user.map(|user| user.get().clone()),
        metrics: values.metrics.and_then(|text| {
            let error = |_| Diagnostic::new(text.span(), format!("`{}` is not an address with a port", text.get()));
            context.ok(text.get().parse().map_err(|cause| error(cause).with_help("such as `127.0.0.1:9754`")))
        }),
    }
}

fn uplinks(value: &Spanned<UplinksValue>) -> Result<UplinkOptions, Diagnostic> {
    match value.get() {
        UplinksValue::Word(word) if word == "auto" => Ok(UplinkOptions::default()),
        UplinksValue::Word(word) => {
            let help = "`\"auto\"`, or `{ exclude = [\"docker*\"], metered = [\"wwan*\"] }`";
            Err(Diagnostic::new(value.span(), format!("unknown value `{word}`")).with_help(help))
        }
        UplinksValue::Table(table) => role::uplinks(table, &value.span()),
    }
}

/// Whether `routing` is "auto"; "off" is the default.
fn auto(text: &Spanned<String>, context: &mut Context<'_>) -> bool {
    if !["auto", "off"].contains(&text.get().as_str()) {
        let diagnostic = Diagnostic::new(text.span(), format!("unknown value `{}`", text.get()));
        context.report(diagnostic.with_help(suggest(text.get(), &["auto", "off"])));
    }
    text.get() == "auto"
}

/// Reports an address without a prefix length: its network, and the peers in it, would have no route.
fn check_prefix(text: &str, span: std::ops::Range<usize>, context: &mut Context<'_>) {
    if let Ok(address) = text.parse::<std::net::IpAddr>() {
        let (network, host) = if address.is_ipv4() { (24, 32) } else { (64, 128) };
        let diagnostic = Diagnostic::new(span, format!("`{text}` has no prefix length"));
        context.report(diagnostic.with_help(format!("`{text}/{network}`, or `{text}/{host}` for this host alone")));
    }
}

/// The number of data threads; `None` for `"auto"`.
fn threads(value: Option<&Spanned<NumberOrWord>>, context: &mut Context<'_>) -> Option<u8> {
    let Some(value) = value else { return Some(1) };
    match value.get() {
        NumberOrWord::Word(word) if word == "auto" => return None,
        NumberOrWord::Number(number) if (1..=MAX_THREADS as i64).contains(number) => return Some(*number as u8),
        NumberOrWord::Number(_) | NumberOrWord::Word(_) => {}
    }
    let diagnostic = Diagnostic::new(value.span(), "not a number of threads");
    context.report(diagnostic.with_help(format!("1 to {MAX_THREADS}, or \"auto\": one for each processor")));
    Some(1)
}

/// Refuses several data threads together with features that need a single one.
pub(super) fn check_threads(value: Option<&Spanned<NumberOrWord>>, config: &TunnelConfig, context: &mut Context<'_>) {
    let Some(value) = value.filter(|_| config.data_threads() > 1) else { return };
    let without_port = config.paths.iter().find(|path| path.listen_port == 0);
    let reason = if context.is_mpt {
        "`mpt` mode has one data thread".to_owned()
    } else if config.relay.is_some() {
        "the relay has one data thread".to_owned()
    } else if config.peers.iter().any(|peer| peer.priority.is_some()) {
        "several servers (`priority`) have one data thread".to_owned()
    } else if let Some(path) = without_port {
        format!("the sockets of several data threads share a port, and path `{}` has none", path.name)
    } else {
        return;
    };
    let help = "`threads = 1`, or leave it out; several need peers in `ropewalk` mode, a `listen-port`, and no `relay`";
    context.report(Diagnostic::new(value.span(), reason).with_help(help));
}

/// The device's name: `name`, or the file's name without its extension.
fn name(values: &InterfaceTable, table: std::ops::Range<usize>, path: &Path, context: &mut Context<'_>) -> String {
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (name, span) = values.name.as_ref().map_or_else(|| (stem(), table), |name| (name.get().clone(), name.span()));
    if !is_device_name(&name) {
        let message = format!("`{name}` is not a valid device name");
        let help = format!("`name` has 1 to {MAX_NAME_LEN} letters, digits, `-`, `_` or `.`, such as \"rw0\"");
        context.report(Diagnostic::new(span, message).with_help(help));
    }
    name
}

/// Whether `name` is a valid name of a network device, and of a file in the runtime directory.
pub(super) fn is_device_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=MAX_NAME_LEN).contains(&name.len()) && name.chars().all(is_allowed) && !name.starts_with('.')
}
