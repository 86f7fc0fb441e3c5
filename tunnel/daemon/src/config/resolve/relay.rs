//! The keys of the relay in `[tunnel]`.

use super::context::Context;
use super::value;
use crate::config::relay::{RelayExclusion, RelayNetwork, RelayOptions};
use crate::config::tables::TunnelTable;
use parse::{Diagnostic, Spanned, suggest};
use relay::RelayConfig;
use std::ops::Range;

/// The relay's options, if connections are relayed. `device` is the tunnel's.
pub(super) fn options(table: Option<&TunnelTable>, device: &str, context: &mut Context<'_>) -> Option<RelayOptions> {
    let values = table.cloned().unwrap_or_default();
    if context.is_mpt {
        let help = "MPT's protocol has no relay: remove it";
        context.refuse(values.relay.as_ref(), "relay", help);
    }
    let is_enabled = values.relay.as_ref().and_then(|text| context.ok(is_enabled(text))).unwrap_or(false);
    let default = RelayConfig::default().max_connections;
    let max_connections =
        value::integer(values.relay_connections.as_ref(), 1..=30_000, default as i64, context) as usize;
    let networks = value::strings(values.relay_networks.as_ref()).into_iter();
    let networks: Vec<_> = networks.filter_map(|(text, span)| context.ok(network(&text, span))).collect();
    if let [first, second, ..] = &networks[..]
        && (networks.len() > 2 || first.local.is_ipv4() == second.local.is_ipv4())
        && let Some(list) = &values.relay_networks
    {
        context.report(Diagnostic::new(list.span(), "more than one network of a family").with_help("one of each"));
    }
    let exclude = value::strings(values.relay_exclude.as_ref()).into_iter();
    let exclude = exclude.filter_map(|(text, span)| context.ok(exclusion(&text, span))).collect();
    let networks = if networks.is_empty() { RelayOptions::default_networks(device) } else { networks };
    is_enabled.then_some(RelayOptions { networks, exclude, max_connections })
}

fn is_enabled(text: &Spanned<String>) -> Result<bool, Diagnostic> {
    match text.get().as_str() {
        "off" => Ok(false),
        "tcp" => Ok(true),
        other => {
            let diagnostic = Diagnostic::new(text.span(), format!("unknown value `{other}`"));
            Err(diagnostic.with_help(suggest(other, &["off", "tcp"])))
        }
    }
}

fn network(text: &str, span: Range<usize>) -> Result<RelayNetwork, Diagnostic> {
    let network = value::parse_network(text, span.clone())?;
    RelayNetwork::new(network).ok_or_else(|| {
        let diagnostic = Diagnostic::new(span, format!("`{text}` is not a network of two addresses"));
        diagnostic.with_help("such as `198.18.0.2/31` or `fd00:18::2/127`")
    })
}

/// `tcp/22`, `tcp/5000-5100`, or a network.
fn exclusion(text: &str, span: Range<usize>) -> Result<RelayExclusion, Diagnostic> {
    let Some(ports) = text.strip_prefix("tcp/") else {
        return value::parse_network(text, span).map(RelayExclusion::Network);
    };
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(RelayExclusion::Ports(first..=last)),
        _ => {
            let diagnostic = Diagnostic::new(span, format!("`{text}` is neither a port nor a range of ports"));
            Err(diagnostic.with_help("such as `tcp/22` or `tcp/5000-5100`"))
        }
    }
}
