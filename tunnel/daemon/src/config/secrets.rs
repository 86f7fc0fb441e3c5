//! Files with secrets: their texts, which are wiped, and their modes.

use nix::libc;
use parse::Diagnostic;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// Bytes of what is no regular file, such as a pipe, that are read at most.
const MAX_STREAM_LEN: usize = 1 << 16;

/// Permission bits of group and others to read.
const READABLE: u32 = 0o044;

/// The text of a file with a secret, wiped on drop.
pub(super) struct SecretText {
    pub(super) text: Zeroizing<String>,
    /// The mode of a file that group or others may read.
    pub(super) loose_mode: Option<u32>,
}

/// Reads a file with a secret; its mode is that of the file read, whatever its name leads to meanwhile.
///
/// # Errors
/// It cannot be read, is not UTF-8, or is longer than the file was when it was opened.
pub(super) fn read(path: &Path) -> io::Result<SecretText> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let mode = metadata.permissions().mode() & 0o7777;
    let loose_mode = (metadata.is_file() && mode & READABLE != 0).then_some(mode);
    let capacity = usize::try_from(metadata.len()).map_err(io::Error::other)?.max(MAX_STREAM_LEN);
    Ok(SecretText { text: read_to_end(file, capacity)?, loose_mode })
}

/// As [`read`], of a file in a folder of another user: no symbolic link, nothing but a regular file of at most `max_len`
/// bytes, so that this user can neither show a file of root's nor hold a process of root's up.
///
/// # Errors
/// As [`read`]; it is no such file.
pub(super) fn read_untrusted(path: &Path, max_len: u64) -> io::Result<SecretText> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > max_len {
        let message = format!("it must be a regular file of at most {max_len} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let mode = metadata.permissions().mode() & 0o7777;
    let text = read_to_end(file, max_len.min(metadata.len()) as usize)?;
    Ok(SecretText { text, loose_mode: (mode & READABLE != 0).then_some(mode) })
}

/// Reads the text of a secret, at most `max_len` bytes. The buffer never grows: no copy stays behind.
///
/// # Errors
/// It cannot be read, is not UTF-8, or is longer.
pub(crate) fn read_to_end(source: impl Read, max_len: usize) -> io::Result<Zeroizing<String>> {
    // The reader looks for the end with some bytes to spare.
    let mut text = Zeroizing::new(String::with_capacity(max_len + 64));
    source.take(max_len as u64 + 1).read_to_string(&mut text)?;
    if text.len() > max_len {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("longer than {max_len} bytes")));
    }
    Ok(text)
}

/// The error of a secret at `span` in the file `name`, or named there, with a mode by which others may read it.
pub(super) fn loose_mode_error(span: Range<usize>, name: &str, mode: u32) -> Diagnostic {
    let message = format!("{name} holds a secret, and others than its owner may read it (mode {mode:04o})");
    let help = format!("chmod 600 {name}; or, if this is intended, `allow-readable-keys = true` in [interface]");
    Diagnostic::new(span, message).with_help(help)
}
