//! Files in which the daemon keeps what a restart shall not forget.

use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes before the text of a copy.
const HEADER_LEN: usize = 16;

/// A file that is locked against other daemons until it is dropped.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing would leave the lock to a program that another thread is starting: between fork and exec it has a
        // copy of every descriptor. An error leaves it to the close.
        let _ = self.0.unlock();
    }
}

/// Opens or makes a file, and locks it.
///
/// # Errors
/// It cannot be opened or made, it is a symbolic link or no regular file, or another daemon writes it.
pub(crate) fn open_locked(path: &Path) -> io::Result<LockedFile> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o640);
    let file = options.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file"));
    }
    match file.try_lock() {
        Ok(()) => Ok(LockedFile(file)),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(io::ErrorKind::WouldBlock, "another daemon writes it")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Renames a file that cannot be used to `NAME.damaged`, and makes a new one.
///
/// # Errors
/// The file system's.
pub(crate) fn replace_damaged(path: &Path) -> io::Result<(LockedFile, PathBuf)> {
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    let aside = PathBuf::from(name);
    std::fs::rename(path, &aside)?;
    Ok((open_locked(path)?, aside))
}

/// A text of which the file has two copies, written in turn, so that one is whole at any time: CRC-32 of what follows 4,
/// length 4, sequence number 8 (all little-endian), the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwoCopies {
    /// The place of the first copy in the file.
    start: u64,
    /// The place of a copy, bytes.
    len: usize,
    /// Of the latest copy.
    sequence: u64,
}

impl TwoCopies {
    /// Copies of `len` bytes at most each, with their headers, from `start` on.
    pub(crate) const fn new(start: u64, len: usize) -> Self {
        Self { start, len, sequence: 0 }
    }

    /// The text of the later one of the copies whose checksum is right.
    pub(crate) fn read(&mut self, file: &File) -> Option<Vec<u8>> {
        let copies = [0, 1].map(|copy| self.read_copy(file, copy));
        let (sequence, text) = copies.into_iter().flatten().max_by_key(|(sequence, _)| *sequence)?;
        self.sequence = sequence;
        Some(text)
    }

    fn read_copy(&self, file: &File, copy: u64) -> Option<(u64, Vec<u8>)> {
        let start = self.start + copy * self.len as u64;
        let mut header = [0; HEADER_LEN];
        file.read_exact_at(&mut header, start).ok()?;
        let length = u32::from_le_bytes(header[4..8].try_into().ok()?) as usize;
        (length <= self.len - HEADER_LEN).then_some(())?;
        let mut bytes = header.to_vec();
        bytes.resize(HEADER_LEN + length, 0);
        file.read_exact_at(&mut bytes[HEADER_LEN..], start + HEADER_LEN as u64).ok()?;
        (crc32fast::hash(&bytes[4..]) == u32::from_le_bytes(bytes[..4].try_into().ok()?)).then_some(())?;
        Some((u64::from_le_bytes(header[8..16].try_into().ok()?), bytes.split_off(HEADER_LEN)))
    }

    /// Writes the text over the older copy.
    ///
    /// # Errors
    /// The file system's; or the text is too long.
    pub(crate) fn write(&mut self, file: &File, text: &[u8]) -> io::Result<()> {
        if text.len() + HEADER_LEN > self.len {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the names are too long, or too many"));
        }
        let sequence = self.sequence.wrapping_add(1);
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&sequence.to_le_bytes());
        bytes.extend_from_slice(text);
        let checksum = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        file.write_all_at(&bytes, self.start + (sequence % 2) * self.len as u64)?;
        self.sequence = sequence;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_file_is_free_while_a_copy_of_its_descriptor_is_open() {
        let path = std::env::temp_dir().join(format!("ropewalk-kept-{}", std::process::id()));
        let file = open_locked(&path).unwrap();
        let _copy = file.try_clone().unwrap(); // as a forked process has it
        assert_eq!(open_locked(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(file);
        open_locked(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
