//! Files with secrets: their texts, which are wiped after use, and their modes.

use nix::libc;
use parse::Diagnostic;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// Maximum number of bytes read from a file that is not a regular one, such as a pipe.
const MAX_STREAM_LEN: usize = 1 << 16;

/// Permission bits of group and others to read.
const READABLE: u32 = 0o044;

/// The text of a file with a secret, wiped on drop.
pub(super) struct SecretText {
    pub(super) text: Zeroizing<String>,
    /// The mode, if group or others may read the file.
    pub(super) loose_mode: Option<u32>,
}

/// Reads a file with a secret. The mode is that of the file that was read, even if its name points to another file by
/// then.
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

/// As [`read`], for a file in a folder of another user. It must be a regular file of at most `max_len` bytes and not a
/// symbolic link, so that this user can neither reveal a file of root nor block a process of root.
///
/// # Errors
/// As [`read`], or the file is not such a file.
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

/// Reads the text of a secret, at most `max_len` bytes. The buffer never grows, so that no copy is left in memory.
///
/// # Errors
/// It cannot be read, is not UTF-8, or is longer.
pub(crate) fn read_to_end(source: impl Read, max_len: usize) -> io::Result<Zeroizing<String>> {
    // The reader needs some spare bytes to find the end.
    let mut text = Zeroizing::new(String::with_capacity(max_len + 64));
    source.take(max_len as u64 + 1).read_to_string(&mut text)?;
    if text.len() > max_len {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("longer than {max_len} bytes")));
    }
    Ok(text)
}

/// The error of a secret at `span` in the file `name`, or in a file named there, whose mode lets others read it.
pub(super) fn loose_mode_error(span: Range<usize>, name: &str, mode: u32) -> Diagnostic {
    let message = format!("{name} holds a secret, and users other than its owner may read it (mode {mode:04o})");
    let help = format!("chmod 600 {name}; or, if this is intended, `allow-readable-keys = true` in [interface]");
    Diagnostic::new(span, message).with_help(help)
}
