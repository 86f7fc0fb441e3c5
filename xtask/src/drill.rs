//! `cargo xtask kernel-drill`: random situations of our TCP sender or receiver, judged by a kernel. The campaign itself is the lab's.

use crate::shell;

/// The folder of verdicts and differences, relative to the workspace.
const FOLDER: &str = "target/kernel-drill";

/// Builds the lab's agent and starts the campaign; without `--on` the kernel is User-Mode Linux.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    shell::run("cargo build --quiet --locked -p ropewalk-lab --all-features --bin ropewalk-lab-agent")?;
    let agent = shell::target().join("debug/ropewalk-lab-agent");
    let folder = if options.contains(&"--folder") { String::new() } else { format!("--folder {FOLDER} ") };
    shell::run(&format!("{} kernel-drill {folder}{}", agent.display(), options.join(" ")))
}
