//! Files with the state of the daemon that must survive a restart.

use filesystem::{Folder, LockedFile};
use nix::unistd::User;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes before the text of a copy.
const HEADER_LEN: usize = 16;

/// The place of a file, and its future owner.
#[derive(Debug)]
pub(crate) struct Place {
    folder: Folder,
    name: OsString,
    owner: Option<(u32, u32)>,
}

impl Place {
    /// The place of the file at `path`, which is given to `user` if the folder belongs to that user, so that the user,
    /// and a daemon that starts as this user, can use it. The running daemon continues with its open descriptor.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub(crate) fn new(path: &Path, user: Option<&User>) -> io::Result<Self> {
        let (folder, name) = Folder::of_file(path)?;
        Ok(Self { folder, name, owner: user.map(|user| (user.uid.as_raw(), user.gid.as_raw())) })
    }

    /// Opens or creates the file, and locks it: the file is its own lock.
    ///
    /// # Errors
    /// It cannot be opened or created, it is a link or not a regular file, or another daemon writes it.
    pub(crate) fn open(&self) -> io::Result<LockedFile> {
        let is_written = || io::Error::new(io::ErrorKind::WouldBlock, "another daemon writes it");
        let file = self.folder.open_locked(&self.name)?.ok_or_else(is_written)?;
        // An earlier version let the group read the file, and so lock it.
        file.set_permissions(PermissionsExt::from_mode(0o600))?;
        self.owner.map_or(Ok(()), |owner| self.folder.give(&file, owner))?;
        Ok(file)
    }

    /// Renames an unusable file to `NAME.damaged`, and creates a new one.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn replace_damaged(&self) -> io::Result<(LockedFile, PathBuf)> {
        let mut aside = self.name.clone();
        aside.push(".damaged");
        self.folder.rename(&self.name, &aside)?;
        Ok((self.open()?, self.folder.path().join(aside)))
    }
}

/// A text of which the file has two copies, written in turn, so that one is complete at any time. A copy: CRC-32 of the
/// rest 4, length 4, sequence number 8 (all little-endian), the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwoCopies {
    /// The place of the first copy in the file.
    start: u64,
    /// The size of a copy's place, bytes.
    len: usize,
    /// The sequence number of the latest copy.
    sequence: u64,
}

impl TwoCopies {
    /// Two copies of at most `len` bytes each, with their headers, from `start` on.
    pub(crate) const fn new(start: u64, len: usize) -> Self {
        Self { start, len, sequence: 0 }
    }

    /// The text of the latest copy with a correct checksum.
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
