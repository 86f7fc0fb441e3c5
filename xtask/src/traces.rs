//! `cargo xtask kernel-traces` and `kernel-page`: runs studies on the lab's kernel, keeps the results, and compares
//! them with the simulator.

use crate::kernel::{self, KERNEL};
use crate::{setup, shell};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Folder of the results of both drivers; an interrupted study of the kernel can be resumed from it.
const WORK_FOLDER: &str = "target/kernel";
/// Folder in which the kernel's results are kept.
const KEPT_FOLDER: &str = "scenarios/validation";
/// The HTML page with all comparisons.
const PAGE: &str = "target/kernel/beside-the-simulator.html";

/// A scenario that both the kernel and the simulator run.
struct Study {
    /// The folder of its results below [`KEPT_FOLDER`].
    name: &'static str,
    /// Arguments of `ropewalk run`.
    run: &'static str,
    /// Number of seeds on the kernel; the simulator has five.
    seeds: u32,
    /// Further arguments of the kernel's run.
    on_kernel: &'static str,
    /// Further arguments of the simulator's runs, one or several that share the cells; they leave out cells that another
    /// study has with more seeds, or set values that follow the kernel's behaviour.
    compared: &'static [&'static str],
}

/// A column of al-imareen-2024.
macro_rules! case {
    ($case:literal) => {
        concat!("scenarios/papers/al-imareen-2024.toml --set tunnel.nuisances={} --set case=", $case)
    };
}

/// In virtual time every run begins alike: all flows of the kernel whose start is not drawn begin 4.6 ms after a
/// tick of its timers, as captures show; so do those of the simulator, with what is further set.
macro_rules! at_phase {
    ($($further:tt)*) => {
        concat!(" --set flow.tcp.start=4500us --set flow.tcp.start_within=300us", $($further)*)
    };
}

/// The algorithms of al-imareen-2024 without the two whose results depend on the start.
macro_rules! without_drawn {
    () => {
        r#" --set sweep.flow.tcp.congestion=[{label="uncontrolled",value="cubic"},"cubic",{label="hstcp",value="highspeed"},"illinois","reno","veno","bic","westwood","hybla","scalable"]"#
    };
}

/// A case of szilagyi-2020 over Linux 6.1's MPTCP and its send buffer.
macro_rules! upstream {
    ($case:literal) => {
        at_phase!(
            " --set host.mptcp_send_buffer=largest --set flow.tcp.mptcp.stack=upstream --set sweep.case=[\"",
            $case,
            "\"]"
        )
    };
}

