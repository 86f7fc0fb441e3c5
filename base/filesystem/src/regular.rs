//! Regular files of bounded length.

use nix::fcntl::OFlag;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Whether the last part of a path may be a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The person at the keyboard named the path, and may have linked it.
    Follow,
    /// Another user may have filled the folder of the path.
    Refuse,
}

/// Opens a regular file of at most `max_len` bytes for reading. It never waits for a writer.
///
/// # Errors
/// The file cannot be opened, is longer, is not a regular file, or is a refused symbolic link.
pub fn open(path: &Path, links: Links, max_len: u64) -> io::Result<File> {
    let metadata = match links {
        Links::Follow => path.metadata()?,
        Links::Refuse => path.symlink_metadata()?,
    };
    // Checked before the file is opened, because opening some devices changes them, and again after, because the path
    // may lead to another file by then.
    check(&metadata, max_len)?;
    let mut flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    flags.set(OFlag::O_NOFOLLOW, links == Links::Refuse);
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    check(&file.metadata()?, max_len)?;
    Ok(file)
}

/// Reads a regular file of at most `max_len` bytes.
///
/// # Errors
/// As [`open`]; or the file grew beyond `max_len` while it was read.
pub fn read(path: &Path, links: Links, max_len: u64) -> io::Result<Vec<u8>> {
    let file = open(path, links, max_len)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or_default());
    read_bounded(file, max_len, &mut bytes).map(|()| bytes)
}

/// Reads a text, as [`read()`] reads bytes.
///
/// # Errors
/// As [`read()`]; or the file is not UTF-8.
pub fn read_text(path: &Path, links: Links, max_len: u64) -> io::Result<String> {
    to_text(read(path, links, max_len)?)
}

/// Reads a text of at most `max_len` bytes from a file of any kind, such as a pipe that the user named.
///
/// # Errors
/// The file cannot be read, is longer, or is not UTF-8.
pub fn read_text_of_any(path: &Path, max_len: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    read_bounded(File::open(path)?, max_len, &mut bytes)?;
    to_text(bytes)
}

/// Copies the regular file `from`, which must not be a link, to the new file `to`.
///
/// # Errors
/// As [`open`]; or `to` exists or cannot be written.
pub fn copy(from: &Path, to: &Path, max_len: u64) -> io::Result<()> {
    let source = open(from, Links::Refuse, max_len)?;
    let copied = io::copy(&mut source.take(max_len + 1), &mut File::create_new(to)?)?;
    if copied > max_len { Err(too_long(max_len)) } else { Ok(()) }
}

fn read_bounded(source: File, max_len: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    source.take(max_len.saturating_add(1)).read_to_end(bytes)?;
    if bytes.len() as u64 > max_len { Err(too_long(max_len)) } else { Ok(()) }
}

fn to_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Whether this is a regular file of at most `max_len` bytes.
pub(crate) fn check(metadata: &Metadata, max_len: u64) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(nix::errno::Errno::EISDIR.into());
    }
    if !metadata.is_file() {
        let message = format!("it is {}, and must be a regular file", kind(metadata.file_type()));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if metadata.len() > max_len { Err(too_long(max_len)) } else { Ok(()) }
}

fn kind(file_type: FileType) -> &'static str {
    if file_type.is_symlink() {
        "a symbolic link"
    } else if file_type.is_fifo() {
        "a named pipe"
    } else if file_type.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

fn too_long(max_len: u64) -> io::Error {
    let limit = if max_len >= 1 << 20 { format!("{} MiB", max_len >> 20) } else { format!("{max_len} bytes") };
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn refusal(path: &Path, links: Links) -> String {
        open(path, links, 10).unwrap_err().to_string()
    }

    #[test]
    fn regular_files_up_to_the_limit_are_read_and_nothing_else_is_or_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("ten"), "0123456789").unwrap();
        fs::write(path("eleven"), "0123456789a").unwrap();
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        symlink(path("ten"), path("link")).unwrap();
        symlink("/dev/zero", path("zero")).unwrap();
        for links in [Links::Follow, Links::Refuse] {
            assert_eq!(read_text(&path("ten"), links, 10).unwrap(), "0123456789");
            assert!(refusal(&path("eleven"), links).contains("longer than 10 bytes"));
            assert!(refusal(&path("fifo"), links).contains("a named pipe"));
            assert!(refusal(&path("socket"), links).contains("a socket"));
            assert!(refusal(folder.path(), links).contains("directory"));
        }
        assert!(refusal(&path("zero"), Links::Follow).contains("a device"));
        assert!(refusal(&path("link"), Links::Refuse).contains("a symbolic link"));
        assert_eq!(read_text(&path("link"), Links::Follow, 10).unwrap(), "0123456789");
        assert!(read_text_of_any(Path::new("/dev/zero"), 10).unwrap_err().to_string().contains("longer"));
    }

    #[test]
    fn a_copy_is_of_a_regular_file_and_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "0123456789").unwrap();
        symlink(path("file"), path("link")).unwrap();
        copy(&path("file"), &path("copy"), 10).unwrap();
        assert_eq!(fs::read(path("copy")).unwrap(), b"0123456789");
        assert!(copy(&path("link"), &path("other"), 10).unwrap_err().to_string().contains("a symbolic link"));
        assert!(!path("other").exists());
        assert_eq!(copy(&path("file"), &path("copy"), 10).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
