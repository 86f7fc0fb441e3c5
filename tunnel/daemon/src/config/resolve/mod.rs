//! The meaning of the file: addresses, keys, quantities, algorithms, and constraints between keys.
//!
//! Every resolver records its errors in the [`Context`] and continues with some value. If there is any error, the
//! resulting configuration is not used.

mod context;
mod interface;
mod mistakes;
mod mpt;
mod observation;
mod path;
mod peer;
mod peers_file;
mod realtime;
mod relay;
mod role;
mod tunnel;
mod value;

use super::model::{Mode, TunnelConfig};
use super::tables::{ConfigFile, InterfaceTable};
use context::{Context, flag, missing};
use machine::TunnelOptions;
use parse::{Diagnostic, Spanned};
use seal::PrivateKey;
use std::path::Path;

/// Resolves a file, whose mode is `loose_mode` if group or others may read it; the result is worthless if an error was
/// added to `diagnostics`.
pub(super) fn config(
    file: &ConfigFile,
    path: &Path,
    loose_mode: Option<u32>,
    diagnostics: &mut Vec<Diagnostic>,
) -> TunnelConfig {
    let mut warnings = Vec::new();
    let table = file.interface.as_ref().map_or_else(Default::default, |table| table.get().clone());
    let is_mpt = interface::is_mpt(&table, diagnostics);
    if file.interface.is_none() {
        diagnostics.push(missing(0..0, "interface").with_help("[interface] with `address` and `private-key-file`"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let allow_readable_keys = flag(table.allow_readable_keys.as_ref(), false);
    let mut context =
        Context { is_mpt, path, folder, loose_mode, allow_readable_keys, diagnostics, warnings: &mut warnings };
    let mode = mode(file, &table, &mut context);
    let mut interface = interface::interface(file.interface.as_ref(), path, &mut context);
    let peers = peer::peers(file, &mut context);
    mistakes::check(file, &mode, &interface, &peers, &mut context);
    let paths = path::paths(file, &mut interface, &peers, &mut context);
    let weights: Vec<u32> = paths.iter().map(|path| path.weight).collect();
    let (realtime_options, realtime) = realtime::class(file, &mut context).unzip();
    let options =
        TunnelOptions { realtime: realtime_options, ..tunnel::options(file.tunnel.as_ref(), &weights, &mut context) };
    let relay = relay::options(file.tunnel.as_ref(), &interface.name, &mut context);
    let observation = observation::observation(&table, file.notify.as_ref(), &mut context);
    let config =
        TunnelConfig { interface, mode, peers, paths, options, realtime, relay, observation, warnings: Vec::new() };
    interface::check_threads(table.threads.as_ref(), &config, &mut context);
    TunnelConfig { warnings, ..config }
}

fn mode(file: &ConfigFile, table: &InterfaceTable, context: &mut Context<'_>) -> Mode {
    if context.is_mpt {
        let help = "`mpt` mode has no keys: remove it, or leave `mode` out to be authenticated and encrypted";
        context.refuse(table.private_key.as_ref(), "private-key", help);
        context.refuse(table.private_key_file.as_ref(), "private-key-file", help);
        context
            .warnings
            .push("mode \"mpt\" neither authenticates nor encrypts: for test beds and trusted networks".into());
        return Mode::Mpt(mpt::options(file.mpt.as_ref(), context));
    }
    context.refuse(file.mpt.as_ref(), "mpt", "only with mode = \"mpt\" in [interface]");
    let span = file.interface.as_ref().map_or(0..0, Spanned::span);
    let help =
        "`(umask 077; ropewalk genkey > /etc/ropewalk/rw0.key)`, then private-key-file = \"/etc/ropewalk/rw0.key\"";
    let key = value::secret(table.private_key.as_ref(), table.private_key_file.as_ref(), "private-key", context);
    if key.is_none() && file.interface.is_some() && table.private_key.is_none() && table.private_key_file.is_none() {
        context.report(missing(span, "private-key-file").with_help(help));
    }
    Mode::Ropewalk { private_key: key.unwrap_or(PrivateKey::from_bytes([0; 32])) }
}
