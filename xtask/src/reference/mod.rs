//! `cargo xtask reference`: writes the generated parts of docs/reference from the program's schema, lists and help.
//!
//! A part is between `<!-- generated: SOURCE ... -->` and `<!-- end -->`:
//!
//! - `keys TABLE: KEY, KEY ...`: keys of the scenario file, from the JSON Schema; without a list all keys of the table
//! - `algorithms`, `schedulers`, `table of schedulers`: the output of `list NAME --json`
//! - `command NAME`: a command with its options, from its `--help`

mod commands;
mod keys;
mod markdown;
mod registry;

use crate::{page, shell};
use keys::Keys;
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "docs/reference";
const USAGE: &str = "usage: cargo xtask reference [--check] [--program FILE]";

/// Writes the parts, or with `--check` compares them.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (mut is_check, mut program) = (false, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "--check" => is_check = true,
            "--program" => program = Some(PathBuf::from(rest.next().ok_or(USAGE)?)),
            other => return Err(format!("no option `{other}`\n{USAGE}")),
        }
    }
    let program = program.map_or_else(build, Ok)?;
    if is_check { check(&program) } else { write(&program) }
}

fn build() -> Result<PathBuf, String> {
    shell::run("cargo build --locked --package ropewalk --all-features")?;
    Ok(shell::target().join("debug/ropewalk"))
}

/// Fails with the names of the pages that differ from the program's output.
pub(crate) fn check(program: &Path) -> Result<(), String> {
    let stale: Vec<_> = pages(program)?.into_iter().filter(|page| page.text != page.generated).collect();
    if stale.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = stale.iter().map(|page| page.path.display().to_string()).collect();
    Err(format!("not current: {}\n`cargo xtask reference` writes them", names.join(", ")))
}

fn write(program: &Path) -> Result<(), String> {
    for page in pages(program)?.into_iter().filter(|page| page.text != page.generated) {
        let path = page.path.display();
        fs::write(shell::root().join(&page.path), page.generated).map_err(|error| format!("{path}: {error}"))?;
        shell::print(&format!("{path}\n"))?;
    }
    Ok(())
}

/// A page as it is and as it should be.
struct Page {
    path: PathBuf,
    text: String,
    generated: String,
}

fn pages(program: &Path) -> Result<Vec<Page>, String> {
    let program = program.to_str().ok_or("the program's path is not UTF-8")?;
    let mut pages = Vec::new();
    collect(Path::new(FOLDER), &mut pages)?;
    let mut keys = Keys::new(&shell::output(&format!("{program} schema"))?)?;
    let (mut documented, mut absent) = (Vec::new(), Vec::new());
    for page in &mut pages {
        for mark in page::marks(&page.text, "generated") {
            let contents = match mark.split_once(' ') {
                Some(("keys", rest)) => Some(keys.section(rest, depth(&page.path))?),
                Some(("command", name)) => {
                    documented.push(name.to_owned());
                    commands::section(program, name)?
                }
                _ => Some(registry::section(program, mark)?),
            };
            match contents {
                Some(contents) => {
                    page.generated = page::replace(&page.generated, &format!("generated: {mark}"), &contents)?;
                }
                None => absent.push(mark.to_owned()),
            }
        }
    }
    if !absent.is_empty() {
        eprintln!("not compared, {program} is built without them: {}", absent.join(", "));
    }
    keys.complete()?;
    let missing = commands::all(program)?.into_iter().filter(|name| !documented.contains(name)).collect::<Vec<_>>();
    if missing.is_empty() { Ok(pages) } else { Err(format!("no page of {FOLDER} has: {}", missing.join(", "))) }
}

/// The depth of a page's folder below docs/reference.
fn depth(path: &Path) -> usize {
    path.components().count() - Path::new(FOLDER).components().count() - 1
}

/// The pages of a folder, by name, with those of its folders.
fn collect(folder: &Path, pages: &mut Vec<Page>) -> Result<(), String> {
    let full = shell::root().join(folder);
    let error = |error: std::io::Error| format!("{}: {error}", full.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&full).map_err(error)? {
        names.push(entry.map_err(error)?.file_name());
    }
    names.sort();
    for path in names.iter().map(|name| folder.join(name)) {
        if shell::root().join(&path).is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(shell::root().join(&path)).map_err(error)?;
            pages.push(Page { path, generated: text.clone(), text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_pages_has_a_source_and_an_end() {
        let mut pages = Vec::new();
        collect(Path::new(FOLDER), &mut pages).expect("pages");
        let mut count = 0;
        for page in &pages {
            for mark in page::marks(&page.text, "generated") {
                let first = mark.split(' ').next().unwrap_or_default();
                assert!(["keys", "command", "algorithms", "schedulers", "table"].contains(&first), "{mark}");
                let again = page::replace(&page.text, &format!("generated: {mark}"), "x");
                assert!(again.is_ok(), "{}: {again:?}", page.path.display());
                count += 1;
            }
        }
        assert!(count > 20, "{count} parts");
    }

    #[test]
    fn depth_is_counted_from_the_folder_of_the_reference() {
        assert_eq!(depth(Path::new("docs/reference/scenario.md")), 0);
        assert_eq!(depth(Path::new("docs/reference/scenario/path.md")), 1);
    }
}
