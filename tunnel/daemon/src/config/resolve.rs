//! What the file means: addresses, keys, quantities, names of registries, and what goes together.
//!
//! Each reader takes the list of faults and goes on with some value after a fault: the list says that the value is
//! none.

mod carriage;
mod interface;
mod path;
mod peer;
mod value;

use super::file::{File, Mpt};
use super::{Config, Mode};
use parse::{At, Fault};
use seal::PrivateKey;
use std::path::Path;
use units::Span;

/// The file's meaning; worthless if a fault was added.
pub(super) fn config(file: &File, path: &Path, faults: &mut Vec<Fault>) -> Config {
    let mut warnings = Vec::new();
    let table = file.interface.as_ref().map_or_else(Default::default, |table| table.get().clone());
    let is_mpt = interface::is_mpt(&table, faults);
    if file.interface.is_none() {
        faults.push(missing(0..0, "interface").help("[interface] with `address` and `private-key-file`"));
    }
    let secrets = path.parent().unwrap_or(Path::new(""));
    let mut context = Context { is_mpt, beside: secrets, faults, warnings: &mut warnings };
    let mode = mode(file, &table, &mut context);
    let mut interface = interface::interface(file.interface.as_ref(), path, &mut context);
    let peers = peer::peers(file, &mut context);
    let paths = path::paths(file, &mut interface, &peers, &mut context);
    let weights: Vec<u32> = paths.iter().map(|path| path.weight).collect();
    let carriage = carriage::carriage(file.tunnel.as_ref(), &weights, &mut context);
    Config { interface, mode, peers, paths, carriage, warnings }
}

/// What every reader needs.
struct Context<'a> {
    is_mpt: bool,
    /// Where relative key files lie.
    beside: &'a Path,
    faults: &'a mut Vec<Fault>,
    warnings: &'a mut Vec<String>,
}

impl Context<'_> {
    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// `result`'s value; its fault is noted.
    fn noted<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.faults.push(fault)).ok()
    }

    /// `key` has no meaning in this mode.
    fn refuse<T>(&mut self, key: Option<&At<T>>, name: &str, right: &str) {
        if let Some(key) = key {
            self.fault(Fault::at(key.span(), format!("`{name}` has no meaning in this mode")).help(right));
        }
    }
}

/// `key` is missing in the table at `span`.
fn missing(span: std::ops::Range<usize>, key: &str) -> Fault {
    Fault { missing: key.to_owned(), ..Fault::at(span, format!("missing key `{key}`")) }
}

fn mode(file: &File, table: &super::file::Interface, context: &mut Context<'_>) -> Mode {
    if context.is_mpt {
        let right = "`mpt` mode knows no keys: remove it, or leave `mode` out to be authenticated and encrypted";
        context.refuse(table.private_key.as_ref(), "private-key", right);
        context.refuse(table.private_key_file.as_ref(), "private-key-file", right);
        context
            .warnings
            .push("mode \"mpt\" neither authenticates nor encrypts: for test beds and trusted networks".into());
        return Mode::Mpt(mpt(file.mpt.as_ref(), context));
    }
    context.refuse(file.mpt.as_ref(), "mpt", "only with mode = \"mpt\" in [interface]");
    let span = file.interface.as_ref().map_or(0..0, At::span);
    let help =
        "`(umask 077; ropewalk genkey > /etc/ropewalk/rw0.key)`, then private-key-file = \"/etc/ropewalk/rw0.key\"";
    let key = value::secret(table.private_key.as_ref(), table.private_key_file.as_ref(), "private-key", context);
    if key.is_none() && file.interface.is_some() && table.private_key.is_none() && table.private_key_file.is_none() {
        context.fault(missing(span, "private-key-file").help(help));
    }
    Mode::Ropewalk { private_key: key.unwrap_or(PrivateKey::from_bytes([0; 32])) }
}

/// MPT has no paths that die without `keepalive`, and three missed ones kill by default.
fn mpt(table: Option<&At<Mpt>>, context: &mut Context<'_>) -> super::Mpt {
    let table = table.map_or_else(Mpt::default, |table| table.get().clone());
    let window = value::within(table.reorder_window.as_ref(), 0..=1_000_000, 0, context);
    let keepalive = value::time(table.keepalive.as_ref(), context).filter(|span| *span > Span::ZERO);
    let dead = value::time(table.dead.as_ref(), context).unwrap_or(keepalive.unwrap_or(Span::ZERO) * 3);
    if let (Some(keepalive), Some(at)) = (keepalive, &table.dead)
        && dead <= keepalive
    {
        let message = "a path that is dead before the next keepalive is due is always dead";
        context.fault(Fault::at(at.span(), message).help(format!("more than {keepalive}, such as {}", keepalive * 3)));
    }
    let offload = table.offload.as_ref().is_none_or(|at| *at.get());
    super::Mpt { reorder_window: window as u32, offload, keepalive, dead }
}
