//! `ropewalk list`: algorithms, schedulers, stacks and scenarios.

use super::{List, ListKind};
use crate::{Failure, output};
use clap::ValueEnum;
use control::registry;
use control::{AlgorithmEntry, ParamKind, Parameter};
use schedule::{Fill, Needs};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An entry of a list.
struct Row {
    name: String,
    title: String,
    /// Lines below the name in the list.
    details: Vec<String>,
    json: Value,
    /// The full text, for `list WHAT NAME`.
    full: String,
}

/// Prints one of the lists, or one entry of it.
pub(crate) fn list(arguments: &List) -> Result<(), Failure> {
    let Some(what) = arguments.what else { return overview(arguments.json) };
    let rows = rows(what);
    if matches!(what, ListKind::Stacks) && rows.is_empty() && !arguments.json {
        return output::print("This program has no stacks. The one in examples/stacks has quinn and noq.\n");
    }
    let Some(name) = &arguments.name else { return print_all(&rows, arguments.json) };
    let row = find(what, &rows, name)?;
    if arguments.json { output::json(&row.json) } else { output::print(&row.full) }
}

fn rows(what: ListKind) -> Vec<Row> {
    match what {
        ListKind::Algorithms => registry::entries().into_iter().map(algorithm).collect(),
        ListKind::Schedulers => schedule::entries().into_iter().map(scheduler).collect(),
        ListKind::Stacks => stack::entries().into_iter().map(stack).collect(),
        ListKind::Scenarios => scenarios(),
    }
}

/// Prints the available lists with their lengths, or all names as JSON.
fn overview(json: bool) -> Result<(), Failure> {
    let lists = ListKind::value_variants().iter().filter_map(|what| {
        let value = what.to_possible_value()?;
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        Some((value.get_name().to_owned(), help, rows(*what)))
    });
    if json {
        let names = |rows: Vec<Row>| rows.into_iter().map(|row| row.name).collect::<Vec<_>>();
        return output::json(&lists.map(|(name, _, rows)| (name, names(rows))).collect::<BTreeMap<_, _>>());
    }
    let line = |(name, help, rows): (String, String, Vec<Row>)| format!("{name:10}  {:3}  {help}\n", rows.len());
    let lines: String = lists.map(line).collect();
    output::print(&format!("{lines}\n`ropewalk list WHAT` prints a list, and `ropewalk list WHAT NAME` one entry.\n"))
}

/// The message for an unknown name of a scenario.
pub(super) fn no_scenario_called(name: &str) -> String {
    let rows = scenarios();
    let nearest = scenario::did_you_mean(name, rows.iter().map(|row| row.name.as_str()));
    let hint = nearest.map_or_else(String::new, |nearest| format!(" did you mean `{nearest}`?"));
    format!("there is no scenario or file `{name}`:{hint} `ropewalk list scenarios` shows the names")
}

fn print_all(rows: &[Row], json: bool) -> Result<(), Failure> {
    if json {
        return output::json(&rows.iter().map(|row| &row.json).collect::<Vec<_>>());
    }
    let width = output::width();
    let name_width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let lines = rows.iter().map(|row| {
        let lines = std::iter::once(&row.title).chain(&row.details).enumerate();
        let indented = lines.flat_map(|(index, text)| {
            let name = if index == 0 { row.name.as_str() } else { "" };
            output::wrapped(text, width.saturating_sub(name_width + 2).max(20))
                .into_iter()
                .enumerate()
                .map(move |(line, text)| format!("{:name_width$}  {text}\n", if line == 0 { name } else { "" }))
        });
        indented.collect::<String>()
    });
    output::print(&lines.collect::<String>())
}

fn find<'r>(what: ListKind, rows: &'r [Row], name: &str) -> Result<&'r Row, Failure> {
    let canonical = match what {
        ListKind::Algorithms => registry::find(name).map_or(name, |entry| entry.name),
        ListKind::Schedulers => schedule::find(name).map_or(name, |entry| entry.name),
        ListKind::Stacks | ListKind::Scenarios => name,
    };
    rows.iter().find(|row| row.name == canonical).ok_or_else(|| {
        let hint = match what {
            ListKind::Algorithms => runner::suggestion(name),
            _ => scenario::did_you_mean(name, rows.iter().map(|row| row.name.as_str())).map_or_else(
                || "the list without a name shows all of them".to_owned(),
                |closest_name| format!("did you mean `{closest_name}`?"),
            ),
        };
        Failure::Usage(format!("there is no `{name}`: {hint}"))
    })
}

/// The facts that an entry of a registry has about an algorithm.
struct Facts<'e> {
    name: &'e str,
    aliases: &'e [&'e str],
    title: &'e str,
    source: &'e str,
    parameters: &'e [Parameter],
    /// Further facts: a key of the JSON, which is also the label of a line, and the value.
    facts: Vec<(&'e str, &'e str)>,
}

