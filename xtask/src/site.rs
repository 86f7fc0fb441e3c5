//! `cargo xtask site`: the site of `docs/`, and a look at it in a browser.

use crate::{python, shell};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The packages that build the site, for the environment `python-site`.
const REQUIREMENTS: &str = "docs/requirements.txt";
/// Pages that are always looked at, next to the largest one of each folder.
const PAGES: [&str; 3] = ["index", "features", "reference/python-api"];
/// The page that opens others in frames as wide as a phone, and reports their faults.
const FRAMES: &str = include_str!("site.html");
/// Name, width, and 1 for light or 0 for dark colours, of the screenshots.
const SCREENS: [(&str, u32, u32); 3] = [("light", 1280, 1), ("dark", 1280, 0), ("phone", 400, 1)];

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

/// Opens ten pages in Chromium: it is an error if a main heading is missing, a page is wider than a phone, the console has a
/// message, or the search finds nothing. Leaves screenshots in `target/site-look` if asked to.
fn look(screenshots: bool) -> Result<(), String> {
    let folder = shell::target().join("site-look");
    let io_error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(io_error)?;
    fs::write(folder.join("frames.html"), FRAMES).map_err(io_error)?;
    symlink(site(), folder.join("site")).map_err(io_error)?;
    let (pages, server) = (pages(&site())?, Server::start(&folder)?);
    let address = format!("{}/frames.html#{}", server.address, pages.join(","));
    let (document, console) = chromium(&["--virtual-time-budget=60000", "--dump-dom"], &address)?;
    let (lines, expected) = (findings(&document), pages.len() + 2);
    let wrong: Vec<_> = lines.iter().filter(|line| !line.ends_with(": fine")).map(String::as_str).collect();
    if lines.len() != expected || !wrong.is_empty() || !console.is_empty() {
        let said = lines.len();
        return Err(format!("site: {said} of {expected} answers\n{}\n{}", wrong.join("\n"), console.join("\n")));
    }
    for (page, (screen, width, colours)) in pages.iter().flat_map(|page| SCREENS.map(|screen| (page, screen))) {
        if screenshots {
            let file = folder.join(format!("{}-{screen}.png", page.replace('/', "-")));
            let (file, size) = (format!("--screenshot={}", file.display()), format!("--window-size={width},1600"));
            let colours = format!("--blink-settings=preferredColorScheme={colours}");
            chromium(&["--hide-scrollbars", &colours, &size, &file], &format!("{}/site/{page}.html", server.address))?;
        }
    }
    shell::print(&format!("site: {} pages and the search are fine; {}\n", pages.len(), folder.display()))
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

/// The texts of the paragraphs that `site.html` has made.
fn findings(document: &str) -> Vec<String> {
    let paragraphs = document.split("<p>").skip(1).filter_map(|rest| rest.split_once("</p>"));
    paragraphs.map(|(text, _)| text.to_owned()).collect()
}

/// Runs Chromium without a window; returns what it prints, and the lines of the console.
fn chromium(options: &[&str], address: &str) -> Result<(String, Vec<String>), String> {
    let fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"];
    let output = Command::new("chromium").args(fixed).args(options).arg(address).output();
    let output = output.map_err(|error| format!("cannot run chromium, Debian's package of that name: {error}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let console = log.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), console))
}

/// A web server for a folder, on a free port. The search works only with a server.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Result<Self, String> {
        let mut command = Command::new("python3");
        command.args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"]).arg(folder);
        let failed = |error: std::io::Error| format!("cannot start a web server: {error}");
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
        let mut line = String::new();
        let read = process.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        let server = |address| Self { process, address };
        read.transpose().map_err(failed)?;
        let port = line.split(" port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("0");
        Ok(server(format!("http://127.0.0.1:{port}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_the_paragraphs() {
        assert_eq!(findings("<body><p>index: fine</p><iframe></iframe><p>all: fine</p>"), ["index: fine", "all: fine"]);
    }
}
