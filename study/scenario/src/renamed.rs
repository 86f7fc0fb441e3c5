//! Keys that had another name in earlier versions: an error on the earlier name suggests the current one.

use parse::Diagnostic;

/// The earlier name, and the current one.
const RENAMED: [(&str, &str); 12] = [
    ("least", "min"),
    ("most", "max"),
    ("repair", "retransmit"),
    ("order", "in_order"),
    ("hold", "max_reorder_timeout"),
    ("probe", "probe_interval"),
    ("target", "codel_target"),
    ("interval", "codel_interval"),
    ("stripe", "scheduler"),
    ("rules", "stack"),
    ("option", "dss_option"),
    ("initial_timeout", "initial_rto"),
];

/// The error, with the current name if an unknown key is an earlier one.
pub(crate) fn explained(diagnostic: Diagnostic) -> Diagnostic {
    let unknown = |(earlier, _): &&(&str, &str)| diagnostic.message == format!("unknown key `{earlier}`");
    match RENAMED.iter().find(unknown) {
        Some((_, today)) => diagnostic.with_help(format!("did you mean `{today}`?")),
        None => diagnostic,
    }
}
