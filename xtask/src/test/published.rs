//! `cargo package` of every crate that others may use: files, versions and dependencies are complete.

use crate::shell;

/// Packages them, from the tree as it is. Nothing is compiled: each of them is a dependency of the workspace's tests.
pub(super) fn check() -> Result<(), String> {
    let metadata = shell::metadata("--no-deps")?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    // `publish = false` is an empty list of registries.
    let published = packages.iter().filter(|package| package["publish"].is_null());
    let names = published.filter_map(|package| package["name"].as_str()).map(|name| format!(" --package {name}"));
    let names: String = names.collect();
    if names.is_empty() {
        return Err("no package has `publish = true`".to_owned());
    }
    shell::run(&format!("cargo package --quiet --no-verify --allow-dirty{names}"))
}
