//! `cargo xtask release`: makes the publication of a version, in one folder with signed checksums.
//!
//! The folder holds the given artefacts, `SHA256SUMS` with a signature, a repository for apt with the packages, and a script
//! that installs from it. The key is one of the maintainer's GnuPG, by its fingerprint: it may be on a card, and this
//! program never sees it.

mod apt;
mod gpg;

use crate::artefacts::archive;
use crate::shell;
use gpg::Key;
use std::fs;
use std::path::{Path, PathBuf};

/// The script that installs, without its values.
const INSTALL: &str = include_str!("install.sh");
/// The checksums' file.
const CHECKSUMS: &str = "SHA256SUMS";

/// Options of the chore.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options<'a> {
    /// The fingerprint of the key.
    key: &'a str,
    /// The address at which the folder will be published.
    url: &'a str,
    files: Vec<&'a Path>,
}

impl<'a> Options<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Self, String> {
        let ["--key", key, "--url", url, files @ ..] = arguments else {
            return Err("release --key FINGERPRINT --url URL FILE...".into());
        };
        let is_hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if key.len() != 40 || !is_hexadecimal(key) {
            return Err(format!("--key {key}: the fingerprint of 40 digits, as `gpg --list-keys` prints it"));
        }
        // The script has the address between single quotes.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/%@+".contains(c);
        if !["https://", "http://", "file:///"].iter().any(|scheme| url.starts_with(scheme))
            || !url.chars().all(is_plain)
        {
            return Err(format!("--url {url}: an address such as https://example.org/ropewalk"));
        }
        if files.is_empty() {
            return Err("no FILE: the artefacts of the other chores".into());
        }
        Ok(Self { key, url: url.trim_end_matches('/'), files: files.iter().map(|file| Path::new(*file)).collect() })
    }
}

/// Makes `target/publish`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let key = Key::find(options.key)?;
    let folder = shell::target().join("publish");
    let _ = fs::remove_dir_all(&folder);
    let mut names = Vec::new();
    for file in &options.files {
        let name = file.file_name().ok_or_else(|| format!("{}: not a file", file.display()))?;
        write(&folder.join(name), &archive::read(file)?)?;
        names.push(name.to_string_lossy().into_owned());
    }
    apt::write_repository(&folder.join("apt"), &folder, &names, &key)?;
    write(&folder.join("ropewalk.asc"), key.public.as_bytes())?;
    let install = INSTALL.replace("@URL@", options.url).replace("@KEY@", key.public.trim());
    write(&folder.join("install.sh"), install.as_bytes())?;
    names.extend(["install.sh", "ropewalk.asc"].map(str::to_owned));
    write_checksums(&folder, names, &key)?;
    shell::print(&format!("{}\n", folder.display()))
}

/// Writes the checksums of these files, as sha256sum(1) reads them, and a signature of the list.
fn write_checksums(folder: &Path, mut names: Vec<String>, key: &Key) -> Result<(), String> {
    names.sort();
    let mut text = String::new();
    for name in &names {
        text += &format!("{}  {name}\n", archive::sha256(&archive::read(&folder.join(name))?));
    }
    let file = folder.join(CHECKSUMS);
    write(&file, text.as_bytes())?;
    key.sign(&file, &folder.join(format!("{CHECKSUMS}.asc")))
}

/// Writes a file, and its parent folders.
fn write(file: &Path, content: &[u8]) -> Result<(), String> {
    let folder = file.parent().map_or_else(PathBuf::new, Path::to_owned);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, content));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_name_a_key_an_address_and_files() {
        let key = "0123456789ABCDEF0123456789ABCDEF01234567";
        let options = Options::parse(&["--key", key, "--url", "https://example.org/r/", "a.deb"]).unwrap();
        assert_eq!((options.url, options.files), ("https://example.org/r", vec![Path::new("a.deb")]));
        for (key, url) in
            [("someone@example.org", "https://example.org"), (key, "example.org"), (key, "https://a/'$(id)'")]
        {
            assert!(Options::parse(&["--key", key, "--url", url, "a.deb"]).is_err(), "{key} {url}");
        }
        assert!(Options::parse(&["--key", key, "--url", "https://example.org"]).is_err(), "no file");
    }
}
