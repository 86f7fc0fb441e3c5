//! Files of measurements, and errors that name file, line and key.

use crate::{Measured, check};
use serde::Deserialize;
use std::fmt;
use std::path::Path;

/// The maximum length of a file, bytes.
const MAX_LEN: u64 = 1 << 30;

/// The reason why a file gives no measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file's name.
    pub file: String,
    /// The line, from 1, where one is at fault.
    pub line: Option<usize>,
    /// The fault, with the key of the value.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for Error {}

/// Reads the file of a measurement.
///
/// # Errors
///
/// The file is not readable, longer than a GiB, or [`parse`] refuses it.
pub fn read(path: &Path) -> Result<Measured, Error> {
    let name = path.display().to_string();
    match filesystem::read_text_of_any(path, MAX_LEN) {
        Ok(text) => parse(&text, &name),
        Err(error) => Err(Error { file: name, line: None, message: error.to_string() }),
    }
}

/// Reads a document; `file` names it in errors.
///
/// # Errors
///
/// The text is not JSON, has a key that no document has, lacks one that each has, is of a newer version, or contradicts
/// itself.
pub fn parse(text: &str, file: &str) -> Result<Measured, Error> {
    let fail = |line, message| Error { file: file.to_owned(), line, message };
    let syntax = |error: serde_json::Error| fail(Some(error.line()), error.to_string());
    let Version { version } = serde_json::from_str(text).map_err(syntax)?;
    if version == 0 || version > crate::VERSION {
        return Err(fail(
            None,
            format!("version: {version} is unknown to this program, which reads versions 1 to {}", crate::VERSION),
        ));
    }
    let measured: Measured = serde_json::from_str(text).map_err(syntax)?;
    check::check(&measured).map_err(|message| fail(None, message))?;
    Ok(measured)
}

/// What is read first: other versions may have other keys.
#[derive(Deserialize)]
struct Version {
    version: u32,
}
