//! Single values: numbers in their range, times, rates, networks, keys.

use super::Context;
use crate::config::file::Many;
use crate::config::secrets;
use ipnet::IpNet;
use parse::{At, Fault, Quantity, Time};
use seal::KeyError;
use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use units::Span;

/// The texts with their places.
pub(super) fn texts(many: Option<&At<Many>>) -> Vec<(String, Range<usize>)> {
    match many.map(|many| (many.get(), many.span())) {
        None => Vec::new(),
        Some((Many::One(text), span)) => vec![(text.clone(), span)],
        Some((Many::Several(texts), _)) => texts.iter().map(|text| (text.get().clone(), text.span())).collect(),
    }
}

/// A network such as `10.77.0.1/24`; a bare address is one of a single address.
pub(super) fn network(text: &str, span: Range<usize>) -> Result<IpNet, Fault> {
    let bare = text.parse::<IpAddr>().map(IpNet::from);
    bare.or_else(|_| text.parse()).map_err(|_| {
        let fault = Fault::at(span, format!("`{text}` is no address with the length of its network"));
        fault.help("such as `10.77.0.1/24` or `fd77::1/64`")
    })
}

pub(super) fn address(text: &At<String>, context: &mut Context<'_>) -> Option<IpAddr> {
    let wrong = |_| {
        let message = format!("`{}` is no address", text.get());
        Fault::at(text.span(), message).help("such as `192.0.2.7` or `2001:db8::7`")
    };
    context.noted(text.get().parse().map_err(wrong))
}

pub(super) fn quantity<Q: Quantity>(text: &At<String>) -> Result<Q, Fault> {
    Q::read(text.get()).map_err(|wrong| {
        let (message, help) = wrong.split_once('\n').unwrap_or((&wrong, ""));
        Fault::at(text.span(), message).help(help)
    })
}

pub(super) fn time(text: Option<&At<String>>, context: &mut Context<'_>) -> Option<Span> {
    text.and_then(|text| context.noted(quantity::<Time>(text))).map(|time| time.0)
}

/// A whole number in its range.
pub(super) fn within(
    given: Option<&At<i64>>,
    range: RangeInclusive<i64>,
    default: i64,
    context: &mut Context<'_>,
) -> i64 {
    let Some(number) = given else { return default };
    if range.contains(number.get()) {
        return *number.get();
    }
    let fault = Fault::at(number.span(), format!("{} is out of range", number.get()));
    context.fault(fault.help(format!("{} to {}", range.start(), range.end())));
    default
}

/// A key that is written in the file or in one of its own.
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
        (Some(text), None) => context.noted(key(text)),
        (None, Some(file)) => {
            let path = context.beside.join(file.get());
            if secrets::others_may_read(&path) {
                let shown = path.display();
                context.warnings.push(format!("{shown} holds a secret and others may read it: chmod 600 {shown}"));
            }
            let help = "`(umask 077; ropewalk genkey > FILE)` makes one, `ropewalk genpsk` a preshared one";
            context.noted(secrets::key_file(&path).map_err(|wrong| Fault::at(file.span(), wrong).help(help)))
        }
    }
}

/// A key in base64. What is wrong is told without repeating any of it.
pub(super) fn key<K: FromStr<Err = KeyError>>(text: &At<String>) -> Result<K, Fault> {
    text.get().parse().map_err(|wrong: KeyError| Fault::at(text.span(), wrong.to_string()))
}
