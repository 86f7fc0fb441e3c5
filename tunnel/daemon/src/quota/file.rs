//! `NAME.quota` in the state directory: the traffic of each path with a quota since its last reset.
//!
//! The file has two copies of a JSON text ([`TwoCopies`]): a process that is killed while it writes loses only that
//! write. The daemon writes by the descriptor that it opened before it changed to another user.

use crate::kept_file::{Place, TwoCopies};
use filesystem::LockedFile;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

const COPY_LEN: usize = 16 << 10;
/// Maximum number of counters of a file.
const MAX_COUNTERS: usize = 128;

/// The traffic of a path since its last reset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counter {
    /// The path's name.
    pub(super) path: String,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// The time of the next reset, seconds since the Unix epoch.
    pub(super) resets_s: u64,
    /// The day of the month of the reset.
    pub(super) reset_day: u8,
}

/// The open file.
#[derive(Debug)]
pub(super) struct QuotaFile {
    file: LockedFile,
    copies: TwoCopies,
}

impl QuotaFile {
    /// Opens or creates the file. Returns its counters, and the new name of an unreadable file that it replaced.
    ///
    /// # Errors
    /// It cannot be opened or created, or another daemon writes it.
    pub(super) fn open(place: &Place) -> io::Result<(Self, Vec<Counter>, Option<PathBuf>)> {
        let file = place.open()?;
        let mut copies = TwoCopies::new(0, COPY_LEN);
        if file.metadata()?.len() == 0 {
            return Ok((Self { file, copies }, Vec::new(), None));
        }
        let text = copies.read(&file);
        if let Some(counters) = text.and_then(|text| serde_json::from_slice::<Vec<Counter>>(&text).ok()) {
            return Ok((Self { file, copies }, counters.into_iter().take(MAX_COUNTERS).collect(), None));
        }
        let (file, aside) = place.replace_damaged()?;
        Ok((Self { file, copies: TwoCopies::new(0, COPY_LEN) }, Vec::new(), Some(aside)))
    }

    /// Writes the counters over the older copy.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn write(&mut self, counters: &[Counter]) -> io::Result<()> {
        let text = serde_json::to_vec(counters).map_err(io::Error::other)?;
        self.copies.write(&self.file, &text)
    }
}
