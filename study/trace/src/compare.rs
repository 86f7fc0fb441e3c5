//! Two captures of one experiment, packet by packet: where they begin to differ.

use crate::captured::{Flow, Segment, flows};
use std::fmt::Write as _;
use std::path::Path;
use units::Span;

/// Packets that are shown before the first difference.
const BEFORE: usize = 5;

/// Compares two captures of one side of an experiment, flow by flow in the order of their first packets, each direction by
/// itself. Returns a text that names the first packet of each flow that differs: in its numbers, flags or SACK blocks, or by
/// more than `within` in its time since the flow's first packet.
///
/// # Errors
/// A file cannot be read, is no capture, or has no TCP flow; the error names it.
pub fn compare(paths: &[impl AsRef<Path>; 2], within: Span) -> Result<String, String> {
    let read = |path: &Path| match flows(path)? {
        flows if flows.is_empty() => Err(format!("{}: has no packet of TCP", path.display())),
        flows => Ok(flows),
    };
    let paths = [paths[0].as_ref(), paths[1].as_ref()];
    let captures = [read(paths[0])?, read(paths[1])?];
    let mut text = String::new();
    for (letter, (path, flows)) in ["A", "B"].iter().zip(paths.iter().zip(&captures)) {
        let _ = writeln!(text, "{letter}  {}, flows: {}", path.display(), flows.len());
    }
    for (number, (a, b)) in (1..).zip(captures[0].iter().zip(&captures[1])) {
        let _ = writeln!(text, "\nflow {number}  A {} > {}, B {} > {}", a.ends[0], a.ends[1], b.ends[0], b.ends[1]);
        text += &flow(a, b, within);
    }
    Ok(text)
}

/// The first difference of a flow in words.
fn flow(a: &Flow, b: &Flow, within: Span) -> String {
    let of = |flow: &Flow, of_opener: bool| -> Vec<Segment> {
        flow.segments.iter().filter(|segment| segment.of_opener == of_opener).cloned().collect()
    };
    let differences = [true, false].into_iter().filter_map(|of_opener| {
        let sides = [of(a, of_opener), of(b, of_opener)];
        let index = (0..sides[0].len().max(sides[1].len()))
            .find(|index| !is_same(sides[0].get(*index), sides[1].get(*index), within))?;
        let at_ns = sides.iter().filter_map(|side| side.get(index)).map(|segment| segment.at_ns).min()?;
        Some((at_ns, of_opener, index, sides))
    });
    let Some((at_ns, of_opener, index, sides)) = differences.min_by_key(|(at_ns, ..)| *at_ns) else {
        return format!("the same: {} packets\n", a.segments.len());
    };
    let direction = if of_opener { "opener" } else { "other end" };
    let mut text = format!("the same until packet {} of the {direction}\n", index + 1);
    for (letter, flow) in [("A", a), ("B", b)] {
        let earlier: Vec<&Segment> = flow.segments.iter().filter(|segment| segment.at_ns < at_ns).collect();
        for segment in &earlier[earlier.len().saturating_sub(BEFORE)..] {
            let _ = writeln!(text, "  {letter}   {}", line(segment));
        }
    }
    for (letter, side) in ["A", "B"].iter().zip(&sides) {
        let _ = writeln!(text, "* {letter}   {}", side.get(index).map_or("no packet".to_owned(), line));
    }
    text
}

/// Whether two packets are the same, at about the same time.
fn is_same(a: Option<&Segment>, b: Option<&Segment>, within: Span) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    let same_time = Segment { at_ns: a.at_ns, ..b.clone() };
    *a == same_time && a.at_ns.abs_diff(b.at_ns) <= within.0
}

/// A packet on a line.
fn line(segment: &Segment) -> String {
    let Segment { at_ns, of_opener, seq, len, ack, flags, sack } = segment;
    let sign = if *of_opener { '>' } else { '<' };
    let mut text = format!("{:12.6} s {sign} {seq}:{}", *at_ns as f64 / 1e9, seq + u64::from(*len));
    if !flags.is_empty() {
        let _ = write!(text, " {flags}");
    }
    if let Some(ack) = ack {
        let _ = write!(text, " ack {ack}");
    }
    for (start, end) in sack {
        let _ = write!(text, " sack {start}-{end}");
    }
    text
}
