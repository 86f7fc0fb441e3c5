//! `cargo xtask paper`: runs the studies of docs/explanation/algorithm.md, and writes its tables and its figure.
//!
//! A table stands between `<!-- table: NAME -->` and `<!-- end -->`. Each study has a folder below `--results`, and an
//! interrupted one continues where it stopped.

mod results;
mod tables;

use crate::{page, shell};
use results::Results;
use std::fs;

const PAGE: &str = "docs/explanation/algorithm.md";
const FIGURE: &str = "docs/figures/open-question.svg";
const USAGE: &str = "usage: cargo xtask paper [--quick] [--stored] [--results FOLDER] [--program FILE] [STUDY ...]";

/// A study, and the command that makes its results.
#[derive(Debug)]
struct Study {
    /// Its folder below the results'.
    name: &'static str,
    /// Arguments of `ropewalk`, without `--out`.
    command: &'static str,
    /// Whether it runs only if it is named: it needs root and an idle machine.
    only_by_name: bool,
}

const fn study(name: &'static str, command: &'static str) -> Study {
    Study { name, command, only_by_name: false }
}

const fn on_kernel(name: &'static str, command: &'static str) -> Study {
    Study { only_by_name: true, ..study(name, command) }
}

const STUDIES: &[Study] = &[
    study("evaluate", "evaluate discern bbr-path bbr3-draft copa prague cubic"),
    study("parts", PARTS),
    study("worlds", "evaluate discern bbr3-draft bbr-path --worlds 1000..21000 --part judge --json"),
    study("open-question", "run scenarios/studies/open-question.toml"),
    study("path-control", "run scenarios/studies/path-control.toml"),
    study("wide-area", "run scenarios/studies/wide-area.toml"),
    study("ablation", "run scenarios/studies/ablation.toml"),
    study("reordering", "run scenarios/tunnel/reordering.toml"),
    study("tunnel-and-cubic", "run scenarios/tunnel/tunnel-and-cubic.toml"),
    study("program", "run scenarios/multipath/discern-kernel.toml"),
    study("sample", "run scenarios/studies/open-question-sample.toml --set duration=20s"),
    on_kernel("kernel", "run scenarios/studies/open-question-sample.toml --on netns --set duration=20s"),
    on_kernel("kernel-tunnel-and-cubic", "run scenarios/tunnel/tunnel-and-cubic.toml --on netns --jobs 1"),
    on_kernel("kernel-program", "run scenarios/multipath/discern-kernel.toml --on netns --jobs 1"),
];

/// `discern` as a whole and without each of its parts, in the questions for which these parts exist.
const PARTS: &str = "evaluate discern {name=\"discern\",polite=\"off\"} {name=\"discern\",experiment=\"off\"} \
    {name=\"discern\",couple=\"off\"} --case ten-flows --case newcomers --case long-beside-cubic --case starvation \
    --case real-time --case random-loss --case tunnel-shared";

#[derive(Debug, Default)]
struct Options {
    is_quick: bool,
    is_stored: bool,
    results: Option<String>,
    program: Option<String>,
    studies: Vec<&'static Study>,
}

impl Options {
    fn new(arguments: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        let value = |given: Option<&&str>| given.map(|given| (*given).to_owned()).ok_or(USAGE.to_owned());
        while let Some(argument) = rest.next() {
            match *argument {
                "--quick" => options.is_quick = true,
                "--stored" => options.is_stored = true,
                "--results" => options.results = Some(value(rest.next())?),
                "--program" => options.program = Some(value(rest.next())?),
                name => options.studies.push(named(name)?),
            }
        }
        if options.studies.is_empty() {
            options.studies = STUDIES.iter().filter(|study| options.is_stored || !study.only_by_name).collect();
        }
        Ok(options)
    }

    /// Whether a study is to be run or written.
    fn asks(&self, study: &str) -> bool {
        self.studies.iter().any(|asked| asked.name == study)
    }
}

