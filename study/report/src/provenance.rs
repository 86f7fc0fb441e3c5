//! What repeats a study: the command, the scenario as it was run, and how that differs from the file.

use serde::Deserialize;
use serde_json::Value;
use similar::TextDiff;
use std::collections::BTreeMap;

/// The command and the texts of a study's scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Provenance<'a> {
    /// The command line, word by word; empty if there was none.
    pub command: &'a [String],
    /// The scenario file.
    pub file: &'a str,
    /// The scenario as it was run, where options changed the file and a text can hold the changes.
    pub effective: Option<&'a str>,
}

/// The short form in a scenario file.
#[derive(Default, Deserialize)]
struct ShortForm {
    #[serde(default)]
    quick: BTreeMap<String, Value>,
}

/// Options of the command line that change the scenario.
const CHANGING: [&str; 3] = ["--set", "--seed", "--quick"];

impl Provenance<'_> {
    /// The text that was run, as far as a text can say it.
    #[must_use]
    pub fn text(&self) -> &str {
        self.effective.unwrap_or(self.file)
    }

    /// Whether the text alone does not say what was run: the options of the command belong to it.
    pub(crate) fn needs_options(&self) -> bool {
        self.effective.is_none() && self.command.iter().any(|word| CHANGING.contains(&word.as_str()))
    }

    /// Whether `ropewalk run --quick` made the study.
    pub(crate) fn is_short_run(&self) -> bool {
        let has = |word: &str| self.command.iter().any(|given| given == word);
        has("run") && has("--quick")
    }

    /// What the short form changes: `duration 21s, repetitions 1, a part of the sweep`.
    pub(crate) fn short_form(&self) -> String {
        let form: ShortForm = parse::parse(self.file).and_then(parse::deserialize).unwrap_or_default();
        let scalars = form.quick.iter().filter_map(|(key, value)| match value {
            Value::String(text) => Some(format!("{key} {text}")),
            Value::Number(number) => Some(format!("{key} {number}")),
            _ => None,
        });
        let has_sweep = ["sweep", "case"].iter().any(|key| form.quick.contains_key(*key));
        let sweep = has_sweep.then(|| "a part of the sweep".to_owned());
        scalars.chain(sweep).collect::<Vec<_>>().join(", ")
    }

    /// The lines that differ from the file, as a unified diff with a line around each change; empty if none do.
    pub(crate) fn changes(&self) -> String {
        let Some(effective) = self.effective else { return String::new() };
        TextDiff::from_lines(self.file, effective).unified_diff().context_radius(1).header("file", "run").to_string()
    }
}

/// A command line for a shell.
#[must_use]
pub fn shell(command: &[String]) -> String {
    command.iter().map(|word| strings::shell_word(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_the_words() {
        let command = ["ropewalk", "run", "a b.toml", "--set", r#"sweep.case=["it's"]"#].map(str::to_owned);
        assert_eq!(shell(&command), r#"ropewalk run 'a b.toml' --set 'sweep.case=["it'\''s"]'"#);
    }

    #[test]
    fn options_that_no_text_holds_belong_to_the_text() {
        let command = ["ropewalk", "run", "a.toml", "--quick"].map(str::to_owned);
        let provenance = Provenance { command: &command, file: "a = 1\n", effective: None };
        assert!(provenance.needs_options());
        let provenance = Provenance { effective: Some("a = 2\n"), ..provenance };
        assert!(!provenance.needs_options());
        assert!(provenance.changes().contains("-a = 1\n+a = 2\n"));
    }

    #[test]
    fn the_short_form_is_told_by_its_keys() {
        let file = "name = \"a\"\n[quick]\nduration = \"21s\"\nrepetitions = 1\nsweep.case = [\"a\"]\n";
        let provenance = Provenance { file, ..Provenance::default() };
        assert_eq!(provenance.short_form(), "duration 21s, repetitions 1, a part of the sweep");
    }
}
