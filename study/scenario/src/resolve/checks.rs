//! Checks of values that several tables share.

use crate::file::Algorithm;
use crate::files::Files;
use crate::model::AlgorithmChoice;
use parse::{Diagnostic, Size, Spanned};
use std::collections::BTreeSet;
use std::ops::Range;

/// `value`, unless it is zero.
pub(super) fn check_positive<'a, T>(
    key: &str,
    value: &'a Spanned<T>,
    as_u64: impl Fn(&T) -> u64,
) -> Result<&'a T, Diagnostic> {
    match as_u64(value.get()) {
        0 => Err(Diagnostic::new(value.span(), format!("`{key}` must be more than zero"))),
        _ => Ok(value.get()),
    }
}

/// A size that fits the model's 32 bits.
pub(super) fn parse_bytes(size: &Spanned<Size>) -> Result<u32, Diagnostic> {
    u32::try_from(size.get().0).map_err(|_| Diagnostic::new(size.span(), "more than 4 GiB is too much"))
}

/// An algorithm with the file that it names; `default` if none is given.
pub(super) fn algorithm(
    algorithm: Option<&Spanned<Algorithm>>,
    default: AlgorithmChoice,
    files: &mut Files,
) -> Result<AlgorithmChoice, Diagnostic> {
    let Some(algorithm) = algorithm.map(Spanned::get) else { return Ok(default) };
    let mut choice = algorithm.choice.clone();
    if let Some(name) = &algorithm.file {
        choice.parameters.insert(params::FILE.to_owned(), files.parameter(name)?);
    }
    Ok(choice)
}

/// The position of `name` in `names`.
pub(super) fn find<'a>(
    kind: &str,
    name: &str,
    span: Range<usize>,
    names: impl Iterator<Item = &'a str>,
) -> Result<usize, Diagnostic> {
    let names: Vec<&str> = names.collect();
    names
        .iter()
        .position(|candidate| *candidate == name)
        .ok_or_else(|| Diagnostic::unknown_name(span, kind, name, &names))
}

/// The names that tables of one kind have taken.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Takes `name`, unless another table of this kind has it.
    pub(super) fn take(&mut self, kind: &str, name: &str, span: Range<usize>) -> Result<String, Diagnostic> {
        match self.0.insert(name.to_owned()) {
            true => Ok(name.to_owned()),
            false => Err(Diagnostic::new(span, format!("there are two {kind}s called `{name}`"))),
        }
    }
}
