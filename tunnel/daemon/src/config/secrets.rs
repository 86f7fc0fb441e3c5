//! Keys in files of their own, and the permissions of such files.

use seal::KeyError;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

/// Reads a key from the file at `path`.
///
/// # Errors
/// The file cannot be read or is not a key. The error repeats nothing of the file.
pub(super) fn read_key_file<K: FromStr<Err = KeyError>>(path: &Path) -> Result<K, String> {
    let path_text = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {path_text}: {error}"))?;
    text.parse().map_err(|error| format!("{path_text} is not a key: {error}"))
}

/// Whether group or others may read the file.
pub(super) fn is_readable_by_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o044 != 0)
}

/// Whether the text contains a secret.
pub(super) fn contains_secret(text: &str) -> bool {
    super::mask::mask_secrets(text) != text
}