/// The studies. Those over a tunnel turn its nuisances off: in virtual time programs wake up at once, and the daemon sends the
/// first packet on the first path.
const STUDIES: &[Study] = &[
    Study { compared: &[KERNEL_CASES], ..one_seed("kernel-6.1", "scenarios/validation/kernel.toml") },
    // CDG's backoff, TCP-LP's clocks, random losses, and cells in which a second flow starts or the path comes back depend
    // on chance: they get more seeds.
    Study {
        seeds: 5,
        compared: &[AT_PHASE],
        ..one_seed("kernel-long-6.1", "scenarios/validation/kernel.toml --set case=long")
    },
    Study {
        seeds: 3,
        compared: &[OTHER_LOSSES],
        ..one_seed("kernel-loss-6.1", "scenarios/validation/kernel.toml --set case=loss")
    },
    Study { seeds: 6, compared: &[TWENTY], ..one_seed("kernel-loss-six-6.1", LOSS_SIX) },
    Study { seeds: 3, compared: &[OTHER_RIVALS], ..one_seed("kernel-rival-6.1", RIVAL) },
    Study { seeds: 5, compared: &[TWENTY], ..one_seed("kernel-rival-five-6.1", RIVAL_FIVE) },
    Study { seeds: 6, compared: &[TWENTY], ..one_seed("kernel-rival-six-6.1", RIVAL_SIX) },
    Study { seeds: 8, compared: &[TWENTY], ..one_seed("kernel-rival-eight-6.1", RIVAL_EIGHT) },
    Study { seeds: 5, compared: &[BEFORE_6_7], ..one_seed("mptcp-6.1", MPTCP) },
    Study { seeds: 12, compared: &[TWENTY], ..one_seed("failover-6.1", FAILOVER) },
    Study {
        compared: &[SZILAGYI_TUNNEL, SZILAGYI_SINGLE, SZILAGYI_NOISY, SZILAGYI_MPTCP],
        ..one_seed("szilagyi-6.1", "scenarios/papers/szilagyi-2020.toml --quick")
    },
    Study {
        on_kernel: " --traffic ftp",
        compared: &[FILES_TUNNEL, FILES_SINGLE, FILES_NOISY, FILES_MPTCP],
        ..one_seed("szilagyi-ftp-6.1", FILES)
    },
    Study { compared: &[DELAYS], ..one_seed("al-imareen-6.1", AL_IMAREEN) },
    Study { compared: &[AT_PHASE], ..one_seed("al-imareen-20-40ms-6.1", BETWEEN) },
    whole_delay("al-imareen-10ms-6.1", case!("10ms")),
    whole_delay("al-imareen-20ms-6.1", case!("20ms")),
    whole_delay("al-imareen-30ms-6.1", case!("30ms")),
    whole_delay("al-imareen-40ms-6.1", case!("40ms")),
    whole_delay("al-imareen-50ms-6.1", case!("50ms")),
    whole_delay("al-imareen-100ms-6.1", case!("100ms")),
    Study { seeds: 20, compared: &[STATES_COMPARED], ..one_seed("al-imareen-states-6.1", STATES) },
    // The whole 100 s, one study per column, and one for BBR.
    Study { seeds: 3, compared: &[WITHOUT_BBR], ..one_seed("al-imareen-loss-1-6.1", case!("1%")) },
    Study { compared: &[WITHOUT_BBR], ..one_seed("al-imareen-loss-2-6.1", case!("2%")) },
    Study { compared: &[WITHOUT_BBR], ..one_seed("al-imareen-loss-3-6.1", case!("3%")) },
    Study { seeds: 5, compared: &[TWENTY], ..one_seed("al-imareen-bbr-loss-6.1", BBR_LOSS) },
    Study { seeds: 3, compared: &[TWENTY], ..one_seed("al-imareen-loss-4-6.1", case!("4%")) },
    Study { seeds: 3, compared: &[TWENTY], ..one_seed("al-imareen-loss-5-6.1", case!("5%")) },
    Study { seeds: 3, compared: &[TWENTY_AT_PHASE], ..one_seed("al-imareen-ropewalk-6.1", ROPEWALK) },
    Study { compared: &[AT_PHASE], ..one_seed("pulled-link-6.1", "scenarios/tunnel/pulled-link.toml") },
];

