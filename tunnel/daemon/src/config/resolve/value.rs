//! Single values: numbers in their range, times, rates, networks, keys.

use super::context::Context;
use crate::config::secrets;
use crate::config::tables::StringOrList;
use ipnet::IpNet;
use parse::{At, Fault, Quantity, Time};
use seal::KeyError;
use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use units::Span;

/// The strings of a list, each with its place.
pub(super) fn strings(list: Option<&At<StringOrList>>) -> Vec<(String, Range<usize>)> {
    match list.map(|list| (list.get(), list.span())) {
        None => Vec::new(),
        Some((StringOrList::String(text), span)) => vec![(text.clone(), span)],
        Some((StringOrList::List(texts), _)) => texts.iter().map(|text| (text.get().clone(), text.span())).collect(),
    }
}

/// A network such as `10.77.0.1/24`; an address without a prefix length is a network of its own.
pub(super) fn network(text: &str, span: Range<usize>) -> Result<IpNet, Fault> {
    let bare = text.parse::<IpAddr>().map(IpNet::from);
    bare.or_else(|_| text.parse()).map_err(|_| {
        let fault = Fault::at(span, format!("`{text}` is not an address with a prefix length"));
        fault.help("such as `10.77.0.1/24` or `fd77::1/64`")
    })
}

pub(super) fn address(text: &At<String>, context: &mut Context<'_>) -> Option<IpAddr> {
    let error = |_| {
        let message = format!("`{}` is not an address", text.get());
        Fault::at(text.span(), message).help("such as `192.0.2.7` or `2001:db8::7`")
    };
    context.ok(text.get().parse().map_err(error))
}

pub(super) fn quantity<Q: Quantity>(text: &At<String>) -> Result<Q, Fault> {
    Q::read(text.get()).map_err(|error| {
        let (message, help) = error.split_once('\n').unwrap_or((&error, ""));
        Fault::at(text.span(), message).help(help)
    })
}

pub(super) fn time(text: Option<&At<String>>, context: &mut Context<'_>) -> Option<Span> {
    text.and_then(|text| context.ok(quantity::<Time>(text))).map(|time| time.0)
}

/// An integer within `range`; `default` if it is not given, or after recording the error.
pub(super) fn within(
    number: Option<&At<i64>>,
    range: RangeInclusive<i64>,
    default: i64,
    context: &mut Context<'_>,
) -> i64 {
    let Some(number) = number else { return default };
    if range.contains(number.get()) {
        return *number.get();
    }
    let fault = Fault::at(number.span(), format!("{} is out of range", number.get()));
    context.fault(fault.help(format!("{} to {}", range.start(), range.end())));
    default
}

/// A key, from the configuration or from a file of its own.
pub(super) fn secret<K: FromStr<Err = KeyError>>(
    inline: Option<&At<String>>,
    file: Option<&At<String>>,
    name: &str,
    context: &mut Context<'_>,
) -> Option<K> {
    match (inline, file) {
        (None, None) => None,
        (Some(_), Some(file)) => {
            let fault = Fault::at(file.span(), format!("`{name}` and `{name}-file` both give the key"));
            context.fault(fault.help("one of them; the file is safer"));
            None
        }
        (Some(text), None) => context.ok(key(text)),
        (None, Some(file)) => {
            let path = context.folder.join(file.get());
            if secrets::is_readable_by_others(&path) {
                let shown = path.display();
                context.warnings.push(format!("{shown} holds a secret and is readable by others: chmod 600 {shown}"));
            }
            let help = "`(umask 077; ropewalk genkey > FILE)` makes one, `ropewalk genpsk` a preshared one";
            context.ok(secrets::key_file(&path).map_err(|error| Fault::at(file.span(), error).help(help)))
        }
    }
}

/// A key in base64. The error repeats nothing of it.
pub(super) fn key<K: FromStr<Err = KeyError>>(text: &At<String>) -> Result<K, Fault> {
    text.get().parse().map_err(|error: KeyError| Fault::at(text.span(), error.to_string()))
}
