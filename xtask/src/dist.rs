//! `cargo xtask dist`: the program as it is released, with link-time and profile-guided optimisation.
//!
//! An instrumented build runs the training scenarios, `llvm-profdata` merges the profiles that it writes, and a second
//! build is optimised with them. Both builds name their target, so that build scripts and procedural macros stay as
//! they are.

use crate::shell;
use std::fs;
use std::path::{Path, PathBuf};

/// Scenarios for the instrumented program: the workloads of the benchmark, and tunnels in the simulator.
const TRAINING: &[&str] = &[
    "scenarios/bench/w1.toml",
    "scenarios/bench/w2.toml",
    "scenarios/bench/w3.toml",
    "scenarios/papers/al-imareen-2024.toml --quick",
    "scenarios/tunnel/al-imareen-ropewalk.toml --quick",
];

/// Builds the program and returns its path.
pub(crate) fn build() -> Result<PathBuf, String> {
    let compiler = shell::output("rustc -vV")?;
    let field = |key: &str| compiler.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let host = field("host:").ok_or("`rustc -vV` names no host")?;
    let llvm = field("LLVM version:").and_then(|version| version.split('.').next());
    let profdata = profdata(llvm.ok_or("`rustc -vV` names no LLVM version")?)?;
    let folder = shell::target().join("pgo");
    let (raw, merged, results) = (folder.join("raw"), folder.join("merged.profdata"), folder.join("results"));
    let program = shell::target().join(host).join("dist/ropewalk");
    let _ = fs::remove_dir_all(&folder);

    compile(host, "generate", &raw)?;
    for scenario in TRAINING {
        let _ = fs::remove_dir_all(&results);
        shell::run(&format!("{} run {scenario} --quiet --out {}", program.display(), results.display()))?;
    }
    shell::run(&format!("{profdata} merge --output {} {}", merged.display(), raw.display()))?;
    compile(host, "use", &merged)?;
    Ok(program)
}

fn compile(host: &str, stage: &str, profile: &Path) -> Result<(), String> {
    let flags = format!("RUSTFLAGS=-Cprofile-{stage}={}", profile.display());
    shell::run(&format!(
        "env {flags} cargo build --locked --profile dist --package ropewalk --all-features --target {host}"
    ))
}

/// The `llvm-profdata` that reads this compiler's profiles: rustup's component, or Debian's of the same LLVM.
fn profdata(llvm: &str) -> Result<String, String> {
    let libraries = shell::output("rustc --print target-libdir")?;
    let component = Path::new(libraries.trim()).with_file_name("bin/llvm-profdata").display().to_string();
    let candidates = [component, format!("llvm-profdata-{llvm}")];
    candidates.into_iter().find(|program| shell::succeeds(&format!("{program} --version"))).ok_or_else(|| {
        format!(
            "llvm-profdata of LLVM {llvm} is missing: rustup component add llvm-tools, or apt-get install llvm-{llvm}"
        )
    })
}
