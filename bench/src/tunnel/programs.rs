//! The programs that a benchmark of the tunnel starts.

use std::path::PathBuf;

/// Programs of this workspace that a benchmark starts.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) ropewalk: PathBuf,
    pub(super) agent: PathBuf,
}

impl Programs {
    pub(super) fn find() -> Result<Self, String> {
        let release = crate::shell::release_folder()?;
        let programs = Self { ropewalk: release.join("ropewalk"), agent: release.join("ropewalk-lab-agent") };
        if !crate::shell::succeeds("iperf3 --version") {
            return Err("iperf3 is missing: apt-get install iperf3".to_owned());
        }
        std::fs::create_dir_all(super::scratch_folder()).map_err(|error| error.to_string())?;
        Ok(programs)
    }
}
