//! `[interface]`.

use super::{Context, missing, value};
use crate::config::{DEFAULT_PORT, Interface, file};
use parse::{At, Fault, suggest};
use std::path::Path;

/// Linux's limit (IFNAMSIZ - 1).
const LONGEST_NAME: usize = 15;

/// Whether MPT's protocol is spoken.
pub(super) fn is_mpt(table: &file::Interface, faults: &mut Vec<Fault>) -> bool {
    let Some(mode) = &table.mode else { return false };
    if !["mpt", "ropewalk"].contains(&mode.get().as_str()) {
        let fault = Fault::at(mode.span(), format!("unknown mode `{}`", mode.get()));
        faults.push(fault.help(suggest(mode.get(), &["ropewalk", "mpt"])));
    }
    mode.get() == "mpt"
}

pub(super) fn interface(table: Option<&At<file::Interface>>, path: &Path, context: &mut Context<'_>) -> Interface {
    let span = table.map_or(0..0, At::span);
    let given = table.map_or_else(file::Interface::default, |table| table.get().clone());
    let name = name(&given, span.clone(), path, context);
    let texts = value::texts(given.address.as_ref());
    let addresses = texts.into_iter().filter_map(|(text, span)| context.noted(value::network(&text, span)));
    let addresses: Vec<_> = addresses.collect();
    if table.is_some() && given.address.is_none() {
        context.fault(missing(span, "address").help("the inner address, such as `address = \"10.77.0.1/24\"`"));
    }
    let least = if addresses.iter().any(|it| it.addr().is_ipv6()) { 1280 } else { 576 };
    Interface {
        name,
        mtu: given.mtu.as_ref().map(|_| value::within(given.mtu.as_ref(), least..=65_000, least, context) as u16),
        addresses,
        listen_port: value::within(given.listen_port.as_ref(), 0..=65_535, i64::from(DEFAULT_PORT), context) as u16,
        routes: given.routes.as_ref().is_none_or(|routes| *routes.get()),
        user: given.user.map(|user| user.get().clone()),
        metrics: given.metrics.and_then(|text| {
            let wrong = |_| Fault::at(text.span(), format!("`{}` is no address with a port", text.get()));
            context.noted(text.get().parse().map_err(|e| wrong(e).help("such as `127.0.0.1:9754`")))
        }),
    }
}

/// The device's name: the key's, or the file's stem.
fn name(given: &file::Interface, table: std::ops::Range<usize>, path: &Path, context: &mut Context<'_>) -> String {
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (name, span) = given.name.as_ref().map_or_else(|| (stem(), table), |name| (name.get().clone(), name.span()));
    if !is_device(&name) {
        let message = format!("`{name}` cannot be a device's name");
        let help = format!("`name` has 1 to {LONGEST_NAME} letters, digits, `-`, `_` or `.`, such as \"rw0\"");
        context.fault(Fault::at(span, message).help(help));
    }
    name
}

/// A device may have this name, and a file in /run too.
pub(super) fn is_device(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('.')
}
