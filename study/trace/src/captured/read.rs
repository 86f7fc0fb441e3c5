//! A capture is read once, and its events are written while it is read.

use super::table::{CaptureEnd, Table};
use crate::{Error, write_events};
use std::path::Path;
use store::EventRow;

/// Rows of a group of the table.
const GROUP: usize = 1 << 16;

/// What is written of a capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureOutputs<'a> {
    /// The table of events, as Parquet.
    pub events: Option<&'a Path>,
}

/// What a capture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Packets of TCP and UDP.
    pub packets: u64,
    /// Connections of TCP, subflows of MPTCP each, and flows of UDP.
    pub flows: usize,
    /// The host at which it was made.
    pub end: CaptureEnd,
}

/// Reads a capture, and writes its events. Without an `end` the times of the first handshake tell at which host it was made.
///
/// # Errors
/// The capture cannot be read, is damaged, or has no packet of TCP or UDP, or a file cannot be written.
pub fn read_capture(
    path: &Path,
    end: Option<CaptureEnd>,
    outputs: &CaptureOutputs<'_>,
) -> Result<CaptureSummary, Error> {
    let mut table = Table::open(path, end).map_err(Error::Capture)?;
    let (mut packets, mut is_over) = (0, false);
    let groups = std::iter::from_fn(|| {
        let mut rows = Vec::new();
        while !is_over && rows.len() < GROUP {
            match table.next() {
                Ok(Some(more)) => {
                    packets += 1;
                    rows.extend(more);
                }
                Ok(None) if packets == 0 => {
                    return Some(Err(format!("{}: has no packet of TCP or UDP", path.display())));
                }
                Ok(None) => is_over = true,
                Err(error) => return Some(Err(error)),
            }
        }
        (!rows.is_empty()).then_some(Ok(rows))
    });
    write_events(outputs.events, groups)?;
    Ok(CaptureSummary { packets, flows: table.flows(), end: table.end() })
}

/// The events of a capture, in memory.
///
/// # Errors
/// As [`read_capture`].
pub fn capture_events(path: &Path, end: Option<CaptureEnd>) -> Result<Vec<EventRow>, String> {
    let (mut table, mut rows) = (Table::open(path, end)?, Vec::new());
    while let Some(more) = table.next()? {
        rows.extend(more);
    }
    if rows.is_empty() { Err(format!("{}: has no packet of TCP or UDP", path.display())) } else { Ok(rows) }
}
