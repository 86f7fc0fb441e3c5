//! Mahimahi traces: each line a millisecond at which one 1500-byte packet may leave; the last is the period.

use link::RateTrace;
use parse::{Diagnostic, SourceLocation};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The traces that a scenario names, each read once.
#[derive(Debug)]
pub(crate) struct Traces {
    base: PathBuf,
    by_name: BTreeMap<String, RateTrace>,
}

impl Traces {
    /// Traces below `base`.
    pub(crate) fn new(base: &Path) -> Self {
        Self { base: base.to_owned(), by_name: BTreeMap::new() }
    }

    /// The trace in the file `name`. The caller knows where the scenario names it.
    pub(crate) fn get(&mut self, name: &str) -> Result<RateTrace, Diagnostic> {
        if let Some(trace) = self.by_name.get(name) {
            return Ok(trace.clone());
        }
        let path = self.base.join(name);
        let file_name = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Diagnostic::new(0..0, format!("cannot read the trace `{file_name}`: {error}")))?;
        let trace = parse(&text).map_err(|mut diagnostic| {
            diagnostic.location = Some(Box::new(SourceLocation { file_name, text, span: diagnostic.span.clone() }));
            diagnostic
        })?;
        self.by_name.insert(name.to_owned(), trace.clone());
        Ok(trace)
    }

    /// The opportunities of every trace, for the scenario's hash.
    pub(crate) fn opportunities(&self) -> impl Iterator<Item = u64> {
        self.by_name.values().flat_map(|trace| trace.opportunities.iter().copied())
    }
}

/// Reads a trace.
fn parse(text: &str) -> Result<RateTrace, Diagnostic> {
    let (mut opportunities, mut start) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let span = start..start + line.trim_end().len();
        start += line.len();
        let line = line.trim();
        let Ok(millisecond) = line.parse() else {
            let message = format!("`{line}` is not a time stamp in milliseconds");
            return Err(
                Diagnostic::new(span, message).with_help("a mahimahi trace has one whole number a line, nothing else")
            );
        };
        if opportunities.last().is_some_and(|last| *last > millisecond) {
            return Err(
                Diagnostic::new(span, "time goes backwards").with_help("time stamps ascend; repeats are allowed")
            );
        }
        opportunities.push(millisecond);
    }
    match opportunities.last() {
        None => Err(Diagnostic::new(0..0, "an empty trace carries nothing")),
        Some(0) => Err(Diagnostic::new(0..0, "the last time stamp is the trace's period and cannot be 0")),
        Some(&period_ms) => Ok(RateTrace { opportunities: opportunities.into(), period_ms }),
    }
}
