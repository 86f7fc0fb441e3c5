//! Verbs of features that this build does not have.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Each optional feature of the package with the verbs that it brings.
const FEATURES: &[(&str, &[&str])] = &[
    (
        "study",
        &["run", "evaluate", "fit", "drill", "trace", "list", "report", "compare", "claims", "merge", "new", "schema"],
    ),
    (
        "tunnel",
        &[
            "setup", "up", "down", "reload", "show", "top", "ping", "test", "check", "portal", "genkey", "pubkey",
            "genpsk", "tunnel",
        ],
    ),
    ("lab", &["doctor", "demo"]),
    ("kernel", &["kernel"]),
];

/// The command that builds the program with a feature.
pub(crate) fn build_hint(feature: &str) -> String {
    format!("this build has no {feature}\n  help: cargo build --release --features {feature}")
}

/// The message for a command line whose verb is unknown only because this build leaves its feature out.
pub(crate) fn left_out(error: &clap::Error) -> Option<String> {
    let verb = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(verb))) => verb.as_str(),
        _ => return None,
    };
    let (feature, _) = FEATURES.iter().find(|(_, verbs)| verbs.contains(&verb))?;
    Some(format!("error: `{verb}`: {}", build_hint(feature)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::{CommandFactory, Parser};

    #[test]
    fn a_verb_of_a_missing_feature_has_a_build_hint() {
        for (feature, verb) in
            FEATURES.iter().flat_map(|(feature, verbs)| verbs.iter().map(move |verb| (feature, verb)))
        {
            let Err(error) = Arguments::try_parse_from(["ropewalk", verb, "--no-such-option"]) else {
                panic!("`{verb}` has no such option");
            };
            let exists = Arguments::command().find_subcommand(verb).is_some();
            let message = left_out(&error);
            assert_eq!(message.is_none(), exists, "{verb}");
            assert!(message.is_none_or(|text| text.contains(&format!("--features {feature}"))), "{verb}");
        }
    }

    /// Verbs that every build has.
    const ALWAYS: [&str; 2] = ["completions", "man"];

    #[test]
    fn every_verb_is_listed() {
        let is_listed = |name: &str| ALWAYS.contains(&name) || FEATURES.iter().any(|(_, verbs)| verbs.contains(&name));
        for verb in Arguments::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            assert!(is_listed(verb.get_name()), "{} stands in no list of verbs", verb.get_name());
        }
    }
}
