//! The files that a scenario names: traces, and parameters of algorithms.

#![expect(clippy::disallowed_methods, reason = "a scenario names files")]

use crate::{built_in, trace};
use filesystem::Links;
use link::RateTrace;
use params::ParamValue;
use parse::{Diagnostic, SourceLocation, Spanned};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The maximum size of a trace, bytes: 67 million packets.
const MAX_TRACE_LEN: u64 = 64 << 20;

/// The place where the files that a scenario names are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base<'a> {
    /// The scenario's folder.
    pub(crate) folder: &'a Path,
    /// Whether the scenario may only name files inside the folder, by a path or by a link.
    pub(crate) is_confined: bool,
}

impl Base<'_> {
    /// The path of the file or folder `name`; the reason if the scenario may not name it. A file that does not exist may be
    /// named if it is inside.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf, Diagnostic> {
        let path = self.folder.join(name);
        let folder = if self.folder == Path::new("") { Path::new(".") } else { self.folder };
        let is_inside = match (folder.canonicalize(), path.canonicalize()) {
            (Ok(folder), Ok(path)) => path.starts_with(folder),
            _ => Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)),
        };
        let is_built_in = || !path.exists() && built_in::file(&path).is_some();
        if self.is_confined && !is_inside && !is_built_in() {
            return Err(Diagnostic::new(0..0, format!("`{name}` leads out of the scenario's folder"))
                .with_help("copy the file next to the scenario, or run without `--own-files`"));
        }
        Ok(path)
    }
}

/// Reads a trace, as a scenario names it, from a file outside a scenario: `FILE`, or `FILE#COLUMN` of CSV.
///
/// # Errors
/// The file cannot be read, or is not a trace. The message is one line, with the file, the line's number and a hint.
pub fn trace_file(name: &str) -> Result<RateTrace, String> {
    let (file, column) = split_column(name);
    read_trace(Path::new(file), column).map_err(|diagnostic| {
        let place = diagnostic.location.map(|place| format!("{}:{}: ", place.file_name, place.span.start + 1));
        let help = if diagnostic.help.is_empty() { String::new() } else { format!(" ({})", diagnostic.help) };
        format!("{}{}{help}", place.unwrap_or_default(), diagnostic.message)
    })
}

fn split_column(name: &str) -> (&str, Option<&str>) {
    name.rsplit_once('#').map_or((name, None), |(file, column)| (file, Some(column)))
}

fn read_trace(path: &Path, column: Option<&str>) -> Result<RateTrace, Diagnostic> {
    let file_name = path.display().to_string();
    let text = match (filesystem::read_text(path, Links::Follow, MAX_TRACE_LEN), built_in::file(path)) {
        (Err(error), Some(bytes)) if error.kind() == ErrorKind::NotFound => String::from_utf8_lossy(bytes).into_owned(),
        (text, _) => {
            text.map_err(|error| Diagnostic::new(0..0, format!("cannot read the trace `{file_name}`: {error}")))?
        }
    };
    trace::parse(&text, column).map_err(|error| {
        // The line's number, without the file's text.
        let start = error.line - 1;
        let text = "\n".repeat(start) + "\u{2026}";
        let span = start..text.len();
        let location = Some(Box::new(SourceLocation { file_name, text, span }));
        Diagnostic { location, ..Diagnostic::new(0..0, error.message).with_help(error.help) }
    })
}

/// The files that a scenario names, each read once.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    is_confined: bool,
    traces: BTreeMap<String, RateTrace>,
    parameters: BTreeMap<String, ParamValue>,
}

impl Files {
    /// Files at `base`.
    pub(crate) fn new(base: Base<'_>) -> Self {
        let Base { folder, is_confined } = base;
        Self { folder: folder.to_owned(), is_confined, traces: BTreeMap::new(), parameters: BTreeMap::new() }
    }

    fn path(&self, name: &str) -> Result<PathBuf, Diagnostic> {
        Base { folder: &self.folder, is_confined: self.is_confined }.path(name)
    }

    /// The trace in the file `name`. The caller knows where the scenario names it. An error shows nothing of the file's
    /// content, because a stranger's scenario may name any file. `FILE#COLUMN` is a column of CSV.
    pub(crate) fn trace(&mut self, name: &str) -> Result<RateTrace, Diagnostic> {
        if let Some(trace) = self.traces.get(name) {
            return Ok(trace.clone());
        }
        let (file, column) = split_column(name);
        let trace = read_trace(&self.path(file)?, column)?;
        self.traces.insert(name.to_owned(), trace.clone());
        Ok(trace)
    }

    /// The file that the parameter of an algorithm names.
    pub(crate) fn parameter(&mut self, name: &Spanned<String>) -> Result<ParamValue, Diagnostic> {
        if let Some(value) = self.parameters.get(name.get()) {
            return Ok(value.clone());
        }
        let path = self.path(name.get()).map_err(|refusal| Diagnostic { span: name.span(), ..refusal })?;
        let value = match built_in::file(&path).filter(|_| !path.exists()) {
            Some(bytes) => Ok(ParamValue::File { path: path.clone(), bytes: bytes.into() }),
            None => ParamValue::read_file(&path),
        };
        let value = value.map_err(|error| {
            let message = format!("cannot read `{}`: {error}", path.display());
            Diagnostic::new(name.span(), message)
                .with_help("a path relative to the scenario's folder, or an absolute one")
        })?;
        self.parameters.insert(name.get().clone(), value.clone());
        Ok(value)
    }

    /// The contents of all files, for the scenario's hash.
    pub(crate) fn contents(&self) -> impl Iterator<Item = u8> {
        let traces = self.traces.values().flat_map(|trace| trace.opportunities.iter().copied());
        let bytes = |value: &ParamValue| match value {
            ParamValue::File { bytes, .. } => bytes.to_vec(),
            ParamValue::Number(_) | ParamValue::Choice(_) => Vec::new(),
        };
        let parameters = self.parameters.values().flat_map(bytes);
        traces.flat_map(u64::to_le_bytes).chain(parameters)
    }
}
