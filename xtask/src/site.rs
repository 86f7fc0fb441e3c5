//! `cargo xtask site`: the site of `docs/`, and a look at its pages in a browser.

use crate::{look, python, shell};
use std::fs;
use std::path::{Path, PathBuf};

/// The packages that build the site, for the environment `python-site`.
const REQUIREMENTS: &str = "docs/requirements.txt";
/// Pages that are always looked at, next to the largest one of each folder.
const PAGES: [&str; 3] = ["index", "features", "reference/python-api"];

/// `cargo xtask site [--look]`.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    match options {
        [] => build(),
        ["--look"] => build().and_then(|()| look(true)),
        unknown => Err(format!("no option `{}` of site: --look", unknown.join(" "))),
    }
}

/// As [`run`], with the checks in a browser if there is one; for the full tier.
pub(crate) fn check() -> Result<(), String> {
    build()?;
    if shell::succeeds("chromium --version") { look(false) } else { Ok(()) }
}

/// The environment that builds the site.
pub(crate) fn tools() -> Result<PathBuf, String> {
    python::environment("python-site", REQUIREMENTS)
}

/// Builds the site into `target/site`. A broken link is an error.
fn build() -> Result<(), String> {
    let (mkdocs, site) = (tools()?.join("bin/mkdocs"), site());
    let line = format!("{} build --quiet --strict --site-dir {}", mkdocs.display(), site.display());
    shell::run_with(&[("NO_MKDOCS_2_WARNING", "1")], &line)?;
    shell::print(&format!("{}\n", site.join("index.html").display()))
}

fn site() -> PathBuf {
    shell::target().join("site")
}

fn look(screenshots: bool) -> Result<(), String> {
    look::at(&site(), &pages(&site())?, screenshots)
}

/// [`PAGES`], and the largest page of each other folder of the site.
fn pages(site: &Path) -> Result<Vec<String>, String> {
    let io_error = |error: std::io::Error| format!("{}: {error}", site.display());
    let mut pages: Vec<String> = PAGES.map(str::to_owned).to_vec();
    let mut folders: Vec<_> = fs::read_dir(site).map_err(io_error)?.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    for folder in folders.iter().filter(|path| path.is_dir()) {
        let files = fs::read_dir(folder).map_err(io_error)?.flatten();
        let html = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "html"));
        let largest = html.max_by_key(|file| file.metadata().map_or(0, |metadata| metadata.len()));
        let name = largest
            .and_then(|file| Some(file.path().strip_prefix(site).ok()?.with_extension("").display().to_string()));
        pages.extend(name.filter(|name| !PAGES.contains(&name.as_str())));
    }
    Ok(pages)
}
