//! `NAME.quota` in the state directory: what each path with a quota has carried since its last reset.
//!
//! Two copies of a JSON text, as [`TwoCopies`] has them: a process that is killed while it writes loses that write alone.
//! The daemon writes by the descriptor that it opened before it became another user.

use crate::kept_file::{Place, TwoCopies};
use filesystem::LockedFile;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

const COPY_LEN: usize = 16 << 10;
/// The most counters of a file: as many as paths.
const MAX_COUNTERS: usize = 128;

/// What a path has carried since its last reset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counter {
    /// The path's name.
    pub(super) path: String,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// When it begins anew, seconds since the Unix epoch.
    pub(super) resets_s: u64,
    /// The day of the month of that.
    pub(super) reset_day: u8,
}

/// The open file.
#[derive(Debug)]
pub(super) struct QuotaFile {
    file: LockedFile,
    copies: TwoCopies,
}

impl QuotaFile {
    /// Opens or makes the file: with its counters, and the new name of what was there and is not readable.
    ///
    /// # Errors
    /// It cannot be opened or made, or another daemon writes it.
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
