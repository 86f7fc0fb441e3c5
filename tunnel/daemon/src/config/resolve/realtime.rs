//! `[class.realtime]`.

use super::context::{Context, flag};
use super::value;
use crate::config::realtime::{self, RealtimePorts, RealtimeRules};
use crate::config::tables::{ConfigFile, RealtimeTable};
use machine::RealtimeOptions;
use parse::{Diagnostic, Percent, Spanned};

/// The options of the class and the rules that mark its packets, if the file has the table.
pub(super) fn class(file: &ConfigFile, context: &mut Context<'_>) -> Option<(RealtimeOptions, RealtimeRules)> {
    let table = file.class.as_ref()?.realtime.as_ref()?;
    if context.is_mpt {
        context.refuse(Some(table), "class.realtime", "MPT's protocol has no copies: remove it");
        return None;
    }
    let values: &RealtimeTable = table.get();
    let default = RealtimeOptions::default();
    let options = RealtimeOptions {
        copy_permille: permille(values.copy_budget.as_ref(), context).unwrap_or(default.copy_permille),
        copy_on_metered: flag(values.copy_on_metered.as_ref(), default.copy_on_metered),
        share_permille: permille(values.share.as_ref(), context).unwrap_or(default.share_permille),
    };
    let mut rules = RealtimeRules::default();
    if values.dscp.is_some() {
        rules.dscp.clear();
    }
    for (text, span) in value::strings(values.dscp.as_ref()) {
        let diagnostic = Diagnostic::new(span, format!("`{text}` is not a DSCP"));
        let diagnostic = diagnostic.with_help("a name such as \"EF\", \"AF41\" or \"CS5\", or a number from 0 to 63");
        rules.dscp.extend(context.ok(realtime::dscp(&text).ok_or(diagnostic)));
    }
    for (text, span) in value::strings(values.ports.as_ref()) {
        let diagnostic = Diagnostic::new(span, format!("`{text}` names no ports"));
        let diagnostic = diagnostic.with_help("such as \"udp/5060\" or \"udp/16384-32767\"; tcp/ likewise");
        rules.ports.extend(context.ok(RealtimePorts::parse(&text).ok_or(diagnostic)));
    }
    Some((options, rules))
}

/// A share in 1000ths.
fn permille(text: Option<&Spanned<String>>, context: &mut Context<'_>) -> Option<u32> {
    let share = context.ok(value::quantity::<Percent>(text?))?;
    Some((share.0 * 1000.0).round() as u32)
}
