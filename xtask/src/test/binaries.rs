//! Test programs: cargo builds all of a tier at once, and each is run in its package's folder.

use super::totals::TestTotals;
use crate::shell;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lets a test program print the time of each test, which libtest allows only for nightly toolchains.
/// [`shell`] removes it from the environment of every program that we start from a test.
pub(crate) const UNSTABLE: &str = "RUSTC_BOOTSTRAP";

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Binary {
    /// `ropewalk-sim::suite`; unit tests are called as their package.
    pub(super) name: String,
    program: PathBuf,
    /// The package's folder.
    folder: PathBuf,
}

/// Builds the test programs of a `cargo test` line.
///
/// # Errors
/// A program that does not compile.
pub(super) fn build(line: &str) -> Result<Vec<Binary>, String> {
    let messages = shell::output_shown(&format!("{line} --no-run --message-format=json-render-diagnostics"))?;
    Ok(messages.lines().filter_map(|line| Binary::of(&serde_json::from_str(line).ok()?)).collect())
}

impl Binary {
    /// The test program that a message of cargo names.
    fn of(message: &Value) -> Option<Self> {
        if message["profile"]["test"] != true {
            return None;
        }
        let manifest = Path::new(message["manifest_path"].as_str()?);
        let folder = manifest.parent()?.to_owned();
        let [package, target] = [package_name(message["package_id"].as_str()?), message["target"]["name"].as_str()?];
        let is_test = message["target"]["kind"][0] == "test";
        let name = if is_test { format!("{package}::{target}") } else { package.to_owned() };
        Some(Self { name, program: message["executable"].as_str()?.into(), folder })
    }

    /// Runs the tests whose names contain one of `filters`, or all without filters. A test that fails, and a program that
    /// ends without a result, are in `total`.
    pub(super) fn run(&self, filters: &[&str], variables: &[(&str, &Path)], total: &mut TestTotals) {
        let mut command = Command::new(&self.program);
        command.args(filters).args(["-Z", "unstable-options", "--report-time"]).current_dir(&self.folder);
        command.env(UNSTABLE, "1").env("CARGO_MANIFEST_DIR", &self.folder).envs(variables.iter().copied());
        let prior = total.failed.len();
        total.begin_binary(self.name.clone());
        let result = shell::watch(&self.name, &self.name, &mut command, |line| total.add(line));
        total.end_binary();
        if total.failed.len() == prior {
            total.failed.extend(result.err().map(|error| format!("{}: {error}", self.name)));
        }
    }

    /// The test of this program that has a name of [`TestTotals`].
    pub(super) fn test_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(&self.name)?.strip_prefix("::")
    }
}

/// `path+file:///a/cli#ropewalk@0.1.0` is `ropewalk`, and `path+file:///a/xtask#0.1.0` is `xtask`.
fn package_name(id: &str) -> &str {
    let (url, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _version)) => name,
        None => url.rsplit('/').next().unwrap_or(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_of_cargo_name_the_test_programs() {
        let message = |id: &str, kind: &str, test: bool| {
            json!({
                "reason": "compiler-artifact", "package_id": id, "manifest_path": "/a/sim/Cargo.toml",
                "target": {"name": "suite", "kind": [kind]}, "profile": {"test": test}, "executable": "/a/suite-0",
            })
        };
        let id = "path+file:///a/sim#ropewalk-sim@0.1.0";
        let name = |message: Value| Binary::of(&message).map(|binary| binary.name);
        assert_eq!(name(message(id, "test", true)).as_deref(), Some("ropewalk-sim::suite"));
        assert_eq!(name(message("path+file:///a/xtask#0.1.0", "bin", true)).as_deref(), Some("xtask"));
        assert_eq!(name(message(id, "lib", false)), None, "a library");
        let binary = Binary::of(&message(id, "test", true)).unwrap();
        assert_eq!(binary.folder, Path::new("/a/sim"));
        assert_eq!(binary.test_of("ropewalk-sim::suite::goals::one"), Some("goals::one"));
        assert_eq!(binary.test_of("ropewalk-sim::suite: ended without a result"), None);
        assert_eq!(binary.test_of("ropewalk-sim::suites::one"), None);
    }
}
