//! `ropewalk new`: writes a scenario, as a starting point.

use crate::{Failure, output};
use filesystem::Links;
use scenario::IboxProfile;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// The scenario.
const TEMPLATE: &str = include_str!("../../assets/new.toml");
/// Its name in the template.
const NAME: &str = "my-scenario";
/// The maximum length of a profile, bytes.
const MAX_PROFILE: u64 = 1 << 20;

/// Writes `NAME.toml` into the current folder, unless there is one: over the paths of profiles, if there are any.
pub(crate) fn new(name: &str, ibox: &[PathBuf]) -> Result<(), Failure> {
    let name = name.strip_suffix(".toml").unwrap_or(name);
    check_name(name)?;
    let file = format!("{name}.toml");
    let text = if ibox.is_empty() { TEMPLATE.replace(NAME, name) } else { of_profiles(name, ibox)? };
    let written = File::create_new(&file).and_then(|mut target| target.write_all(text.as_bytes()));
    written.map_err(|error| Failure::Environment(format!("cannot write {file}: {error}")))?;
    output::print(&format!("{file}\nrun it with: ropewalk run {file}\n"))
}

fn check_name(name: &str) -> Result<(), Failure> {
    match !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        true => Ok(()),
        false => Err(Failure::Usage(format!("`{name}` is not a name: use letters, digits, `-` and `_`"))),
    }
}

fn of_profiles(name: &str, arguments: &[PathBuf]) -> Result<String, Failure> {
    let mut paths: Vec<(String, IboxProfile)> = Vec::new();
    for argument in arguments {
        let (name, file) = ::trace::named_file(argument);
        let name = name.or_else(|| Some(file.file_stem()?.to_string_lossy().into_owned())).unwrap_or_default();
        check_name(&name)?;
        if paths.iter().any(|(other, _)| *other == name) {
            return Err(Failure::Usage(format!("two paths are called `{name}`: name them by NAME=FILE")));
        }
        let wrong = |message: String| Failure::Script(format!("{}: {message}", file.display()));
        let text =
            filesystem::read_text(&file, Links::Follow, MAX_PROFILE).map_err(|error| wrong(error.to_string()))?;
        paths.push((name, IboxProfile::parse(&text).map_err(wrong)?));
    }
    Ok(scenario::of_ibox(name, &paths))
}
