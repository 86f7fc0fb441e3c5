//! The features that a build may leave out, and the commands that they add.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A feature of the package.
struct Feature {
    name: &'static str,
    is_built: bool,
    verbs: &'static [&'static str],
    /// Its other additions: options of other commands, and subcommands.
    more: &'static [&'static str],
}

/// Each optional feature with commands.
const FEATURES: [Feature; 6] = [
    Feature {
        name: "study",
        is_built: cfg!(feature = "study"),
        verbs: &[
            "run", "evaluate", "probe", "fit", "advise", "drill", "trace", "list", "report", "compare", "claims",
            "merge", "new", "schema",
        ],
        more: &[],
    },
    Feature {
        name: "tunnel",
        is_built: cfg!(feature = "tunnel"),
        verbs: &[
            "setup", "up", "down", "reload", "show", "top", "ping", "test", "check", "fleet", "portal", "genkey",
            "pubkey", "genpsk",
        ],
        more: &[],
    },
    Feature { name: "mpt", is_built: cfg!(feature = "mpt"), verbs: &["tunnel"], more: &["mode = \"mpt\" of tunnels"] },
    Feature { name: "explore", is_built: cfg!(feature = "explore"), verbs: &["explore"], more: &[] },
    Feature { name: "lab", is_built: cfg!(feature = "lab"), verbs: &["doctor", "demo"], more: &["run --on kernel"] },
    Feature { name: "kernel", is_built: cfg!(feature = "kernel"), verbs: &["kernel"], more: &[] },
];

impl Feature {
    /// Its line in the program's help.
    fn line(&self) -> String {
        format!("  {:<8}{}", self.name, [self.verbs, self.more].concat().join(", "))
    }
}

/// Text at the end of the program's help if features are left out of the build.
pub(crate) fn left_out_help() -> String {
    let lines: Vec<_> = FEATURES.iter().filter(|feature| !feature.is_built).map(Feature::line).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n\nNot in this build (cargo build --release --features NAME):\n{}", lines.join("\n"))
}

/// The command that builds the program with a feature.
pub(crate) fn build_hint(feature: &str) -> String {
    format!("this build has no {feature}\n  help: cargo build --release --features {feature}")
}

/// The message for a command line whose command is unknown only because this build leaves its feature out.
pub(crate) fn left_out(error: &clap::Error) -> Option<String> {
    let verb = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(verb))) => verb.as_str(),
        _ => return None,
    };
    let feature = FEATURES.iter().find(|feature| feature.verbs.contains(&verb))?;
    Some(format!("error: `{verb}`: {}", build_hint(feature.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::{CommandFactory, Parser};

    #[test]
    fn a_verb_of_a_missing_feature_has_a_build_hint() {
        for feature in &FEATURES {
            for verb in feature.verbs {
                let Err(error) = Arguments::try_parse_from(["ropewalk", verb, "--no-such-option"]) else {
                    panic!("`{verb}` has no such option");
                };
                let message = left_out(&error);
                assert_eq!(message.is_none(), feature.is_built, "{verb}");
                let hint = format!("--features {}", feature.name);
                assert!(message.is_none_or(|text| text.contains(&hint)), "{verb}");
            }
        }
    }

    /// Commands that every build has.
    const ALWAYS: [&str; 2] = ["completions", "man"];

    #[test]
    fn the_help_lists_every_verb_under_the_feature_that_brings_it() {
        for verb in Arguments::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let name = verb.get_name();
            let feature = FEATURES.iter().find(|feature| feature.verbs.contains(&name));
            assert_eq!(feature.is_none(), ALWAYS.contains(&name), "{name} stands in one list of verbs");
            assert!(feature.is_none_or(|feature| feature.is_built), "{name}");
        }
        for feature in &FEATURES {
            let line = feature.line();
            assert!(feature.verbs.iter().all(|verb| line.split([' ', ',']).any(|word| word == *verb)), "{line}");
        }
        let missing = FEATURES.iter().filter(|feature| !feature.is_built);
        assert_eq!(left_out_help().lines().skip(3).count(), missing.count());
    }
}
