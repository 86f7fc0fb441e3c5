//! The file that `peers-file` names, with peers in addition to those of the configuration.

use super::context::Context;
use super::peer::Peers;
use crate::config::mask::mask_secrets;
use crate::config::peers_file;
use crate::config::tables::PeersTables;
use crate::config::unix_time;
use parse::{Diagnostic, SourceLocation, Spanned};
use std::io;
use std::path::Path;

/// Adds the peers of the file `name` to `peers`, except those whose token or time has expired. A missing file has no peers.
/// Errors are recorded at their place in that file.
pub(super) fn read_into(name: &Spanned<String>, peers: &mut Peers, context: &mut Context<'_>) {
    let path = context.folder.join(name.get());
    let file = match peers_file::read(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            let message = format!("cannot read {}: {error}", path.display());
            return context.report(Diagnostic::new(name.span(), message).with_help("a file of the daemon's user"));
        }
    };
    context.check_mode(name.span(), &path, file.loose_mode);
    let mut diagnostics = Vec::new();
    match parse::parse(&file.text).and_then(parse::deserialize::<PeersTables>) {
        Ok(tables) => {
            let mut context = Context {
                is_mpt: false,
                path: &path,
                loose_mode: None,
                allow_readable_keys: context.allow_readable_keys,
                folder: path.parent().unwrap_or(Path::new("")),
                diagnostics: &mut diagnostics,
                warnings: context.warnings,
            };
            tables.peer.iter().flatten().for_each(|table| peers.add(table, true, &mut context));
        }
        Err(diagnostic) => diagnostics.push(diagnostic),
    }
    let text = if diagnostics.is_empty() { String::new() } else { mask_secrets(&file.text) };
    for diagnostic in diagnostics {
        let location =
            SourceLocation { file_name: path.display().to_string(), text: text.clone(), span: diagnostic.span };
        context.report(Diagnostic { span: name.span(), location: Some(Box::new(location)), ..diagnostic });
    }
    let now = unix_time();
    let is_over = |end: Option<u64>| end.is_some_and(|end| end <= now);
    peers.list.retain(|peer| !is_over(peer.token_expires) && !is_over(peer.expires));
}
