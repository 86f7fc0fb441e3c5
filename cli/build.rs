//! Tells the program its version: `ROPEWALK_VERSION`.

#[path = "version.rs"]
mod version;

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=version.rs");
    println!("cargo:rerun-if-changed=Cargo.toml");
    // Git appends to the first file when a commit is made or another one is checked out; the others have the tags.
    for path in ["../.git/logs/HEAD", "../.git/refs/tags", "../.git/packed-refs"] {
        if Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rustc-env=ROPEWALK_VERSION={}", version::version(Path::new(".."), env!("CARGO_PKG_VERSION")));
}
