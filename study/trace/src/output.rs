//! A file that is there once it is whole.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, TempPath};

/// A file that is written next to its place. Without [`Output::keep`] it is removed, and what was in its place stays.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    /// None where the path is a pipe or a device, which is written at once.
    temporary: Option<TempPath>,
}

impl Output {
    /// Opens the file.
    pub(crate) fn create(path: &Path) -> io::Result<(Self, File)> {
        let path = path.to_owned();
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(&path)?;
            return Ok((Self { path, temporary: None }, file));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // As a new file has: less what the user's mask takes away.
        let mut builder = Builder::new();
        let builder = builder.permissions(Permissions::from_mode(0o666)).prefix(".trace-").suffix(".tmp");
        let file = builder.tempfile_in(folder).map_err(without_name)?;
        let (file, temporary) = file.into_parts();
        Ok((Self { path, temporary: Some(temporary) }, file))
    }

    /// Puts the file in its place.
    pub(crate) fn keep(self) -> io::Result<()> {
        self.temporary.map_or(Ok(()), |temporary| temporary.persist(self.path).map_err(|error| error.error))
    }
}

/// The reason alone: the name of the temporary file says nothing to the user.
fn without_name(error: io::Error) -> io::Error {
    let text = error.to_string();
    text.split_once(" at path ").map_or(error, |(reason, _)| io::Error::other(reason.to_owned()))
}
