//! What the lab's kernel does with our scenarios: run, kept, and set beside the simulator.

use crate::kernel::{self, KERNEL};
use crate::{bench, setup, shell};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Where the kernel's runs are collected, so that a broken-off study can go on, and the simulator's.
const WORK: &str = "target/kernel";
/// Where the kernel's are kept.
const KEPT: &str = "scenarios/validation";
/// Everything on one page.
const PAGE: &str = "target/kernel/beside-the-simulator.html";

/// A scenario that both the kernel and the simulator run.
struct Study {
    /// Its folder below [`KEPT`].
    name: &'static str,
    /// What `ropewalk run` is asked for.
    run: &'static str,
}

const STUDIES: &[Study] = &[
    Study { name: "kernel-6.1", run: "scenarios/validation/kernel.toml" },
    Study { name: "single-path-6.1", run: "scenarios/validation/kernel-single-path.toml" },
    Study { name: "coexistence-6.1", run: "scenarios/coexistence.toml --quick" },
    Study { name: "fairness-6.1", run: "scenarios/fairness.toml --quick" },
    Study { name: "mptcp-6.1", run: "scenarios/validation/mptcp.toml" },
    Study { name: "failover-6.1", run: "scenarios/two-paths-failover.toml" },
    Study { name: "szilagyi-6.1", run: "scenarios/papers/szilagyi-2020.toml --quick" },
    Study { name: "al-imareen-6.1", run: "scenarios/papers/al-imareen-2024.toml --set duration=21s" },
    Study {
        name: "al-imareen-unordered-6.1",
        run: "scenarios/papers/al-imareen-2024.toml --quick --set tunnel.resequence.window=0p",
    },
    Study { name: "al-imareen-ropewalk-6.1", run: "scenarios/tunnel/al-imareen-ropewalk.toml --quick" },
    Study { name: "pulled-link-6.1", run: "scenarios/tunnel/pulled-link.toml" },
];

/// Runs studies on the kernel, all or those that are named, and keeps their tables.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let chosen = chosen(names)?;
    kernel::ensure()?;
    setup::run()?;
    shell::run("cargo build --release --package ropewalk")?;
    chosen.into_iter().try_for_each(|study| {
        let collected = format!("{WORK}/traces/{}", study.name);
        ropewalk(&format!("run {} --on uml --partial --seed 1 --out {collected}", study.run))?;
        let kept = format!("{KEPT}/{}", study.name);
        let root = shell::root();
        replace(&root.join(collected), &root.join(&kept)).map_err(|why| format!("{kept}: {why}"))
    })
}

/// Sets the kept studies beside the simulator, five seeds a cell, on one page.
pub(crate) fn page() -> Result<(), String> {
    shell::run("cargo build --release --package ropewalk")?;
    let mut pairs = Vec::new();
    for study in STUDIES.iter().filter(|study| shell::root().join(KEPT).join(study.name).exists()) {
        let simulated = format!("{WORK}/simulated/{}", study.name);
        let _ = fs::remove_dir_all(shell::root().join(&simulated));
        ropewalk(&format!("run {} --set repetitions=5 --quiet --out {simulated}", study.run))?;
        pairs.push(format!("{simulated} {KEPT}/{}", study.name));
    }
    ropewalk(&format!("compare {} --out {PAGE}", pairs.join(" ")))
}

fn chosen(names: &[&str]) -> Result<Vec<&'static Study>, String> {
    let known = || STUDIES.iter().map(|study| study.name).collect::<Vec<_>>().join(", ");
    match names.iter().find(|name| STUDIES.iter().all(|study| study.name != **name)) {
        Some(name) => Err(format!("no study `{name}`; there are {}", known())),
        None => Ok(STUDIES.iter().filter(|study| names.is_empty() || names.contains(&study.name)).collect()),
    }
}

/// Runs the program that was built, in the workspace's folder.
fn ropewalk(words: &str) -> Result<(), String> {
    let status = Command::new(bench::release_folder()?.join("ropewalk"))
        .arg0("ropewalk") // it stands in the manifest, which names no folder of this machine
        .args(words.split_whitespace())
        .env("ROPEWALK_LINUX", shell::root().join(KERNEL))
        .current_dir(shell::root())
        .status();
    match status.map_err(|why| format!("cannot run ropewalk: {why}"))?.success() {
        true => Ok(()),
        false => Err("ropewalk failed; the same command goes on where it was".to_owned()),
    }
}

fn replace(from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != "report.html" {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    fs::remove_dir_all(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_is_found_by_its_name_and_all_are_there() {
        assert_eq!(chosen(&["szilagyi-6.1"]).map(|all| all.len()), Ok(1));
        assert_eq!(chosen(&[]).map(|all| all.len()), Ok(STUDIES.len()));
        assert!(chosen(&["szilagyi"]).is_err_and(|why| why.contains("szilagyi-6.1")));
        for study in STUDIES {
            let file = study.run.split_whitespace().next().unwrap();
            assert!(shell::root().join(file).is_file(), "{file}");
        }
    }
}
