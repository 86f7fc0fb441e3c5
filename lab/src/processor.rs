//! Processors on which User-Mode Linux may not start.
//!
//! Linux 6.1 keeps 2696 bytes of a program's registers; with AMX they take 11 008 bytes. The host's kernel refuses to
//! restore fewer, and so no program starts. `cargo xtask kernel` builds one with room for them.

use crate::processes;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The part of the kernel's last message that says that its first program ended by a segmentation fault.
const SEGMENTATION_FAULT: &str = "exitcode=0x0000000b";

/// Whether programs start in this User-Mode Linux. If the processor has AMX, it is booted once to find out.
pub(crate) fn can_run(kernel: &Path) -> bool {
    !has_amx(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
        || console(kernel).is_none_or(|console| !console.contains(SEGMENTATION_FAULT))
}

fn has_amx(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.flat_map(str::split_whitespace).any(|flag| flag == "amx_tile")
}

/// The output of a guest that only runs `true`; none if it could not be booted, or did not end.
fn console(kernel: &Path) -> Option<String> {
    let folder = tempfile::Builder::new().prefix("ropewalk-lab-").tempdir().ok()?;
    let console = fs::File::create(folder.path().join("console")).ok()?;
    let mut command = Command::new(kernel);
    command.args(["mem=64M", "rootfstype=hostfs", "root=/dev/root", "ro", "con=null", "con0=null,fd:1"]);
    command.args(["init=/bin/true", &format!("uml_dir={}/", folder.path().display())]);
    command.env("TMPDIR", folder.path()).env(processes::RUN_VARIABLE, folder.path()).stdin(Stdio::null());
    let mut child = command.stdout(console.try_clone().ok()?).stderr(console).spawn().ok()?;
    if processes::wait(&mut child, Duration::from_secs(60)).ok()?.is_none() {
        processes::end_all(folder.path());
        let _ = child.wait();
        return None;
    }
    fs::read(folder.path().join("console")).ok().map(|text| String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_amx_by_its_flags() {
        let cpuinfo = |flags: &str| format!("processor\t: 0\nmodel name\t: amx_tile\nflags\t\t: {flags}\nbugs\t\t:\n");
        assert!(has_amx(&cpuinfo("fpu amx_bf16 avx512_fp16 amx_tile")));
        assert!(!has_amx(&cpuinfo("fpu avx512_fp16")) && !has_amx(""));
    }
}
