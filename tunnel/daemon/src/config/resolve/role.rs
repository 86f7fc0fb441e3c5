//! The role of a path: `secondary`, `classes` and `quota` of `[[path]]` and of `uplinks`.

use super::context::Context;
use super::value;
use crate::config::model::{ConfiguredPath, InterfaceConfig, UplinkOptions};
use crate::config::tables::{ConfigFile, PathTable, StringOrList, UplinksTable};
use crate::quota::Quota;
use machine::PathClasses;
use parse::{Diagnostic, Quantity, Size, Spanned, suggest};
use std::ops::Range;

/// The smallest quota, bytes. Smaller ones are probably mistakes: probes alone use as much in a day.
const MIN_QUOTA: u64 = 1_000_000;

pub(super) fn classes(list: Option<&Spanned<StringOrList>>, context: &mut Context<'_>) -> PathClasses {
    let Some(key) = list else { return PathClasses::All };
    let (mut realtime, mut bulk) = (false, false);
    for (text, span) in value::strings(list) {
        match text.as_str() {
            "realtime" => realtime = true,
            "bulk" => bulk = true,
            other => {
                let help = suggest(other, &["realtime", "bulk"]);
                context.report(Diagnostic::new(span, format!("unknown class `{other}`")).with_help(help));
                return PathClasses::All;
            }
        }
    }
    match (realtime, bulk) {
        (true, true) => PathClasses::All,
        (true, false) => PathClasses::Realtime,
        (false, true) => PathClasses::Bulk,
        (false, false) => {
            let help = "`[\"realtime\"]` or `[\"bulk\"]`; without the key it carries both";
            context.report(Diagnostic::new(key.span(), "a path without a class carries nothing").with_help(help));
            PathClasses::All
        }
    }
}

pub(super) fn quota(values: &PathTable, context: &mut Context<'_>) -> Option<Quota> {
    let day = value::integer(values.quota_reset_day.as_ref(), 1..=31, 1, context) as u8;
    match (&values.quota, &values.quota_reset_day) {
        (Some(text), _) => context.ok(parse_quota(text.get(), text.span(), day)),
        (None, Some(day)) => {
            let diagnostic = Diagnostic::new(day.span(), "`quota-reset-day` without a quota");
            context.report(diagnostic.with_help("`quota = \"50GB\"` beside it"));
            None
        }
        (None, None) => None,
    }
}

fn parse_quota(text: &str, span: Range<usize>, reset_day: u8) -> Result<Quota, Diagnostic> {
    let size = Size::parse(text).map_err(|error| {
        let message = error.split('\n').next().unwrap_or_default().to_owned();
        Diagnostic::new(span.clone(), message).with_help("such as \"50GB\" (10^9 bytes) or \"500MiB\" (2^20 bytes)")
    })?;
    if size.0 < MIN_QUOTA {
        let diagnostic = Diagnostic::new(span, format!("a quota of `{text}` is used up by probes"));
        return Err(diagnostic.with_help("at least \"1MB\""));
    }
    Ok(Quota { bytes: size.0, reset_day })
}

/// The table of `uplinks`.
pub(super) fn uplinks(table: &UplinksTable, span: &Range<usize>) -> Result<UplinkOptions, Diagnostic> {
    let day = table.quota_reset_day.unwrap_or(1);
    if !(1..=31).contains(&day) {
        let diagnostic = Diagnostic::new(span.clone(), format!("`quota-reset-day` {day} is out of range"));
        return Err(diagnostic.with_help("1 to 31"));
    }
    if table.quota_reset_day.is_some() && table.quota.is_empty() {
        let diagnostic = Diagnostic::new(span.clone(), "`quota-reset-day` without a quota");
        return Err(diagnostic.with_help("`quota = { \"wwan*\" = \"50GB\" }` beside it"));
    }
    let quotas = table
        .quota
        .iter()
        .map(|(pattern, text)| parse_quota(text, span.clone(), day as u8).map(|quota| (pattern.clone(), quota)));
    Ok(UplinkOptions {
        exclude: table.exclude.clone(),
        metered: table.metered.clone(),
        unmetered: table.unmetered.clone(),
        secondary: table.secondary.clone(),
        quotas: quotas.collect::<Result<_, _>>()?,
    })
}

/// Checks for keys that exclude each other.
pub(super) fn check(table: &Spanned<PathTable>, context: &mut Context<'_>) {
    let values = table.get();
    if context.is_mpt {
        let help = "MPT's protocol has one use of all paths: remove it";
        context.refuse(values.secondary.as_ref(), "secondary", help);
        context.refuse(values.classes.as_ref(), "classes", help);
        context.refuse(values.quota.as_ref(), "quota", help);
    }
    let Some(secondary) = values.secondary.as_ref().filter(|flag| *flag.get()) else { return };
    for (key, flag) in [("backup", &values.backup), ("metered", &values.metered)] {
        if flag.as_ref().is_some_and(|flag| *flag.get()) {
            let message = format!("`secondary` and `{key}` exclude each other");
            let help = "secondary: while the regular paths are full; backup and metered: while no other path works";
            context.report(Diagnostic::new(secondary.span(), message).with_help(help));
        }
    }
}

/// Warns about keys for the use of paths that this end opens, if this end only waits for its peers.
pub(super) fn warn_of_no_use(table: &Spanned<PathTable>, name: &str, context: &mut Context<'_>) {
    let values = table.get();
    let keys = [
        ("backup", values.backup.is_some()),
        ("metered", values.metered.is_some()),
        ("secondary", values.secondary.is_some()),
        ("classes", values.classes.is_some()),
        ("quota", values.quota.is_some()),
    ];
    for (key, _) in keys.iter().filter(|(_, is_given)| *is_given) {
        context.warnings.push(format!(
            "`{key}` of path {name} has no effect: it holds for paths that this end opens, and no peer has an `endpoint`. \
             Its peers say how theirs are used"
        ));
    }
}

/// Checks that each class has a path. Automatic uplinks carry both.
pub(super) fn check_classes(
    file: &ConfigFile,
    paths: &[ConfiguredPath],
    interface: &InterfaceConfig,
    context: &mut Context<'_>,
) {
    let tables = file.path.as_deref().unwrap_or_default();
    let Some(span) = tables.iter().find_map(|table| Some(table.get().classes.as_ref()?.span())) else { return };
    if file.class.as_ref().is_none_or(|class| class.realtime.is_none()) {
        let diagnostic = Diagnostic::new(span, "`classes` without a real-time class");
        context.report(diagnostic.with_help("add the table [class.realtime], which may be empty"));
        return;
    }
    for (class, other) in [("bulk", PathClasses::Realtime), ("realtime", PathClasses::Bulk)] {
        if interface.uplinks.is_none() && paths.iter().all(|path| path.classes == other) {
            let message = format!("no path is left for the class `{class}`");
            let help =
                format!("`classes = [\"realtime\", \"bulk\"]`, or no `classes`, at one path; `{class}` has none");
            context.report(Diagnostic::new(span.clone(), message).with_help(help));
        }
    }
}
