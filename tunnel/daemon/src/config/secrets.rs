//! Keys from files, and who else may read those.

use seal::KeyError;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

/// The key in the file at `path`.
///
/// # Errors
/// What is wrong, in words that repeat nothing of the file.
pub(super) fn key_file<K: FromStr<Err = KeyError>>(path: &Path) -> Result<K, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    text.parse().map_err(|wrong| format!("{shown} holds no key: {wrong}"))
}

/// Group or others may read the file.
pub(super) fn others_may_read(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o044 != 0)
}

/// A secret stands in the text itself.
pub(super) fn is_within(text: &str) -> bool {
    super::mask::masked(text) != text
}
