//! The scenarios that the page may open: the one of the command line, and the built-in ones. Nothing that the page asks for
//! names another file.

use crate::Failure;
use crate::study::list;
use scenario::{BuiltIn, Error, Overrides, Scenario};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The scenarios.
pub(super) struct Sources {
    /// That of the command line: its name on the page, and its file.
    given: Option<(String, PathBuf)>,
    /// The name of the scenario that the page opens first.
    first: Option<String>,
}

impl Sources {
    /// The built-in scenarios, and the one at this path or of this name.
    pub(super) fn new(given: Option<&Path>) -> Result<Self, Failure> {
        let Some(given) = given else { return Ok(Self { given: None, first: None }) };
        let name = given.to_string_lossy().into_owned();
        let file = if given.exists() || name.contains('/') { Some(given.to_owned()) } else { list::file_called(&name) };
        match file {
            Some(file) => {
                // A built-in scenario has the files that it names within the program, wherever its own file lies.
                let text = scenario::read_text(&file)?;
                if let Some(built_in) = scenario::built_in().find(|built_in| built_in.text == text) {
                    return Ok(Self { given: None, first: Some(built_in.name().to_owned()) });
                }
                runner::check(&scenario::load_confined(&file, &Overrides::default())?)?;
                Ok(Self { first: Some(name.clone()), given: Some((name, file)) })
            }
            None if built_in(&name).is_some() => Ok(Self { given: None, first: Some(name) }),
            None => Err(Failure::Usage(list::no_scenario_called(&name))),
        }
    }

    /// Reads the scenario `name` with overrides; none if the page may not open it.
    pub(super) fn load(&self, name: &str, overrides: &Overrides) -> Option<Result<Scenario, Error>> {
        match &self.given {
            Some((given, file)) if given == name => Some(scenario::load_confined(file, overrides)),
            _ => Some(built_in(name)?.load_confined(overrides)),
        }
    }

    /// The list of the start page: each name with its folder and the sentence that its file opens with.
    pub(super) fn list(&self) -> Value {
        let folder = |built_in: &BuiltIn| Path::new(built_in.path).parent().unwrap_or(Path::new("")).to_owned();
        let row = |built_in: &BuiltIn| json!({ "name": built_in.name(), "folder": folder(built_in), "sentence": sentence(built_in.text) });
        let mut scenarios: Vec<BuiltIn> = scenario::built_in().collect();
        scenarios.sort_by_key(folder);
        json!({ "first": self.first, "scenarios": scenarios.iter().map(row).collect::<Vec<_>>() })
    }
}

fn built_in(name: &str) -> Option<BuiltIn> {
    scenario::built_in().find(|built_in| built_in.name() == name)
}

/// The comment with which a scenario's text opens.
fn sentence(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}
