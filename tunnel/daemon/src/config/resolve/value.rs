//! Single values: numbers in their range, times, rates, networks, keys.

use super::context::Context;
use crate::config::tables::StringOrList;
use crate::config::{self, secrets};
use ipnet::IpNet;
use parse::{Diagnostic, Quantity, Spanned, Time};
use seal::KeyError;
use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::str::FromStr;
use units::Span;
use zeroize::Zeroizing;

/// The strings of a list, each with its span.
pub(super) fn strings(list: Option<&Spanned<StringOrList>>) -> Vec<(String, Range<usize>)> {
    match list.map(|list| (list.get(), list.span())) {
        None => Vec::new(),
        Some((StringOrList::String(text), span)) => vec![(text.clone(), span)],
        Some((StringOrList::List(texts), _)) => texts.iter().map(|text| (text.get().clone(), text.span())).collect(),
    }
}

/// A network such as `10.77.0.1/24`; an address without a prefix length is a network with one address.
pub(super) fn parse_network(text: &str, span: Range<usize>) -> Result<IpNet, Diagnostic> {
    config::parse_network(text).ok_or_else(|| {
        let diagnostic = Diagnostic::new(span, format!("`{text}` is not an address with a prefix length"));
        diagnostic.with_help("such as `10.77.0.1/24` or `fd77::1/64`")
    })
}

pub(super) fn address(text: &Spanned<String>, context: &mut Context<'_>) -> Option<IpAddr> {
    let error = |_| {
        let message = format!("`{}` is not an address", text.get());
        Diagnostic::new(text.span(), message).with_help("such as `192.0.2.7` or `2001:db8::7`")
    };
    context.ok(text.get().parse().map_err(error))
}

pub(super) fn quantity<Q: Quantity>(text: &Spanned<String>) -> Result<Q, Diagnostic> {
    Q::parse(text.get()).map_err(|error| {
        let (message, help) = error.split_once('\n').unwrap_or((&error, ""));
        Diagnostic::new(text.span(), message).with_help(help)
    })
}

pub(super) fn time(text: Option<&Spanned<String>>, context: &mut Context<'_>) -> Option<Span> {
    text.and_then(|text| context.ok(quantity::<Time>(text))).map(|time| time.0)
}

/// An integer within `range`. `default` if it is not given or out of range; the latter is recorded as an error.
pub(super) fn integer(
    number: Option<&Spanned<i64>>,
    range: RangeInclusive<i64>,
    default: i64,
    context: &mut Context<'_>,
) -> i64 {
    let Some(number) = number else { return default };
    if range.contains(number.get()) {
        return *number.get();
    }
    let diagnostic = Diagnostic::new(number.span(), format!("{} is out of range", number.get()));
    context.report(diagnostic.with_help(format!("{} to {}", range.start(), range.end())));
    default
}

/// A key, from the configuration or from a separate file.
pub(super) fn secret<K: FromStr<Err = KeyError>>(
    inline: Option<&Spanned<Zeroizing<String>>>,
    file: Option<&Spanned<String>>,
    name: &str,
    context: &mut Context<'_>,
) -> Option<K> {
    match (inline, file) {
        (None, None) => None,
        (Some(_), Some(file)) => {
            let diagnostic = Diagnostic::new(file.span(), format!("`{name}` and `{name}-file` both give the key"));
            context.report(diagnostic.with_help("one of them; the file is safer"));
            None
        }
        (Some(text), None) => {
            context.check_mode(text.span(), context.path, context.loose_mode);
            context.ok(parse_key(text.get(), text.span()))
        }
        (None, Some(file)) => {
            let path = context.folder.join(file.get());
            context.ok(read_key_file(&path, file.span())).and_then(|(key, loose_mode)| {
                context.check_mode(file.span(), &path, loose_mode);
                key.map_err(|error| context.report(error)).ok()
            })
        }
    }
}

/// A key from the file at `path`, and its mode if group or others may read it. Errors repeat nothing from the file.
type KeyFile<K> = (Result<K, Diagnostic>, Option<u32>);

fn read_key_file<K: FromStr<Err = KeyError>>(path: &Path, span: Range<usize>) -> Result<KeyFile<K>, Diagnostic> {
    let path_text = path.display();
    let help = "`(umask 077; ropewalk genkey > FILE)` makes one, `ropewalk genpsk` a preshared one";
    let diagnostic = |message| Diagnostic::new(span.clone(), message).with_help(help);
    let file = secrets::read(path).map_err(|error| diagnostic(format!("cannot read {path_text}: {error}")))?;
    let key = file.text.parse().map_err(|error| diagnostic(format!("{path_text} is not a key: {error}")));
    Ok((key, file.loose_mode))
}

/// A key in base64. Errors repeat nothing of it.
pub(super) fn key<K: FromStr<Err = KeyError>>(text: &Spanned<String>) -> Result<K, Diagnostic> {
    parse_key(text.get(), text.span())
}

fn parse_key<K: FromStr<Err = KeyError>>(text: &str, span: Range<usize>) -> Result<K, Diagnostic> {
    text.parse().map_err(|error: KeyError| Diagnostic::new(span, error.to_string()))
}
