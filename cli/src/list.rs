//! `ropewalk list`: what there is to choose from.

use crate::arguments::{List, What};
use crate::{Failure, checks, output};
use control::Default;
use control::Entry;
use control::registry::{self, REGISTRY};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Something with a name and a line about it.
struct Row {
    name: String,
    title: String,
    /// Lines below it in the list.
    below: Vec<String>,
    json: Value,
    /// All there is to say, where one name was asked for.
    full: String,
}

/// Prints one of the lists, or one entry of it.
pub(crate) fn list(arguments: &List) -> Result<(), Failure> {
    let rows = match arguments.what {
        What::Algorithms => REGISTRY.iter().map(|entry| algorithm(entry)).collect(),
        What::Schedulers => schedule::REGISTRY.iter().map(|entry| scheduler(entry)).collect(),
        What::Scenarios => scenarios(),
    };
    let Some(name) = &arguments.name else { return print_all(&rows, arguments.json) };
    let row = find(arguments.what, &rows, name)?;
    if arguments.json { output::json(&row.json) } else { output::print(&row.full) }
}

fn print_all(rows: &[Row], json: bool) -> Result<(), Failure> {
    if json {
        return output::json(&rows.iter().map(|row| &row.json).collect::<Vec<_>>());
    }
    let widest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let lines = rows.iter().map(|row| {
        let below: String = row.below.iter().map(|line| format!("{:widest$}  {line}\n", "")).collect();
        format!("{:widest$}  {}\n{below}", row.name, row.title)
    });
    output::print(&lines.collect::<String>())
}

fn find<'r>(what: What, rows: &'r [Row], name: &str) -> Result<&'r Row, Failure> {
    let canonical = match what {
        What::Algorithms => registry::find(name).map_or(name, |entry| entry.name),
        What::Schedulers => schedule::find(name).map_or(name, |entry| entry.name),
        What::Scenarios => name,
    };
    rows.iter().find(|row| row.name == canonical).ok_or_else(|| {
        let hint = match what {
            What::Algorithms => checks::suggestion(name),
            _ => scenario::did_you_mean(name, rows.iter().map(|row| row.name.as_str())).map_or_else(
                || "the list without a name shows all".to_owned(),
                |near| format!("did you mean `{near}`?"),
            ),
        };
        Failure::Usage(format!("there is no `{name}`: {hint}"))
    })
}

fn algorithm(entry: &Entry) -> Row {
    let parameters: Vec<_> = entry.parameters.iter().map(parameter).collect();
    let json = json!({
        "name": entry.name, "aliases": entry.aliases, "title": entry.title, "source": entry.source,
        "coupled": entry.is_coupled(), "parameters": parameters,
    });
    let lines = entry.parameters.iter().map(|parameter| {
        let (name, default, range) = (parameter.name, parameter.default_value(), parameter.range());
        format!("  {name} = {default}   ({range})\n      {}\n", parameter.meaning)
    });
    let parameters: String = lines.collect();
    let parameters = if parameters.is_empty() { "  none\n".to_owned() } else { parameters };
    let title = if entry.is_coupled() { format!("{} (coupled)", entry.title) } else { entry.title.to_owned() };
    let full = heading(entry.name, entry.aliases, &title, entry.source) + "parameters\n" + &parameters;
    let below = [("also", entry.aliases.to_vec()), ("parameters", entry.parameters.iter().map(|it| it.name).collect())];
    let below = below.iter().filter(|(_, names)| !names.is_empty());
    let below = below.map(|(what, names)| format!("  {what}: {}", names.join(", ")));
    let below = std::iter::once(format!("  {}", entry.source)).chain(below).collect();
    Row { name: entry.name.to_owned(), title, below, json, full }
}

fn parameter(parameter: &control::Parameter) -> Value {
    let range = match parameter.default {
        Default::Number { value, least, most } => json!({"default": value, "min": least, "max": most}),
        Default::Word(words) => json!({"default": words[0], "words": words}),
    };
    let mut all = json!({"name": parameter.name, "meaning": parameter.meaning});
    for (key, value) in range.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    all
}

fn scheduler(entry: &schedule::Entry) -> Row {
    let schedule::Entry { name, aliases, title, source, .. } = entry;
    let json = json!({"name": name, "aliases": aliases, "title": title, "source": source});
    let full = heading(name, aliases, title, source);
    Row { name: (*name).to_owned(), title: (*title).to_owned(), below: Vec::new(), json, full }
}

fn heading(name: &str, aliases: &[&str], title: &str, source: &str) -> String {
    let aliases = if aliases.is_empty() { String::new() } else { format!(" (also {})", aliases.join(", ")) };
    paragraph(&[&format!("{name}{aliases}"), title, source])
}

/// A name with lines below it; lines without a word are left out.
fn paragraph(lines: &[&str]) -> String {
    let lines = lines.iter().filter(|line| !line.is_empty()).map(|line| format!("{line}\n"));
    lines.collect::<Vec<_>>().join("  ")
}

/// The scenario files below `./scenarios`. A file that cannot be read is listed with its fault.
fn scenarios() -> Vec<Row> {
    let mut files = Vec::new();
    collect(Path::new("scenarios"), &mut files);
    files.sort();
    files.iter().map(|file| scenario_row(file)).collect()
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

fn scenario_row(file: &Path) -> Row {
    let path = file.display().to_string();
    match scenario::load(file, &scenario::Overrides::default()) {
        Ok(scenario) => {
            let runs = scenario.cells.len() * scenario.seeds.len();
            let (name, title, about, source) = (scenario.name, scenario.title, scenario.about, scenario.source);
            let json = json!({
                "name": name, "title": title, "about": about, "source": source, "file": path, "runs": runs,
            });
            let full = paragraph(&[&name, &title, &source, &format!("{path}, runs: {runs}")]) + "\n" + &about + "\n";
            Row { name, title: format!("{title}  ({path})"), below: Vec::new(), json, full }
        }
        Err(error) => Row {
            name: path.clone(),
            title: format!("cannot be read: {}", error.message()),
            below: Vec::new(),
            json: json!({"file": path, "error": error.message()}),
            full: format!("{error}\n"),
        },
    }
}
