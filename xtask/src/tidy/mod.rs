//! `cargo xtask tidy`: checks of the rules for code and documents. Every finding names the file and the fix.

use crate::shell;
use std::path::{Path, PathBuf};

mod dependencies;
mod doc_comments;
mod homes;
mod lengths;
mod links;
mod packages;
mod prose;
mod purity;
mod security;

pub(crate) use doc_comments::print as print_prose;

/// A text file of the tree.
#[derive(Debug)]
struct Source {
    /// Relative to the workspace's folder, with `/`.
    path: String,
    text: String,
}

/// Runs every check and lists all findings; `update` lets the ratchets shrink.
pub(crate) fn run(update: bool) -> Result<(), String> {
    let root = shell::root();
    let sources = sources(&root)?;
    let mut findings = dependencies::check(&shell::metadata("--no-deps")?);
    findings.extend(packages::check(&shell::metadata("--locked")?));
    findings.extend(purity::check(&sources));
    findings.extend(lengths::check(&root, &sources, update)?);
    findings.extend(links::check(&sources, &|path| root.join(path).exists()));
    findings.extend(prose::check(&sources));
    findings.extend(doc_comments::check(&root, &sources, update)?);
    findings.extend(homes::check(&root, &sources));
    findings.extend(security::check(&sources));
    if findings.is_empty() {
        return shell::print(&format!("tidy: {} files are in order\n", sources.len()));
    }
    findings.iter().for_each(|finding| eprintln!("tidy: {finding}"));
    Err(format!("{} findings of `cargo xtask tidy`", findings.len()))
}

/// Folders that are not checked: those that git does not track (see `.gitignore`), and git's own.
const EXCLUDED: &[&str] = &[
    ".git",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".venv",
    "__pycache__",
    "results",
    "target",
];

/// Every text file, in the order of their names; binary files are skipped.
fn sources(root: &Path) -> Result<Vec<Source>, String> {
    let mut folders = vec![root.to_owned()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            if path.file_name().is_some_and(|name| EXCLUDED.iter().any(|excluded| name == *excluded)) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = path.strip_prefix(root).expect("the walk starts at the root");
                sources.push(Source { path: path.to_string_lossy().replace('\\', "/"), text });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let read_error = |error| format!("{}: {error}", folder.display());
    std::fs::read_dir(folder)
        .map_err(read_error)?
        .map(|entry| entry.map(|entry| entry.path()).map_err(read_error))
        .collect()
}
