//! A look at pages in a browser: those of the site, and one of each kind that the program writes.

use crate::shell;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The page that opens others in frames as wide as a phone, and reports their faults.
const FRAMES: &str = include_str!("look.html");
/// Name, width, and 1 for light or 0 for dark colours, of the screenshots.
const SCREENS: [(&str, u32, u32); 3] = [("light", 1280, 1), ("dark", 1280, 0), ("phone", 400, 1)];
/// A page of each kind that the program writes, and the command that writes it, in the folder of the look.
const REPORTS: [(&str, &str); 4] = [
    ("run/report", "run wifi-lte --quick --quiet --out run"),
    ("evaluate/report", "evaluate reno --quick --quiet --case deep-queue --case random-loss --out evaluate"),
    ("run/compare", "compare run run"),
    ("trace", "trace wifi-lte --cell congestion=lia --cell loss=1% --page trace.html"),
];

/// Opens pages of a site and of the program in Chromium: it is an error if a main heading is missing, a page is wider than a
/// phone, the console has a message, the search finds nothing, or a report has text that is hard to read on its background.
/// Leaves screenshots in `target/look` if asked to.
pub(crate) fn at(site: &Path, pages: &[String], screenshots: bool) -> Result<(), String> {
    let folder = shell::target().join("look");
    let io_error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(io_error)?;
    fs::write(folder.join("frames.html"), FRAMES).map_err(io_error)?;
    symlink(site, folder.join("site")).map_err(io_error)?;
    write_reports(&folder)?;
    let reports = REPORTS.iter().map(|(page, _)| (*page).to_owned());
    let pages: Vec<String> = pages.iter().map(|page| format!("site/{page}")).chain(reports).collect();
    let server = Server::start(&folder)?;
    for (screen, _, colours) in SCREENS.iter().take(2) {
        let colours = format!("--blink-settings=preferredColorScheme={colours}");
        let address = format!("{}/frames.html#{}", server.address, pages.join(","));
        let (document, console) = chromium(&["--virtual-time-budget=60000", "--dump-dom", &colours], &address)?;
        let (lines, expected) = (findings(&document), pages.len() + 2);
        let wrong: Vec<_> = lines.iter().filter(|line| !line.ends_with(": fine")).map(String::as_str).collect();
        if lines.len() != expected || !wrong.is_empty() || !console.is_empty() {
            let (said, wrong, console) = (lines.len(), wrong.join("\n"), console.join("\n"));
            return Err(format!("look, {screen}: {said} of {expected} answers\n{wrong}\n{console}"));
        }
    }
    for (page, (screen, width, colours)) in pages.iter().flat_map(|page| SCREENS.map(|screen| (page, screen))) {
        if screenshots {
            let file = folder.join(format!("{}-{screen}.png", page.replace('/', "-")));
            let (file, size) = (format!("--screenshot={}", file.display()), format!("--window-size={width},1600"));
            let colours = format!("--blink-settings=preferredColorScheme={colours}");
            let options = ["--hide-scrollbars", "--virtual-time-budget=8000", &colours, &size, &file];
            chromium(&options, &format!("{}/{page}.html", server.address))?;
        }
    }
    shell::print(&format!("look: {} pages and the search are fine; {}\n", pages.len(), folder.display()))
}

/// Writes the pages of [`REPORTS`].
fn write_reports(folder: &Path) -> Result<(), String> {
    shell::run("cargo build --quiet --package ropewalk --all-features --locked")?;
    let program = shell::target().join("debug/ropewalk");
    for (_, line) in REPORTS {
        let output = Command::new(&program).args(line.split(' ')).current_dir(folder).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        if !output.status.success() {
            return Err(format!("ropewalk {line}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(())
}

/// The texts of the paragraphs that `look.html` has made.
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