const AT_PHASE: &str = at_phase!("");
const KERNEL_CASES: &str = at_phase!(r#" --set sweep.case=["clean","shallow","step"]"#);
const RIVAL: &str = "scenarios/validation/kernel.toml --set case=rival --set flow.rival.start_within=1s";
const RIVAL_FIVE: &str = r#"scenarios/validation/kernel.toml --set case=rival --set flow.rival.start_within=1s --set sweep.flow.tcp.congestion=["htcp","nv"]"#;
const RIVAL_SIX: &str = r#"scenarios/validation/kernel.toml --set case=rival --set flow.rival.start_within=1s --set sweep.flow.tcp.congestion=["cubic","dctcp","cdg","hybla"]"#;
const RIVAL_EIGHT: &str = r#"scenarios/validation/kernel.toml --set case=rival --set flow.rival.start_within=1s --set sweep.flow.tcp.congestion=["lp","vegas"]"#;
const OTHER_RIVALS: &str = r#" --set repetitions=20 --set sweep.flow.tcp.congestion=["reno","bic","highspeed","illinois","scalable","veno","westwood","yeah","bbr"]"#;
const LOSS_SIX: &str =
    r#"scenarios/validation/kernel.toml --set case=loss --set sweep.flow.tcp.congestion=["lp","nv"]"#;
const OTHER_LOSSES: &str = r#" --set repetitions=20 --set sweep.flow.tcp.congestion=["reno","bic","cubic","cdg","dctcp","highspeed","htcp","hybla","illinois","scalable","vegas","veno","westwood","yeah","bbr"]"#;
/// The send buffer of Linux 6.1's MPTCP.
const BEFORE_6_7: &str = " --set host.mptcp_send_buffer=largest --set repetitions=20";
const SZILAGYI_TUNNEL: &str = at_phase!(r#" --set sweep.case=["mpt-gre"] --set tunnel.nuisances={}"#);
const FILES_TUNNEL: &str = at_phase!(r#" --set sweep.case=["mpt-gre-file"] --set tunnel.nuisances={}"#);
const SZILAGYI_SINGLE: &str = at_phase!(r#" --set sweep.case=["single"]"#);
const FILES_SINGLE: &str = at_phase!(r#" --set sweep.case=["single-file"]"#);
/// The kernel's runs have the delays that were fitted when they were made.
const SZILAGYI_NOISY: &str =
    at_phase!(r#" --set sweep.case=["noisy"] --set tunnel.nuisances={} --set path.*.jitter=250us"#);
const FILES_NOISY: &str =
    at_phase!(r#" --set sweep.case=["noisy-file"] --set tunnel.nuisances={} --set path.*.jitter=250us"#);
/// The paper uses the out-of-tree MPTCP, the kernel its own.
const SZILAGYI_MPTCP: &str = upstream!("mptcp");
const FILES_MPTCP: &str = upstream!("mptcp-file");
const MPTCP: &str = "scenarios/validation/mptcp.toml --set flow.mptcp.start_within=1s";
const FAILOVER: &str = "scenarios/two-paths-failover.toml --set flow.tcp.start_within=1s";
const AL_IMAREEN: &str = "scenarios/papers/al-imareen-2024.toml --quick --set tunnel.nuisances={}";
/// Without the losses.
const DELAYS: &str = at_phase!(r#" --set sweep.case=["10ms","50ms","100ms"]"#, without_drawn!());
/// The delays in between, with the duration of the quick form.
const BETWEEN: &str = concat!(
    "scenarios/papers/al-imareen-2024.toml --set duration=21s --set tunnel.nuisances={} ",
    r#"--set sweep.case=["20ms","30ms","40ms"]"#,
    without_drawn!()
);
/// Cells of two states, which the flow's start decides among others.
const STATES: &str = concat!(
    "scenarios/papers/al-imareen-2024.toml --quick --set tunnel.nuisances={} --set flow.tcp.start_within=1s ",
    r#"--set sweep.case=["10ms","20ms","30ms","40ms","50ms","100ms"] --set sweep.flow.tcp.congestion=["bbr","vegas"]"#
);
const STATES_COMPARED: &str = " --set repetitions=200 --set host.tick=10ms --set tunnel.nuisances={preemption=3200}";
const WITHOUT_DRAWN: &str = at_phase!(without_drawn!());
const BBR_LOSS: &str = r#"scenarios/papers/al-imareen-2024.toml --set tunnel.nuisances={} --set sweep.case=["1%","2%","3%"] --set sweep.flow.tcp.congestion=["bbr"]"#;
/// The losses of all others.
const WITHOUT_BBR: &str = r#" --set repetitions=20 --set sweep.flow.tcp.congestion=[{label="uncontrolled",value="cubic"},"cubic",{label="hstcp",value="highspeed"},"illinois","reno","veno","bic","westwood","vegas","hybla","scalable"]"#;
/// The cells that depend on chance.
const TWENTY: &str = " --set repetitions=20";
const TWENTY_AT_PHASE: &str = at_phase!(" --set repetitions=20");
const FILES: &str = r#"scenarios/papers/szilagyi-2020.toml --set flow.tcp.size=100MB --set sweep.case=["mptcp-file","mpt-gre-file","noisy-file","single-file"]"#;
const ROPEWALK: &str =
    r#"scenarios/tunnel/al-imareen-ropewalk.toml --quick --set sweep.flow.tcp.congestion=["cubic","vegas","bbr"]"#;

const fn one_seed(name: &'static str, run: &'static str) -> Study {
    Study { name, run, seeds: 1, on_kernel: "", compared: &[""] }
}

/// The whole 100 s of a delay, for the algorithms whose start need not be drawn.
const fn whole_delay(name: &'static str, run: &'static str) -> Study {
    Study { on_kernel: without_drawn!(), compared: &[WITHOUT_DRAWN], ..one_seed(name, run) }
}

/// Runs studies on the kernel, all of them or those that are named, and keeps their tables.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let studies = select_studies(names)?;
    kernel::ensure()?;
    setup::run()?;
    shell::run("cargo build --locked --release --package ropewalk --features lab")?;
    let program = shell::target().join("release/ropewalk").display().to_string();
    studies.into_iter().try_for_each(|study| {
        let collected_folder = format!("{WORK_FOLDER}/traces/{}", study.name);
        run_ropewalk(&format!(
            "run {}{} --set repetitions={} --on uml --partial --out {collected_folder}",
            study.run, study.on_kernel, study.seeds
        ))?;
        let kept_folder = format!("{KEPT_FOLDER}/{}", study.name);
        let root = shell::root();
        move_results(&root.join(collected_folder), &root.join(&kept_folder), &program)
            .map_err(|error| format!("{kept_folder}: {error}"))
    })
}

/// Compares the kept studies with the simulator, with five or twenty seeds per cell, and the kernel's tick, on one page.
pub(crate) fn page() -> Result<(), String> {
    shell::run("cargo build --locked --release --package ropewalk --features lab")?;
    let mut pairs = Vec::new();
    for study in STUDIES.iter().filter(|study| shell::root().join(KEPT_FOLDER).join(study.name).exists()) {
        for (part, compared) in study.compared.iter().enumerate() {
            let suffix = if part == 0 { String::new() } else { format!("-{}", part + 1) };
            let simulated = format!("{WORK_FOLDER}/simulated/{}{suffix}", study.name);
            let _ = fs::remove_dir_all(shell::root().join(&simulated));
            run_ropewalk(&format!(
                "run {} --set host.tick=10ms --set repetitions=5{compared} --quiet --out {simulated}",
                study.run
            ))?;
            pairs.push(format!("{simulated} {KEPT_FOLDER}/{}", study.name));
        }
    }
    run_ropewalk(&format!("compare {} --out {PAGE}", pairs.join(" ")))
}

fn select_studies(names: &[&str]) -> Result<Vec<&'static Study>, String> {
    let names_of_studies = || STUDIES.iter().map(|study| study.name).collect::<Vec<_>>().join(", ");
    match names.iter().find(|name| STUDIES.iter().all(|study| study.name != **name)) {
        Some(name) => Err(format!("no study `{name}`; there are {}", names_of_studies())),
        None => Ok(STUDIES.iter().filter(|study| names.is_empty() || names.contains(&study.name)).collect()),
    }
}

/// Runs the program that was built, in the workspace's folder.
fn run_ropewalk(arguments: &str) -> Result<(), String> {
    let status = Command::new(shell::target().join("release/ropewalk"))
        .arg0("ropewalk") // the name is in the manifest, which must not name a folder of this machine
        .args(arguments.split_whitespace())
        .env("ROPEWALK_LINUX", shell::root().join(KERNEL))
        .current_dir(shell::root())
        .status();
    match status.map_err(|error| format!("cannot run ropewalk: {error}"))?.success() {
        true => Ok(()),
        false => Err("ropewalk failed; the same command continues where it stopped".to_owned()),
    }
}

/// Moves the results to the kept folder, without the path of the program in `setup.txt`.
fn move_results(collected_folder: &Path, kept_folder: &Path, program: &str) -> std::io::Result<()> {
    if kept_folder.exists() {
        fs::remove_dir_all(kept_folder)?;
    }
    fs::create_dir_all(kept_folder)?;
    for entry in fs::read_dir(collected_folder)? {
        let entry = entry?;
        if entry.file_name() == "setup.txt" {
            let commands = fs::read_to_string(entry.path())?.replace(program, "ropewalk");
            fs::write(kept_folder.join(entry.file_name()), commands)?;
        } else if entry.file_type()?.is_file() && entry.file_name() != "report.html" {
            fs::copy(entry.path(), kept_folder.join(entry.file_name()))?;
        }
    }
    fs::remove_dir_all(collected_folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_is_found_by_its_name_and_all_are_there() {
        assert_eq!(select_studies(&["szilagyi-6.1"]).map(|studies| studies.len()), Ok(1));
        assert_eq!(select_studies(&[]).map(|studies| studies.len()), Ok(STUDIES.len()));
        assert!(select_studies(&["szilagyi"]).is_err_and(|error| error.contains("szilagyi-6.1")));
        for study in STUDIES {
            let file = study.run.split_whitespace().next().unwrap();
            assert!(shell::root().join(file).is_file(), "{file}");
        }
    }
}
