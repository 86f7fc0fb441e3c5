//! Files of measurements, and errors that name file, line and key.

use crate::{Measured, VERSION, check, import};
use filesystem::Links;
use serde_json::Value;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

/// The maximum length of a file, bytes.
const MAX_LEN: u64 = 1 << 30;
/// The first bytes of a file of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

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

/// Reads measurements: a document, or a file of another program, as its content tells. A file that is compressed with gzip is
/// read, too.
///
/// # Errors
///
/// The file is not readable, longer than a GiB, or [`parse`] refuses it.
pub fn read(path: &Path) -> Result<Measured, Error> {
    let name = path.display().to_string();
    let fail = |message: String| Error { file: name.clone(), line: None, message };
    let bytes = filesystem::read(path, Links::Follow, MAX_LEN).map_err(|error| fail(error.to_string()))?;
    let bytes =
        if bytes.starts_with(&GZIP) { inflate(&bytes).map_err(|error| fail(error.to_string()))? } else { bytes };
    let text = String::from_utf8(bytes).map_err(|_| fail("the file is no text".to_owned()))?;
    parse(&text, &name)
}

fn inflate(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut inflated = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).take(MAX_LEN + 1).read_to_end(&mut inflated)?;
    if inflated.len() as u64 > MAX_LEN {
        return Err(io::Error::other("the file is longer than a GiB"));
    }
    Ok(inflated)
}

/// Reads measurements from a text; `file` names it in errors, and without its ending the path of an imported file.
///
/// # Errors
///
/// The format is not known, a document has a key that none has or lacks one that each has, is of a newer version, or
/// contradicts itself.
pub fn parse(text: &str, file: &str) -> Result<Measured, Error> {
    let fail = |(line, message)| Error { file: file.to_owned(), line, message };
    let stem = Path::new(file).file_stem().map_or_else(|| file.into(), |stem| stem.to_string_lossy());
    // `lte.flent.gz`
    let source = import::Source { path: stem.strip_suffix(".flent").unwrap_or(&stem) };
    let measured = if text.trim_start().starts_with('{') {
        json(text, &source).map_err(fail)?
    } else {
        import::text(text, &source).map_err(fail)?
    };
    check::check(&measured).map_err(|message| fail((None, message)))?;
    Ok(measured)
}

fn json(text: &str, source: &import::Source<'_>) -> Result<Measured, import::Fault> {
    let syntax = |error: serde_json::Error| (Some(error.line()), error.to_string());
    let value: Value = serde_json::from_str(text).map_err(syntax)?;
    if let Some(imported) = import::json(&value, source) {
        return imported;
    }
    match value["version"].as_u64() {
        None if value.get("paths").is_none() => return Err((None, import::FORMATS.to_owned())),
        Some(version) if version == 0 || version > VERSION.into() => {
            let known = format!("this program reads versions 1 to {VERSION}");
            return Err((None, format!("version: {version} is unknown, {known}")));
        }
        _ => {}
    }
    serde_json::from_str(text).map_err(syntax)
}
