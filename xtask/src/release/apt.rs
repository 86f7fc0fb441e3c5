//! A repository for apt (Debian's repository format): packages, their index and its signatures.

use super::gpg::Key;
use super::write;
use crate::artefacts::archive;
use crate::shell;
use std::collections::BTreeMap;
use std::path::Path;

/// The suite and its component.
const SUITE: &str = "stable";
const COMPONENT: &str = "main";

/// Writes a repository with those `files` of a folder that are Debian packages.
pub(super) fn write_repository(repository: &Path, folder: &Path, files: &[String], key: &Key) -> Result<(), String> {
    let mut indices: BTreeMap<String, String> = BTreeMap::new();
    for name in files.iter().filter(|name| name.ends_with(".deb")) {
        let package = archive::read(&folder.join(name))?;
        let pool = format!("pool/{COMPONENT}/r/ropewalk/{name}");
        write(&repository.join(&pool), &package)?;
        let control = shell::output(&format!("dpkg-deb --field {}", folder.join(name).display()))?;
        let architecture = field(&control, "Architecture").ok_or_else(|| format!("{name}: no Architecture"))?;
        let entry = entry(&control, &pool, &package);
        indices.entry(architecture.to_owned()).or_default().push_str(&entry);
    }
    if indices.is_empty() {
        return Err("no Debian package among the files: the repository would be empty".into());
    }
    let suite = repository.join("dists").join(SUITE);
    let mut checksums = String::new();
    for (architecture, index) in &indices {
        let path = format!("{COMPONENT}/binary-{architecture}/Packages");
        for (path, content) in [(format!("{path}.gz"), archive::gzip(index.as_bytes())?), (path, index.clone().into())]
        {
            checksums += &format!(" {} {} {path}\n", archive::sha256(&content), content.len());
            write(&suite.join(path), &content)?;
        }
    }
    let architectures: Vec<_> = indices.keys().map(String::as_str).collect();
    let time = shell::output("git log -1 --format=%ct")?;
    let date = shell::output(&format!("date --utc --rfc-email --date=@{}", time.trim()))?;
    let release = suite.join("Release");
    write(&release, release_text(&architectures.join(" "), date.trim(), &checksums).as_bytes())?;
    key.clear_sign(&release, &suite.join("InRelease"))?;
    key.sign(&release, &suite.join("Release.gpg"))
}

/// The index's entry of a package.
fn entry(control: &str, path: &str, package: &[u8]) -> String {
    format!(
        "{}\nFilename: {path}\nSize: {}\nSHA256: {}\n\n",
        control.trim_end(),
        package.len(),
        archive::sha256(package)
    )
}

fn field<'a>(control: &'a str, name: &str) -> Option<&'a str> {
    control.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn release_text(architectures: &str, date: &str, checksums: &str) -> String {
    format!(
        "Origin: Ropewalk\nLabel: Ropewalk\nSuite: {SUITE}\nCodename: {SUITE}\nDate: {date}\nArchitectures: {architectures}\n\
         Components: {COMPONENT}\nDescription: Packages of Ropewalk\nSHA256:\n{checksums}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_fields_of_the_package_and_where_it_is() {
        let control = "Package: ropewalk\nVersion: 0.1.0\nArchitecture: arm64\n";
        assert_eq!(field(control, "Architecture"), Some("arm64"));
        // SHA-256 of nothing (FIPS 180-4).
        let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let expected = format!("{control}Filename: pool/a.deb\nSize: 0\nSHA256: {digest}\n\n");
        assert_eq!(entry(control, "pool/a.deb", b""), expected);
    }
}
