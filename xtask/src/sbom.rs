//! `cargo xtask sbom`: the components of the released program, as a CycloneDX document (ECMA-424), by `cargo cyclonedx`.
//!
//! The tool writes a document next to every manifest, so it works on a clone of the commit. With the commit's time, the same
//! commit makes the same document. The document is next to the program, not in it as with `cargo auditable`: that wraps the
//! compiler, and everyone who repeats a build would need the same version of it.

use crate::{dist, shell};
use std::fs;

/// Writes `target/released/ropewalk.cdx.json`.
pub(crate) fn write() -> Result<(), String> {
    if !shell::succeeds("cargo cyclonedx --version") {
        return Err("cargo-cyclonedx is missing: cargo install --locked cargo-cyclonedx".into());
    }
    let compiler = shell::output("rustc -vV")?;
    let host = dist::field(&compiler, "host:").ok_or("`rustc -vV` names no host")?;
    let (clone, document) = (shell::target().join("sbom"), dist::folder().join("ropewalk.cdx.json"));
    let _ = fs::remove_dir_all(&clone);
    shell::run(&format!("git clone --quiet --no-hardlinks {} {}", shell::root().display(), clone.display()))?;
    let time = shell::output("git log -1 --format=%ct")?;
    let manifest = clone.join("cli/Cargo.toml");
    shell::run_with(
        &[("SOURCE_DATE_EPOCH", time.trim())],
        &format!(
            "cargo cyclonedx --quiet --manifest-path {} --format json --spec-version 1.5 --all-features --target {host} \
             --override-filename ropewalk.cdx",
            manifest.display()
        ),
    )?;
    // References to our own crates are their folders.
    let folder = clone.display().to_string();
    let without_folder = |text: String| text.replace(&folder, "/ropewalk");
    fs::create_dir_all(dist::folder())
        .and_then(|()| fs::read_to_string(clone.join("cli/ropewalk.cdx.json")))
        .and_then(|text| fs::write(&document, without_folder(text)))
        .map_err(|error| format!("{}: {error}", document.display()))?;
    shell::print(&format!("{}\n", document.display()))
}
