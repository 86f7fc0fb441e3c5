//! `ropewalk evaluate`: evaluates congestion controls by the questions of RFC 9743, or in drawn worlds.

use super::run::{self, Finished};
use super::{DriverChoice, Evaluate, Run, worlds};
use crate::{Failure, output};
use ::report::ClaimColumn;
use control::registry;
use scenario::Overrides;
use std::path::{Path, PathBuf};

/// The scenario with the questions.
const SCENARIO: &str = "rfc9743";
/// The key of the algorithm under test, and the algorithms next to it.
const KEY: &str = "sweep.flow.test*.congestion";
const BESIDE: [&str; 2] = ["cubic", "reno"];

/// Evaluates algorithms by the questions, or in worlds.
pub(crate) fn evaluate(arguments: &Evaluate) -> Result<(), Failure> {
    let each =
        |judge: &dyn Fn(&str) -> Result<(), Failure>| arguments.algorithms.iter().try_for_each(|name| judge(name));
    match (&arguments.worlds, arguments.show) {
        (_, Some(seed)) => each(&|name| worlds::show(name, seed)),
        (Some(seeds), None) => each(&|name| worlds::run(arguments, name, seeds)),
        (None, None) => ask(arguments),
    }
}

/// Runs the questions for each algorithm. For one algorithm it shows the report, for several the verdicts side by side.
fn ask(arguments: &Evaluate) -> Result<(), Failure> {
    let proposed = arguments.algorithms.iter().map(|name| proposed(name)).collect::<Result<Vec<_>, _>>()?;
    if let [(name, value)] = &proposed[..] {
        return run::run(&questions(arguments, name, value, arguments.out.clone())?);
    }
    if arguments.json {
        return Err(Failure::Usage(
            "--json takes one algorithm; the folder of each algorithm has its numbers as tables".to_owned(),
        ));
    }
    let column = |(name, value): &(String, String)| {
        let out = arguments.out.as_ref().map(|out| out.join(folder_name(name)));
        let Finished { manifest, runs, dir, .. } = run::finish(&questions(arguments, name, value, out)?)?;
        if let Some(dir) = dir {
            runner::write_page(&dir, &manifest, &runs, |_| ())?;
        }
        Ok(ClaimColumn::of(name, &runner::to_report(&manifest, runner::layout(&manifest)?, &runs)))
    };
    let columns = proposed.iter().map(column).collect::<Result<Vec<_>, Failure>>()?;
    output::print(&::report::verdicts_table(&columns))
}

/// The part of a folder's name for an algorithm.
fn folder_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

/// The scenario with an algorithm, by its name, in the place of `proposed`.
fn questions(arguments: &Evaluate, name: &str, value: &str, out: Option<PathBuf>) -> Result<Run, Failure> {
    let tested = format!("{{ label = {}, value = {value} }}", toml_text(name));
    let others = BESIDE.into_iter().filter(|other| *other != name).map(toml_text);
    let swept: Vec<String> = std::iter::once(tested).chain(others).collect();
    let mut set = vec![
        format!("name=\"{SCENARIO}-{}\"", folder_name(name)),
        format!("title={}", toml_text(&format!("The questions of RFC 9743 to {name}"))),
        format!("{KEY}=[{}]", swept.join(", ")),
    ];
    set.extend(claims_about(name)?);
    if !arguments.cases.is_empty() {
        let cases: Vec<String> = arguments.cases.iter().map(|case| toml_text(case)).collect();
        set.push(format!("sweep.case=[{}]", cases.join(", ")));
    }
    Ok(Run {
        file: SCENARIO.into(),
        on: DriverChoice::Sim,
        traffic: None,
        set,
        quick: arguments.quick,
        own_files: false,
        jobs: arguments.jobs,
        seed: None,
        shard: None,
        out,
        no_store: arguments.no_store,
        partial: false,
        capture: false,
        json: arguments.json,
        quiet: arguments.quiet,
    })
}

/// What makes the claims of the scenario, which are about `proposed`, claims about an algorithm.
fn claims_about(name: &str) -> Result<Vec<String>, Failure> {
    let scenario = run::find(Path::new(SCENARIO), &Overrides::default(), true)?;
    let claims = ::report::layout(&scenario)?.claims;
    let named = |other: &String| toml_text(if other == "proposed" { name } else { other });
    let set = |(index, claim): (usize, &::report::Claim)| {
        let names: Vec<String> = claim.test.names().iter().map(named).collect();
        format!("claim.{index}.{}=[{}]", claim.test.key(), names.join(", "))
    };
    Ok(claims.iter().enumerate().map(set).collect())
}

/// A short name of an algorithm, and its TOML value: from a name of the registry, a table with parameters, or a policy's
/// file.
pub(super) fn proposed(algorithm: &str) -> Result<(String, String), Failure> {
    if algorithm.trim_start().starts_with('{') {
        return Ok((algorithm.to_owned(), algorithm.to_owned()));
    }
    if let Some(entry) = registry::find(algorithm) {
        return Ok((entry.name.to_owned(), format!("\"{}\"", entry.name)));
    }
    let file = Path::new(algorithm);
    if file.extension().is_none_or(|extension| extension != "onnx") {
        let hint = runner::suggestion(algorithm);
        return Err(Failure::Usage(format!(
            "there is no congestion control `{algorithm}`, and it names no FILE.onnx: {hint}"
        )));
    }
    let path =
        file.canonicalize().map_err(|error| Failure::Environment(format!("cannot read {algorithm}: {error}")))?;
    let (Some(stem), Some(path)) = (file.file_stem().and_then(|stem| stem.to_str()), path.to_str()) else {
        return Err(Failure::Usage(format!("the path of {algorithm} is not UTF-8")));
    };
    Ok((stem.to_owned(), format!("{{ name = \"policy\", file = {} }}", toml_text(path))))
}

/// A string in JSON is also one in TOML.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
