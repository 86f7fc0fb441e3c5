//! The state of resolving a file: the errors and warnings found so far.

use crate::config::secrets;
use parse::{Diagnostic, Spanned};
use std::ops::Range;
use std::path::Path;

/// Errors and warnings, and the parameters of every table's resolver.
pub(super) struct Context<'a> {
    /// Whether the mode is `mpt`.
    pub(super) is_mpt: bool,
    /// The configuration.
    pub(super) path: &'a Path,
    /// The mode of the configuration if group or others may read it.
    pub(super) loose_mode: Option<u32>,
    /// Whether group and others may read secrets.
    pub(super) allow_readable_keys: bool,
    /// The folder of relative key files.
    pub(super) folder: &'a Path,
    pub(super) diagnostics: &'a mut Vec<Diagnostic>,
    pub(super) warnings: &'a mut Vec<String>,
}

impl Context<'_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// The value of `result`, or `None` after recording its error.
    pub(super) fn ok<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|diagnostic| self.diagnostics.push(diagnostic)).ok()
    }

    /// Records an error if group or others may read a secret in the file `name`; the secret or the name of its file is
    /// at `span`. If the configuration allows this, records a warning instead.
    pub(super) fn check_mode(&mut self, span: Range<usize>, name: &Path, loose_mode: Option<u32>) {
        let Some(mode) = loose_mode else { return };
        let name = name.display().to_string();
        if !self.allow_readable_keys {
            return self.report(secrets::loose_mode_error(span, &name, mode));
        }
        let warning = format!("{name} holds a secret and is readable by others: chmod 600 {name}");
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Records an error if `key`, which has no meaning in this mode, is given.
    pub(super) fn refuse<T>(&mut self, key: Option<&Spanned<T>>, name: &str, help: &str) {
        if let Some(key) = key {
            self.report(Diagnostic::new(key.span(), format!("`{name}` has no meaning in this mode")).with_help(help));
        }
    }
}

/// The error of a missing key in the table at `span`.
pub(super) fn missing(span: Range<usize>, key: &str) -> Diagnostic {
    Diagnostic { missing_key: key.to_owned(), ..Diagnostic::new(span, format!("missing key `{key}`")) }
}

/// Whether a boolean key is given as true; `default` if it is not given.
pub(super) fn flag(key: Option<&Spanned<bool>>, default: bool) -> bool {
    key.map_or(default, |value| *value.get())
}
