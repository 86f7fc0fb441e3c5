//! `[interface]`.

use super::context::{Context, flag, missing};
use super::value;
use crate::config::endpoint::DEFAULT_PORT;
use crate::config::model::InterfaceConfig;
use crate::config::tables::InterfaceTable;
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
    let addresses = texts.into_iter().filter_map(|(text, span)| context.ok(value::parse_network(&text, span)));
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
        user: values.user.map(|user| user.get().clone()),
        metrics: values.metrics.and_then(|text| {
            let error = |_| Diagnostic::new(text.span(), format!("`{}` is not an address with a port", text.get()));
            context.ok(text.get().parse().map_err(|cause| error(cause).with_help("such as `127.0.0.1:9754`")))
        }),
    }
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
