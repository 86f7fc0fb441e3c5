//! `history`, `dashboard` and `dashboard-token-file` of [interface].

use super::context::{Context, flag};
use super::value;
use crate::config::observation::{DashboardAddress, DashboardConfig, HistoryTarget, NotifyConfig, ObservationConfig};
use crate::config::secrets;
use crate::config::tables::{InterfaceTable, NotifyTable};
use crate::dashboard::parse_token;
use crate::event::EventKind;
use parse::{Diagnostic, Spanned, suggest};
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

pub(super) fn observation(
    table: &InterfaceTable,
    notify_table: Option<&Spanned<NotifyTable>>,
    context: &mut Context<'_>,
) -> ObservationConfig {
    let history = match table.history.as_ref().map(|text| (text.get().as_str(), text.span())) {
        None | Some(("on", _)) => HistoryTarget::StateDirectory,
        Some(("off", _)) => HistoryTarget::Memory,
        Some((file, span)) => {
            if !Path::new(file).is_absolute() {
                let diagnostic = Diagnostic::new(span, format!("`{file}` is not an absolute path"));
                context
                    .report(diagnostic.with_help("\"on\", \"off\", or a file such as `/var/lib/ropewalk/rw0.history`"));
            }
            HistoryTarget::File(file.into())
        }
    };
    let token = table.dashboard_token_file.as_ref().and_then(|file| token(file, context));
    let dashboard = table.dashboard.as_ref().and_then(|text| {
        let address = context.ok(address(text))?;
        let is_open = matches!(address, DashboardAddress::Tcp(address) if !address.ip().is_loopback());
        check_token("the dashboard", text, is_open, table, context);
        Some(DashboardConfig { address, token: token.clone() })
    });
    let metrics_token = table.metrics.as_ref().and_then(|text| {
        let is_open = text.get().parse::<SocketAddr>().is_ok_and(|address| !address.ip().is_loopback());
        check_token("the metrics", text, is_open, table, context);
        token.clone().filter(|_| is_open)
    });
    let notify = notify_table.map(|table| notify(table, context));
    ObservationConfig { history, dashboard, metrics_token, notify, speed_test: flag(table.speed_test.as_ref(), true) }
}

/// Reports a server that other machines can reach without a token.
fn check_token(what: &str, text: &Spanned<String>, is_open: bool, table: &InterfaceTable, context: &mut Context<'_>) {
    if !is_open || table.dashboard_token_file.is_some() {
        return;
    }
    let be = if what.ends_with('s') { "are" } else { "is" };
    let message = format!("{what} at `{}` {be} open to other machines without a token", text.get());
    let help = "`(umask 077; ropewalk genpsk > /etc/ropewalk/dashboard.token)`, then dashboard-token-file = \
                \"/etc/ropewalk/dashboard.token\"; or listen on 127.0.0.1";
    context.report(Diagnostic::new(text.span(), message).with_help(help));
}

/// The events that cause notifications if `events` is not given.
const DEFAULT_EVENTS: [EventKind; 7] = [
    EventKind::PathDown,
    EventKind::PathUp,
    EventKind::PathDegraded,
    EventKind::PathFlapping,
    EventKind::PeerLost,
    EventKind::UplinkRemoved,
    EventKind::Quota,
];

fn notify(table: &Spanned<NotifyTable>, context: &mut Context<'_>) -> NotifyConfig {
    let NotifyTable { hook, webhook, events } = table.get();
    if hook.is_none() && webhook.is_none() {
        let diagnostic = Diagnostic::new(table.span(), "[notify] has neither `hook` nor `webhook`");
        context.report(
            diagnostic.with_help("`hook = \"/etc/ropewalk/notify\"`, or `webhook = \"http://192.0.2.1/notify\"`"),
        );
    }
    let hook = hook.as_ref().and_then(|path| context.ok(program(path)));
    let webhook = webhook.as_ref().and_then(|text| {
        let help = "an address such as `http://192.0.2.1:8080/notify`; for https a hook that calls `curl`";
        let webhook = text.get().parse().map_err(|error| Diagnostic::new(text.span(), error).with_help(help));
        context.ok(webhook)
    });
    let kinds: Vec<_> =
        value::strings(events.as_ref()).into_iter().filter_map(|(name, span)| context.ok(event(&name, span))).collect();
    let events = if events.is_none() { DEFAULT_EVENTS.to_vec() } else { kinds };
    NotifyConfig { hook, webhook, events }
}

fn program(path: &Spanned<String>) -> Result<PathBuf, Diagnostic> {
    let error =
        |message: String| Diagnostic::new(path.span(), message).with_help("a program that the daemon's user may run");
    if !Path::new(path.get()).is_absolute() {
        return Err(error(format!("`{}` is not an absolute path", path.get())));
    }
    match std::fs::metadata(path.get()) {
        Ok(metadata) if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 => Ok(path.get().into()),
        Ok(_) => Err(error(format!("{} is not a program: chmod +x {0}", path.get()))),
        Err(cause) => Err(error(format!("{}: {cause}", path.get()))),
    }
}

fn event(name: &str, span: Range<usize>) -> Result<EventKind, Diagnostic> {
    let kind = EventKind::deserialize(StrDeserializer::<serde::de::value::Error>::new(name));
    let known = [
        "path-down",
        "path-up",
        "path-cause",
        "path-degraded",
        "path-flapping",
        "path-recovered",
        "quota",
        "peer-lost",
        "peer-up",
        "uplink-added",
        "uplink-removed",
        "handshake-refused",
        "shared-key",
        "controller-failed",
        "start",
        "stop",
        "reload",
    ];
    kind.map_err(|_| Diagnostic::new(span, format!("unknown event `{name}`")).with_help(suggest(name, &known)))
}

fn address(text: &Spanned<String>) -> Result<DashboardAddress, Diagnostic> {
    let help = "such as `127.0.0.1:9780`, or `unix:/run/ropewalk/rw0-dashboard.sock`";
    if let Some(path) = text.get().strip_prefix("unix:") {
        let is_right = Path::new(path).is_absolute();
        let error = || Diagnostic::new(text.span(), format!("`{path}` is not an absolute path")).with_help(help);
        return is_right.then(|| DashboardAddress::Unix(path.into())).ok_or_else(error);
    }
    let error = |_| {
        Diagnostic::new(text.span(), format!("`{}` is neither an address with a port nor a unix socket", text.get()))
            .with_help(help)
    };
    text.get().parse().map(DashboardAddress::Tcp).map_err(error)
}

fn token(file: &Spanned<String>, context: &mut Context<'_>) -> Option<Zeroizing<String>> {
    let path = context.folder.join(file.get());
    let to_diagnostic = |error: std::io::Error| {
        Diagnostic::new(file.span(), format!("cannot use {}: {error}", path.display()))
            .with_help("`(umask 077; ropewalk genpsk > FILE)` makes one")
    };
    let secret = context.ok(secrets::read(&path).map_err(to_diagnostic))?;
    context.check_mode(file.span(), &path, secret.loose_mode);
    context.ok(parse_token(&secret.text).map_err(to_diagnostic))
}