impl Facts<'_> {
    fn row(&self) -> Row {
        let names = self.parameters.iter().map(|parameter| parameter.name).collect::<Vec<_>>().join(", ");
        let also = [("also", self.aliases.join(", ")), ("parameters", names)];
        let facts = self.facts.iter().map(|(key, value)| (*key, (*value).to_owned()));
        let details = also.into_iter().chain(facts).filter(|(_, value)| !value.is_empty());
        let details = details.map(|(key, value)| format!("  {key}: {value}"));
        let details = std::iter::once(format!("  {}", self.source)).chain(details).collect();
        Row { name: self.name.to_owned(), title: self.title.to_owned(), details, json: self.json(), full: self.full() }
    }

    fn json(&self) -> Value {
        let parameters: Vec<_> = self.parameters.iter().map(parameter).collect();
        let mut json = json!({
            "name": self.name, "aliases": self.aliases, "title": self.title, "source": self.source,
            "parameters": parameters,
        });
        self.facts.iter().for_each(|(key, value)| json[*key] = (*value).into());
        json
    }

    fn full(&self) -> String {
        let facts = self.facts.iter().map(|(key, value)| format!("  {key}: {value}\n"));
        let lines = self.parameters.iter().map(|parameter| {
            let default = parameter.default_value().map_or_else(|| "\"...\"".to_owned(), |value| value.to_string());
            format!("  {} = {default}   ({})\n      {}\n", parameter.name, parameter.range(), parameter.description)
        });
        let parameters: String = lines.collect();
        let parameters = if parameters.is_empty() { "  none\n".to_owned() } else { parameters };
        let heading = heading(self.name, self.aliases, self.title, self.source);
        heading + &facts.collect::<String>() + "parameters\n" + &parameters
    }
}

fn algorithm(entry: &AlgorithmEntry) -> Row {
    let &AlgorithmEntry { name, aliases, title, source, parameters, .. } = entry;
    let coupled_title = format!("{title} (coupled)");
    let title = if entry.is_coupled() { &coupled_title } else { title };
    let controls = if entry.is_coupled() { "the paths of a connection together" } else { "each path by itself" };
    Facts { name, aliases, title, source, parameters, facts: vec![("controls", controls)] }.row()
}

fn scheduler(entry: &schedule::SchedulerEntry) -> Row {
    let &schedule::SchedulerEntry { name, aliases, title, source, parameters, .. } = entry;
    let needs = match entry.needs {
        Needs::Nothing => "nothing",
        Needs::Measurements => "measurements",
    };
    let fills = match entry.fill {
        Fill::Cwnd => "windows",
        Fill::SendBuffer => "buffers",
    };
    Facts { name, aliases, title, source, parameters, facts: vec![("needs", needs), ("fills", fills)] }.row()
}

fn stack(entry: &stack::StackEntry) -> Row {
    let &stack::StackEntry { name, title, code_version, max_paths, parameters, .. } = entry;
    let paths = max_paths.to_string();
    Facts { name, aliases: &[], title, source: code_version, parameters, facts: vec![("paths", &paths)] }.row()
}

fn parameter(parameter: &Parameter) -> Value {
    let range = match parameter.kind {
        ParamKind::Number { default, min, max } => json!({"default": default, "min": min, "max": max}),
        ParamKind::Choice(choices) => json!({"default": choices[0], "choices": choices}),
        ParamKind::File => json!({"file": true}),
    };
    let mut description = json!({"name": parameter.name, "description": parameter.description});
    for (key, value) in range.as_object().into_iter().flatten() {
        description[key] = value.clone();
    }
    description
}

fn heading(name: &str, aliases: &[&str], title: &str, source: &str) -> String {
    let aliases = if aliases.is_empty() { String::new() } else { format!(" (also {})", aliases.join(", ")) };
    paragraph(&[&format!("{name}{aliases}"), title, source])
}

/// A name with lines below it; empty lines are left out.
fn paragraph(lines: &[&str]) -> String {
    let lines = lines.iter().filter(|line| !line.is_empty()).map(|line| format!("{line}\n"));
    lines.collect::<Vec<_>>().join("  ")
}

/// The scenario files below `./scenarios`. A file that cannot be read is listed with the error.
fn scenarios() -> Vec<Row> {
    let mut files = Vec::new();
    collect(Path::new("scenarios"), &mut files);
    files.sort();
    let mut rows: Vec<Row> = files
        .iter()
        .map(|file| row_of(&file.display().to_string(), scenario::load(file, &scenario::Overrides::default())))
        .collect();
    let built_in = scenario::built_in().filter(|built_in| rows.iter().all(|row| row.name != built_in.name()));
    let built_in: Vec<Row> =
        built_in.map(|built_in| row_of("built in", built_in.load(&scenario::Overrides::default()))).collect();
    rows.extend(built_in);
    rows
}

/// The scenario called `name`, from a file below ./scenarios or built in, and its path.
pub(super) fn scenario_called(
    name: &str,
    overrides: &scenario::Overrides,
) -> Option<(String, Result<scenario::Scenario, scenario::Error>)> {
    if let Some(file) = file_called(name) {
        return Some((file.display().to_string(), scenario::load(&file, overrides)));
    }
    let built_in = scenario::built_in().find(|built_in| built_in.name() == name)?;
    Some((format!("the built-in {}", built_in.path), built_in.load(overrides)))
}

/// The file below ./scenarios of this name.
pub(super) fn file_called(name: &str) -> Option<PathBuf> {
    let mut files = Vec::new();
    collect(Path::new("scenarios"), &mut files);
    files.sort();
    files.into_iter().find(|file| file.file_stem().is_some_and(|stem| stem == name))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
}

fn row_of(path: &str, read: Result<scenario::Scenario, scenario::Error>) -> Row {
    match read {
        Ok(scenario) => {
            let runs = scenario.cells.len() * scenario.seeds.len();
            let (name, title, about, source) = (scenario.name, scenario.title, scenario.about, scenario.source);
            let json = json!({
                "name": name, "title": title, "about": about, "source": source, "file": path, "runs": runs,
            });
            let full = paragraph(&[&name, &title, &source, &format!("{path}, runs: {runs}")]) + "\n" + &about + "\n";
            Row { name, title: format!("{title}  ({path})"), details: Vec::new(), json, full }
        }
        Err(error) => Row {
            name: path.to_owned(),
            title: format!("cannot be read: {}", error.message()),
            details: Vec::new(),
            json: json!({"file": path, "error": error.message()}),
            full: format!("{error}\n"),
        },
    }
}