fn named(name: &str) -> Result<&'static Study, String> {
    let names = || STUDIES.iter().map(|study| study.name).collect::<Vec<_>>().join(", ");
    let found = STUDIES.iter().find(|study| study.name == name);
    found.ok_or_else(|| format!("no study or option `{name}`; the studies are {}\n{USAGE}", names()))
}

/// Runs the studies and writes their tables into the page. Short runs (`--quick`) only print their tables.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = Options::new(arguments)?;
    let results = Results {
        folder: options
            .results
            .clone()
            .unwrap_or_else(|| format!("target/paper{}", if options.is_quick { "-quick" } else { "" })),
        program: program(&options)?,
    };
    if !options.is_stored {
        options.studies.iter().try_for_each(|study| fill(study, &results, options.is_quick))?;
    }
    let path = shell::root().join(PAGE);
    let mut text = fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
    for table in tables::TABLES {
        match table.studies.iter().find(|name| !results.has(name)) {
            _ if !table.studies.iter().any(|name| options.asks(name)) => {}
            Some(missing) => {
                eprintln!("table `{}` stays: {}/{missing} has no finished results", table.name, results.folder);
            }
            None if options.is_quick => shell::print(&format!("\n{}\n\n{}", table.name, (table.make)(&results)?))?,
            None => text = page::replace(&text, &format!("table: {}", table.name), &(table.make)(&results)?)?,
        }
    }
    if options.is_quick {
        return Ok(());
    }
    fs::write(path, text).map_err(|error| format!("{PAGE}: {error}"))?;
    let has_figure = options.asks("open-question") && results.has("open-question");
    if has_figure { results.copy_figure("open-question", FIGURE) } else { Ok(()) }
}

/// The program that runs the studies: the given one, or one that is built.
fn program(options: &Options) -> Result<String, String> {
    if let Some(program) = &options.program {
        return Ok(program.clone());
    }
    shell::run("cargo build --locked --release --package ropewalk --features kernel,lab")?;
    Ok(shell::target().join("release/ropewalk").display().to_string())
}

/// Runs a study, or its missing runs. Its output is kept next to its folder.
fn fill(study: &Study, results: &Results, is_quick: bool) -> Result<(), String> {
    let command = match (is_quick, study.name) {
        (false, _) => study.command.to_owned(),
        (true, "worlds") => study.command.replace("..21000", "..1020"),
        (true, _) => format!("{} --quick", study.command),
    };
    let output =
        shell::output_shown(&format!("{} {command} --quiet --out {}/{}", results.program, results.folder, study.name))?;
    let kept = shell::root().join(results.output(study.name));
    fs::write(&kept, output).map_err(|error| format!("{}: {error}", kept.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_table_of_the_page_is_made_and_each_that_is_made_is_on_the_page() {
        let text = fs::read_to_string(shell::root().join(PAGE)).expect("the page").leak();
        let on_page: BTreeSet<&str> = page::marks(text, "table").into_iter().collect();
        assert_eq!(on_page, tables::TABLES.iter().map(|table| table.name).collect());
    }

    #[test]
    fn a_study_that_needs_root_runs_only_by_name() {
        let names = |arguments: &[&str]| {
            let options = Options::new(arguments).expect("options");
            options.studies.iter().map(|study| study.name).collect::<Vec<_>>()
        };
        assert!(!names(&["--quick"]).contains(&"kernel"));
        assert_eq!(names(&["kernel"]), ["kernel"]);
        assert!(Options::new(&["colonel"]).is_err_and(|error| error.contains("path-control")));
    }

    #[test]
    fn the_scenario_of_each_study_and_of_each_table_exists() {
        for study in STUDIES.iter().filter(|study| study.command.starts_with("run")) {
            let file = study.command.split(' ').nth(1).expect("a file");
            assert!(shell::root().join(file).is_file(), "{file}");
        }
        for name in tables::TABLES.iter().flat_map(|table| table.studies) {
            assert!(named(name).is_ok(), "{name}");
        }
    }
}
