//! The history in a file of fixed size, so that it survives a restart.
//!
//! All numbers are little-endian. A header (4096 bytes): magic 8, number of series 4. Two copies of the directory of
//! series (16 KiB each), written in turn: CRC-32 of what follows 4, length 4, sequence number 8, JSON. Then the slots of the
//! last week's minutes, and those of the last hour's seconds, a minute in each. A slot: CRC-32 of what follows 4, zero 4,
//! the minute since 1970 8, samples of all series in the order of the directory. A slot with a wrong checksum was being
//! written at a power failure, and counts as absent. Apart from it, less than a minute is lost.

use super::ring::{MINUTES, SECONDS};
use super::sample::{LEN, Sample};
use super::series::{MAX_SERIES, SeriesKey};
use crate::kept_file::{Place, TwoCopies};
use filesystem::LockedFile;
use nix::unistd::User;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"rwhist01";
const HEADER_LEN: u64 = 4096;
const DIRECTORY_LEN: u64 = 16 << 10;
const DIRECTORY: TwoCopies = TwoCopies::new(HEADER_LEN, DIRECTORY_LEN as usize);
const SLOT_HEADER_LEN: usize = 16;
const MINUTE_SLOT_LEN: usize = SLOT_HEADER_LEN + MAX_SERIES * LEN;
/// Seconds in a slot of seconds.
const BLOCK_S: u64 = 60;
const SECOND_SLOT_LEN: usize = SLOT_HEADER_LEN + MAX_SERIES * LEN * BLOCK_S as usize;
const MINUTES_START: u64 = HEADER_LEN + 2 * DIRECTORY_LEN;
const SECONDS_START: u64 = MINUTES_START + MINUTES.slots * MINUTE_SLOT_LEN as u64;
const SECOND_SLOTS: u64 = SECONDS.slots / BLOCK_S;

/// A series in the directory. Samples before `since` belong to an earlier series in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    #[serde(flatten)]
    pub(super) key: SeriesKey,
    /// The first minute of this series, counted since 1970.
    pub(super) since: u64,
}

/// An open history file, locked against other daemons.
#[derive(Debug)]
pub struct HistoryFile {
    file: LockedFile,
    directory: TwoCopies,
}

impl HistoryFile {
    /// The length of a file, bytes. It is sparse until it is filled.
    pub const LEN: u64 = SECONDS_START + SECOND_SLOTS * SECOND_SLOT_LEN as u64;

    /// Opens or creates a history file, which is given to `user` if the folder belongs to that user. A file that is not
    /// a history of this version is renamed to `NAME.damaged`; the new name is the second value.
    ///
    /// # Errors
    /// The file cannot be opened or created, or another daemon writes it.
    pub fn open(path: &Path, user: Option<&User>) -> io::Result<(Self, Option<PathBuf>)> {
        let place = Place::new(path, user)?;
        let file = place.open()?;
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok((Self::create(file)?, None));
        }
        let mut magic = [0; 8];
        let is_history = length == Self::LEN && file.read_exact_at(&mut magic, 0).is_ok() && magic == *MAGIC;
        if is_history {
            return Ok((Self { file, directory: DIRECTORY }, None));
        }
        let (file, aside) = place.replace_damaged()?;
        Ok((Self::create(file)?, Some(aside)))
    }

    /// The magic is written last: a file without it is not a history.
    fn create(file: LockedFile) -> io::Result<Self> {
        file.set_len(Self::LEN)?;
        file.write_all_at(&(MAX_SERIES as u32).to_le_bytes(), 8)?;
        file.write_all_at(MAGIC, 0)?;
        Ok(Self { file, directory: DIRECTORY })
    }

    /// The directory of series.
    pub(super) fn directory(&mut self) -> Vec<Entry> {
        let entries = |text: Vec<u8>| serde_json::from_slice::<Vec<Entry>>(&text).ok();
        let entries = self.directory.read(&self.file).and_then(entries);
        entries.filter(|entries| entries.len() <= MAX_SERIES).unwrap_or_default()
    }

    /// Writes the directory over the older copy.
    ///
    /// # Errors
    /// The file system's; or names too long for it, which are then not kept.
    pub(super) fn write_directory(&mut self, entries: &[Entry]) -> io::Result<()> {
        let text = serde_json::to_vec(entries).map_err(io::Error::other)?;
        self.directory.write(&self.file, &text)
    }

    /// Writes a minute: one sample per series, and its seconds one after the other.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn write_minute(&self, minute: u64, samples: &[Sample], seconds: &[Vec<Sample>]) -> io::Result<()> {
        let slot = encode_slot(minute, samples.iter().take(MAX_SERIES), MINUTE_SLOT_LEN);
        self.file.write_all_at(&slot, MINUTES_START + minute % MINUTES.slots * MINUTE_SLOT_LEN as u64)?;
        let slot = encode_slot(minute, seconds.iter().take(MAX_SERIES).flatten(), SECOND_SLOT_LEN);
        self.file.write_all_at(&slot, SECONDS_START + minute % SECOND_SLOTS * SECOND_SLOT_LEN as u64)
    }

    /// The minutes of the file in any order, each with a sample for each series.
    pub(super) fn minutes(&self) -> Vec<(u64, Vec<Sample>)> {
        let slot = |index| self.read_slot(MINUTES_START, index, MINUTE_SLOT_LEN, MINUTES.slots);
        (0..MINUTES.slots).filter_map(slot).collect()
    }

    /// The minutes of seconds of the file in any order: 60 samples of the first series, then those of the next.
    pub(super) fn seconds(&self) -> Vec<(u64, Vec<Sample>)> {
        let slot = |index| self.read_slot(SECONDS_START, index, SECOND_SLOT_LEN, SECOND_SLOTS);
        (0..SECOND_SLOTS).filter_map(slot).collect()
    }

    fn read_slot(&self, start: u64, index: u64, length: usize, slots: u64) -> Option<(u64, Vec<Sample>)> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start + index * length as u64).ok()?;
        let minute = u64::from_le_bytes(bytes[8..16].try_into().ok()?);
        let is_whole = crc32fast::hash(&bytes[4..]) == u32::from_le_bytes(bytes[..4].try_into().ok()?);
        (is_whole && minute % slots == index).then_some(())?;
        let samples = bytes[SLOT_HEADER_LEN..].chunks_exact(LEN);
        let samples = samples.map(|bytes| bytes.try_into().ok().and_then(Sample::decode).unwrap_or_default());
        Some((minute, samples.collect()))
    }
}

fn encode_slot<'a>(minute: u64, samples: impl Iterator<Item = &'a Sample>, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    bytes.extend_from_slice(&minute.to_le_bytes());
    samples.for_each(|sample| bytes.extend_from_slice(&sample.encode()));
    bytes.resize(length, 0);
    let checksum = crc32fast::hash(&bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Seconds in a slot of seconds, for those who read [`HistoryFile::seconds`].
pub(super) const SLOT_SECONDS: u64 = BLOCK_S;
