//! `ropewalk evaluate`: the questions of RFC 9743 to one congestion control.

use super::{DriverChoice, Evaluate, Run, run};
use crate::Failure;
use control::registry;
use std::path::Path;

/// The scenario with the questions.
const SCENARIO: &str = "rfc9743";
/// The key of the algorithm under test, and what stands beside it.
const KEY: &str = "sweep.flow.test*.congestion";
const BESIDE: [&str; 2] = ["cubic", "reno"];

/// Runs the scenario with the algorithm in the place of `proposed`.
pub(crate) fn evaluate(arguments: &Evaluate) -> Result<(), Failure> {
    let (name, value) = proposed(&arguments.algorithm)?;
    let beside = BESIDE.map(|name| format!("\"{name}\"")).join(", ");
    let folder = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let set = vec![
        format!("name=\"{SCENARIO}-{folder}\""),
        format!("title={}", toml_text(&format!("The questions of RFC 9743 to {name}"))),
        format!("{KEY}=[{{ label = \"proposed\", value = {value} }}, {beside}]"),
    ];
    run::run(&Run {
        file: SCENARIO.into(),
        on: DriverChoice::Sim,
        traffic: None,
        set,
        quick: arguments.quick,
        own_files: false,
        jobs: arguments.jobs,
        seed: None,
        shard: None,
        out: arguments.out.clone(),
        no_store: arguments.no_store,
        partial: false,
        capture: false,
        json: arguments.json,
        quiet: arguments.quiet,
    })
}

/// A short name of an algorithm, and its TOML value: of a name of the registry, or of a policy's file.
fn proposed(algorithm: &str) -> Result<(String, String), Failure> {
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

/// A string of JSON is one of TOML, too.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
