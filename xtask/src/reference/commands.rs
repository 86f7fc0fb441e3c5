//! Commands and their options, from the program's `--help`.

use super::markdown::{sentence, wrapped};
use crate::shell;
use std::path::Path;

/// Wide enough that the help breaks no line.
const COLUMNS: &str = "10000";
/// A part of the program's message about a command that its build leaves out.
const LEFT_OUT: &str = "cargo build --release --features";

/// The names of all commands.
pub(super) fn all(program: &str) -> Result<Vec<String>, String> {
    Ok(Help::new(&help(program, "")?.ok_or("the program has no help")?).commands)
}

/// A command, its options and the commands below it; `None` if the program is built without it.
pub(super) fn section(program: &str, name: &str) -> Result<Option<String>, String> {
    let Some(text) = help(program, name)? else { return Ok(None) };
    let own = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let parsed = Help::new(&text.replace(&format!("Usage: {own} "), "Usage: ropewalk "));
    let mut section = parsed.section(name);
    for below in &parsed.commands {
        section += &self::section(program, &format!("{name} {below}"))?.unwrap_or_default();
    }
    Ok(Some(section))
}

fn help(program: &str, name: &str) -> Result<Option<String>, String> {
    let (printed, told) = shell::output_and_errors(&[("COLUMNS", COLUMNS)], &format!("{program} {name} --help"))?;
    match told.contains(LEFT_OUT) {
        true => Ok(None),
        false if printed.is_empty() => Err(format!("`{name} --help` printed nothing: {told}")),
        false => Ok(Some(printed)),
    }
}

/// An option or an argument: its syntax and its description, in lines.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    form: String,
    text: Vec<String>,
}

/// The help of a command.
#[derive(Debug, Default)]
struct Help {
    about: String,
    usage: String,
    words: Vec<Word>,
    commands: Vec<String>,
}

impl Help {
    fn new(text: &str) -> Self {
        let mut help = Self::default();
        let mut part = "";
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let indentation = line.len() - line.trim_start().len();
            if let Some(usage) = line.strip_prefix("Usage: ") {
                usage.clone_into(&mut help.usage);
                part = "Usage";
            } else if indentation == 0 {
                part = line;
                if help.about.is_empty() {
                    line.clone_into(&mut help.about);
                }
            } else {
                help.line(part, line, indentation);
            }
        }
        let unlisted = ["-h, --help", "-V, --version"];
        help.words.retain(|word| !unlisted.contains(&word.form.as_str()));
        help.commands.retain(|name| name != "help");
        help
    }

    /// An indented line of a part.
    fn line(&mut self, part: &str, line: &str, indentation: usize) {
        let text = line.trim();
        let is_word = indentation <= 6 && text.starts_with(['-', '<', '[']);
        match part {
            "Arguments:" | "Options:" if is_word => {
                let (form, about) = text.split_once("  ").unwrap_or((text, ""));
                let about = about.trim();
                let text = if about.is_empty() { Vec::new() } else { vec![about.to_owned()] };
                self.words.push(Word { form: form.trim().to_owned(), text });
            }
            "Arguments:" | "Options:" => {
                if let Some(word) = self.words.last_mut() {
                    word.text.push(text.to_owned());
                }
            }
            "Usage" | "Exit codes:" => {}
            part if part.starts_with("Not in this build") => {}
            _ if indentation == 2 => self.commands.extend(text.split(' ').next().map(str::to_owned)),
            _ => {}
        }
    }

    fn section(&self, name: &str) -> String {
        let about = wrapped(&sentence(&self.about), "");
        let words: String = self.words.iter().map(|word| word.section(name)).collect();
        // The heading of a command itself is on the page; those below it are made here.
        let heading = if name.contains(' ') { format!("### `{name}`\n\n") } else { String::new() };
        format!("{heading}{about}\n\n```text\n{}\n```\n\n{words}", self.usage)
    }
}

impl Word {
    fn section(&self, command: &str) -> String {
        let long = self.form.split([' ', ',']).find(|part| part.starts_with("--")).unwrap_or(&self.form);
        let long = long.trim_end_matches("...");
        let level = if command.contains(' ') { "####" } else { "###" };
        let mut section = format!("{level} `{command} {long}`\n\n");
        let mut facts = Vec::new();
        if long != self.form {
            facts.push(format!("- Form: `{}`", self.form));
        }
        let (mut about, mut values) = (Vec::new(), Vec::new());
        for line in &self.text {
            let (line, default) = without_bracket(line, "default");
            let (line, possible) = without_bracket(&line, "possible values");
            facts.extend(default.map(|default| format!("- Default: {default}")));
            facts.extend(possible.map(|words| format!("- Values: `{}`", words.replace(", ", "`, `"))));
            match line.strip_prefix("- ").and_then(|line| line.split_once(':')) {
                Some((word, text)) => values.push(format!("- `{word}`: {}", sentence(text))),
                None if line == "Possible values:" || line.is_empty() => {}
                None => about.push(line),
            }
        }
        section += &wrapped(&sentence(&about.join(" ")), "");
        section += "\n\n";
        section.extend(facts.iter().chain(&values).map(|line| wrapped(line, "  ") + "\n"));
        if section.ends_with("\n\n") { section } else { section + "\n" }
    }
}

/// A line without `[NAME: TEXT]`, and the text.
fn without_bracket(line: &str, name: &str) -> (String, Option<String>) {
    let parts = line.split_once(&format!("[{name}: ")).and_then(|(before, rest)| Some((before, rest.split_once(']')?)));
    match parts {
        Some((before, (text, after))) => {
            let rest = format!("{}{after}", before.trim_end());
            (rest.trim().trim_start_matches(';').trim().to_owned(), Some(text.to_owned()))
        }
        None => (line.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "Run a scenario\n\nUsage: ropewalk run [OPTIONS] <FILE>\n\nArguments:\n  <FILE>\n          The scenario\n\n\
        Options:\n      --on <ON>\n          What carries it out\n\n          Possible values:\n          - sim: The simulator\n\
        \n          [default: sim]\n\n  -h, --help\n          Print help\n\nExit codes:\n  0  done\n";
    const SHORT: &str = "Stop\n\nUsage: ropewalk down\n\nCommands:\n  now   At once\n  help  Print\n\nOptions:\n  \
        -y, --yes  Do not ask [default: no]; may be repeated\n";

    #[test]
    fn the_long_form_of_a_help_is_read() {
        let section = Help::new(LONG).section("run");
        assert!(section.contains("### `run --on`\n\nWhat carries it out.\n\n"), "{section}");
        assert!(section.contains("- Form: `--on <ON>`\n- Default: sim\n- `sim`: The simulator.\n"), "{section}");
        assert!(section.contains("### `run <FILE>`") && !section.contains("--help"), "{section}");
    }

    #[test]
    fn the_short_form_of_a_help_is_read() {
        let help = Help::new(SHORT);
        assert_eq!(help.commands, ["now"]);
        let section = help.section("down");
        assert!(
            section
                .contains("### `down --yes`\n\nDo not ask; may be repeated.\n\n- Form: `-y, --yes`\n- Default: no\n"),
            "{section}"
        );
    }
}
