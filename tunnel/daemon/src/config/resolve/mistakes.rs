//! Keys and addresses of the wrong end: each is valid by itself, but the tunnel would not work.

use super::context::Context;
use super::value;
use crate::config::model::{ConfiguredPeer, InterfaceConfig, Mode};
use crate::config::tables::{ConfigFile, InterfaceTable};
use ipnet::IpNet;
use parse::{Diagnostic, Spanned};
use std::ops::Range;

/// Reports this end's own public key and addresses where the peer's belong, and a public key as the private one.
pub(super) fn check(
    file: &ConfigFile,
    mode: &Mode,
    interface: &InterfaceConfig,
    peers: &[ConfiguredPeer],
    context: &mut Context<'_>,
) {
    let table = file.interface.as_ref().map(Spanned::get);
    let tables = file.peer.as_deref().unwrap_or_default();
    // Computed once, because it takes a multiplication on the curve.
    let own_key = match mode {
        Mode::Ropewalk { private_key } => Some(private_key.public_key()),
        Mode::Mpt(_) => None,
    };
    for (table, peer) in tables.iter().zip(peers) {
        if let Some(text) = table.get().public_key.as_ref().filter(|_| own_key.is_some() && peer.public_key == own_key)
        {
            let help = "the other end's: `ropewalk pubkey < KEYFILE` there prints it";
            context.report(Diagnostic::new(text.span(), "this is the public key of this end itself").with_help(help));
        }
        for (text, span) in value::strings(table.get().allowed_ips.as_ref()) {
            let is_own = |network: IpNet| {
                network.prefix_len() == network.max_prefix_len()
                    && interface.addresses.iter().any(|own| own.addr() == network.addr())
            };
            if value::parse_network(&text, span.clone()).is_ok_and(is_own) {
                let diagnostic = Diagnostic::new(span, format!("`{text}` is the address of this end itself"));
                context.report(diagnostic.with_help("the inner addresses behind the peer, such as its own"));
            }
        }
    }
    if let (Mode::Ropewalk { private_key }, Some(span)) = (mode, table.and_then(private_key_span)) {
        if peers.iter().filter_map(|peer| peer.public_key).any(|key| private_key.has_bytes_of(&key)) {
            let help = "`ropewalk genkey` prints a private key, `ropewalk pubkey` its public half";
            let message = "the private key is a peer's public key: the two were swapped";
            context.report(Diagnostic::new(span, message).with_help(help));
        } else if !private_key.is_clamped() {
            let warning = "the private key has not the form that `ropewalk genkey` and `wg genkey` print (RFC 7748): is it \
                           a public key?";
            context.warnings.push(warning.into());
        }
    }
}

fn private_key_span(table: &InterfaceTable) -> Option<Range<usize>> {
    let file = table.private_key_file.as_ref().map(Spanned::span);
    file.or_else(|| table.private_key.as_ref().map(Spanned::span))
}
