//! Checks of values that several tables share.

use parse::{At, Fault, Size};
use std::ops::Range;

/// `value`, unless it is zero.
pub(super) fn positive<'a, T>(key: &str, value: &'a At<T>, number: impl Fn(&T) -> u64) -> Result<&'a T, Fault> {
    match number(value.get()) {
        0 => Err(Fault::at(value.span(), format!("`{key}` must be more than zero"))),
        _ => Ok(value.get()),
    }
}

/// A size that fits the model's 32 bits.
pub(super) fn bytes(size: &At<Size>) -> Result<u32, Fault> {
    u32::try_from(size.get().0).map_err(|_| Fault::at(size.span(), "more than 4 GiB, that cannot be meant"))
}

/// The position of `name` in `names`.
pub(super) fn find<'a>(
    kind: &str,
    name: &str,
    span: Range<usize>,
    names: impl Iterator<Item = &'a str>,
) -> Result<usize, Fault> {
    let names: Vec<&str> = names.collect();
    names.iter().position(|known| *known == name).ok_or_else(|| Fault::unknown(span, kind, name, &names))
}

/// Refuses a name that something else has already.
pub(super) fn unique<'a>(
    kind: &str,
    name: &str,
    span: Range<usize>,
    mut others: impl Iterator<Item = &'a str>,
) -> Result<String, Fault> {
    match others.any(|other| other == name) {
        true => Err(Fault::at(span, format!("there are two {kind}s called `{name}`"))),
        false => Ok(name.to_owned()),
    }
}
