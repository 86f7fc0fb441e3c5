//! A capture is read once, and its events are written while it is read.

use super::table::{CaptureEnd, Table};
use crate::output::Output;
use crate::page::{Heading, Page};
use crate::{Error, cannot_write, write_events};
use std::io::{self, BufWriter};
use std::path::Path;
use store::EventRow;

/// Rows of a group of the table.
const GROUP: usize = 1 << 16;

/// What is written of a capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureOutputs<'a> {
    /// The table of events, as Parquet.
    pub events: Option<&'a Path>,
    /// The page, which draws what is sent and acknowledged.
    pub page: Option<&'a Path>,
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

/// Reads a capture, and writes its events and its page. Without an `end` the times of the first handshake tell at which host it was made.
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
    let mut page = outputs.page.map(|_| Page::of_capture(table.end()));
    let groups = std::iter::from_fn(|| {
        let mut rows = Vec::new();
        while !is_over && rows.len() < GROUP {
            match table.next() {
                Ok(Some(packet)) => {
                    packets += 1;
                    page.iter_mut().for_each(|page| page.add_captured(&packet));
                    rows.extend(packet.rows);
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
    if let (Some(page), Some(file)) = (&mut page, outputs.page) {
        write_page(page, file, path).map_err(|error| Error::Capture(cannot_write(file, &error)))?;
    }
    Ok(CaptureSummary { packets, flows: table.flows(), end: table.end() })
}

/// Writes the page of a capture.
fn write_page(page: &mut Page, file: &Path, capture: &Path) -> io::Result<()> {
    let (output, target) = Output::create(file)?;
    let title = capture.file_name().unwrap_or(capture.as_os_str()).to_string_lossy().into_owned();
    page.write(&mut BufWriter::new(target), &Heading { title, facts: Vec::new() }, "")?;
    output.keep()
}

/// The events of a capture, in memory.
///
/// # Errors
/// As [`read_capture`].
pub fn capture_events(path: &Path, end: Option<CaptureEnd>) -> Result<Vec<EventRow>, String> {
    let (mut table, mut rows) = (Table::open(path, end)?, Vec::new());
    while let Some(packet) = table.next()? {
        rows.extend(packet.rows);
    }
    if rows.is_empty() { Err(format!("{}: has no packet of TCP or UDP", path.display())) } else { Ok(rows) }
}
