//! The programs that a benchmark of the tunnel starts.

use std::path::{Path, PathBuf};

/// Programs of this workspace that a benchmark starts.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) ropewalk: PathBuf,
    pub(super) agent: PathBuf,
    /// What stands before their command lines.
    pub(super) wrapper: &'static str,
}

impl Programs {
    pub(super) fn find() -> Result<Self, String> {
        let release = crate::shell::release_folder()?;
        let programs =
            Self { ropewalk: release.join("ropewalk"), agent: release.join("ropewalk-lab-agent"), wrapper: "" };
        if !crate::shell::succeeds("iperf3 --version") {
            return Err("iperf3 is missing: apt-get install iperf3".to_owned());
        }
        std::fs::create_dir_all(super::scratch_folder()).map_err(|error| error.to_string())?;
        Ok(programs)
    }

    /// These with the lowest real-time priority, so that other programs of the machine do not delay them.
    pub(super) fn real_time(&self) -> Self {
        Self { wrapper: "chrt --rr 1", ..self.clone() }
    }

    /// These with another `ropewalk`.
    pub(super) fn with_ropewalk(&self, file: &Path) -> Self {
        Self { ropewalk: file.to_owned(), ..self.clone() }
    }
}
