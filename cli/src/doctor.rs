//! `ropewalk doctor`: prints which scenarios this machine can run, from the diagnosis that the lab makes.

use crate::study::lab_driver::AGENT_SUBCOMMAND;
use crate::{Failure, output};
use control::registry;
use lab::{BackendReport, Diagnosis};
use std::fmt::Write;

/// Maximum width of a line, columns.
const MAX_WIDTH: usize = 140;
/// Number of blanks between two columns.
const COLUMN_GAP: usize = 2;

/// Printed if no package provides a kernel with virtual time and MPTCP.
const KERNEL_HINT: &str = "A kernel with virtual time and MPTCP comes with `cargo xtask kernel`
in Ropewalk's sources; ROPEWALK_LINUX names it.";

/// Diagnoses the machine and prints the report, as text or as JSON.
pub(crate) fn doctor(json: bool) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::Environment(error.to_string()))?;
    let diagnosis = lab::doctor(&program.to_string_lossy(), AGENT_SUBCOMMAND);
    if json { output::json(&diagnosis) } else { output::print(&report(&diagnosis, output::width())) }
}

fn report(diagnosis: &Diagnosis, width: usize) -> String {
    let width = width.clamp(40, MAX_WIDTH);
    let mut text = table(&kernels(&diagnosis.backends), width);
    text.push('\n');
    text.push_str(&table(&programs(diagnosis), width));
    text.push_str("\n--on sim runs every scenario, on any machine. No kernel runs\n");
    text.push_str(&simulator_only_list(diagnosis, width));
    let _ = match &diagnosis.install_command {
        Some(line) => writeln!(text, "\nWhat is missing comes with\n\n    {line}"),
        None if !diagnosis.missing.is_empty() => Ok(()),
        None if diagnosis.backends.iter().any(|backend| backend.virtual_time && backend.mptcp) => {
            writeln!(text, "\nNothing is missing.")
        }
        None => writeln!(text, "\n{KERNEL_HINT}"),
    };
    text
}

/// The table of kernels, with one column per kernel.
fn kernels(backends: &[BackendReport]) -> Vec<Vec<String>> {
    let row = |label: &str, cell: &dyn Fn(&BackendReport) -> String| {
        std::iter::once(label.to_owned()).chain(backends.iter().map(cell)).collect()
    };
    let yes_or = |has: bool, otherwise: &str| if has { "yes" } else { otherwise }.to_owned();
    vec![
        row("", &|backend| format!("--on {}", backend.name)),
        row("runs", &|backend| {
            backend.unavailable_reason.as_ref().map_or_else(|| "yes".to_owned(), |reason| format!("no: {reason}"))
        }),
        row("kernel", &|backend| {
            backend.release.as_ref().map_or_else(|| "none".to_owned(), |release| format!("Linux {release}"))
        }),
        row("program", &|backend| {
            backend.program.clone().unwrap_or_else(|| if_available(backend, "this machine's own, in namespaces"))
        }),
        row("time", &|backend| {
            if_available(
                backend,
                if backend.virtual_time { "virtual: load has no effect" } else { "real: load affects results" },
            )
        }),
        row("algorithms", &|backend| backend.congestion.join(", ")),
        row("eBPF adds", &|backend| match &backend.programs_unavailable_reason {
            Some(reason) => if_available(backend, &format!("nothing: {reason}")),
            None => backend.programs.join(", "),
        }),
        row("MPTCP", &|backend| if_available(backend, &yes_or(backend.mptcp, "no"))),
        row("tunnels", &|backend| if_available(backend, &yes_or(backend.tun, "no: no TUN devices"))),
        row("netem", &|backend| {
            if_available(backend, &yes_or(backend.netem, "no: a process of Ropewalk delays and drops packets"))
        }),
        row("IPv6", &|backend| if_available(backend, &yes_or(backend.ipv6, "no"))),
        row("tick", &|backend| {
            if_available(backend, &backend.tick_ms.map_or_else(|| "unknown".to_owned(), |tick| format!("{tick} ms")))
        }),
        row("cannot run", &|backend| if_available(backend, &backend.unsupported.join(", "))),
    ]
}

/// `text` for a kernel that is installed, otherwise an empty cell.
fn if_available(backend: &BackendReport, text: &str) -> String {
    if backend.release.is_some() { text.to_owned() } else { String::new() }
}

fn programs(diagnosis: &Diagnosis) -> Vec<Vec<String>> {
    let present: Vec<&str> = diagnosis.present.iter().map(|program| program.name).collect();
    let missing = diagnosis
        .missing
        .iter()
        .map(|program| format!("{} (Debian: {}; {})", program.name, program.package, program.purpose));
    let missing = missing.collect::<Vec<_>>().join(", ");
    let rows = [("programs", present.join(", ")), ("missing", missing)];
    let rows = rows.into_iter().filter(|(_, cell)| !cell.is_empty());
    rows.map(|(label, cell)| vec![label.to_owned(), cell]).collect()
}

/// The features and algorithms that only the simulator has, as a list with one item per line.
fn simulator_only_list(diagnosis: &Diagnosis, width: usize) -> String {
    let algorithms =
        format!("algorithms that no kernel here has: {}", simulator_only_algorithms(&diagnosis.backends).join(", "));
    let items = diagnosis.simulator_only.iter().copied().chain([algorithms.as_str()]);
    let lines = items.flat_map(|item| {
        let lines = wrapped(item, width - 4).into_iter().enumerate();
        lines.map(|(n, line)| format!("  {} {line}\n", if n == 0 { '-' } else { ' ' }))
    });
    lines.collect()
}

/// The algorithms that no kernel of this machine has.
fn simulator_only_algorithms(backends: &[BackendReport]) -> Vec<&'static str> {
    let has = |name: &str| {
        let has_one = |backend: &BackendReport| {
            backend.congestion.iter().any(|own| own == name) || backend.programs.contains(&name)
        };
        backends.iter().any(has_one)
    };
    registry::entries().into_iter().map(|entry| entry.name).filter(|name| !has(name)).collect()
}

/// Lays out rows of cells. A column is as wide as its longest cell, but columns after the first have a common maximum;
/// longer cells are wrapped.
fn table(rows: &[Vec<String>], width: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let label_width = "cannot run".len() + COLUMN_GAP;
    let max_column_width = (width - label_width) / (columns - 1).max(1) - COLUMN_GAP;
    let longest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (1..columns).map(|column| longest(column).min(max_column_width)).collect();
    widths.insert(0, label_width - COLUMN_GAP);
    let mut text = String::new();
    for row in rows {
        let cells: Vec<Vec<String>> = row.iter().zip(&widths).map(|(cell, width)| wrapped(cell, *width)).collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let padded_cell = |(cell, width): (&Vec<String>, &usize)| {
                let width = width + COLUMN_GAP;
                format!("{:width$}", cell.get(line).map_or("", String::as_str))
            };
            let joined_line: String = cells.iter().zip(&widths).map(padded_cell).collect();
            let _ = writeln!(text, "{}", joined_line.trim_end());
        }
    }
    text
}

/// Lines of at most `width` characters, broken at blanks, or anywhere if a word is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut remaining: Vec<char> = word.chars().collect();
        while !remaining.is_empty() {
            let line = lines.last_mut().expect("there is a line");
            let used = line.chars().count();
            let space_left = width.saturating_sub(used + usize::from(used > 0));
            if remaining.len() > space_left && used > 0 {
                lines.push(String::new());
                continue;
            }
            if used > 0 {
                line.push(' ');
            }
            line.extend(remaining.drain(..remaining.len().min(space_left.max(1))));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Program;

    fn diagnosis() -> Diagnosis {
        let uml = BackendReport {
            name: "uml",
            release: Some("6.1.176".into()),
            program: Some("/usr/local/lib/somewhere/very/far/below/all/others/linux".into()),
            congestion: ["bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp"].map(str::to_owned).to_vec(),
            netem: true,
            tick_ms: Some(10.0),
            unsupported: vec!["MPTCP", "tunnels"],
            ..BackendReport::default()
        };
        let netns = BackendReport {
            name: "netns",
            unavailable_reason: Some("testbeds need root".into()),
            ..BackendReport::default()
        };
        let program = Program { name: "ethtool", package: "ethtool", purpose: "devices without offloads" };
        Diagnosis {
            backends: vec![uml, netns],
            missing: vec![program],
            simulator_only: &["rate traces"],
            install_command: Some("apt-get install ethtool".into()),
            ..Diagnosis::default()
        }
    }

    #[test]
    fn lines_are_no_wider_than_the_terminal_and_keep_every_word() {
        for width in [60, 80, 140] {
            let text = report(&diagnosis(), width);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width, "{widest} columns of {width}\n{text}");
            for word in ["6.1.176", "highspeed,", "root", "ethtool)", "traces", "copa", "10", "apt-get"] {
                assert!(text.contains(word) || text.contains(word.trim_end_matches(')')), "`{word}` is lost\n{text}");
            }
        }
        assert!(report(&diagnosis(), 140).lines().count() < report(&diagnosis(), 60).lines().count());
    }

    #[test]
    fn text_is_broken_at_blanks_and_within_words_only_if_necessary() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("a /very/long/path", 6), ["a", "/very/", "long/p", "ath"]);
        assert_eq!(wrapped("", 6), [""]);
    }

    #[test]
    fn algorithms_of_no_kernel_are_listed_as_simulator_only() {
        let algorithms = simulator_only_algorithms(&diagnosis().backends);
        assert!(algorithms.contains(&"copa") && !algorithms.contains(&"cubic"), "{algorithms:?}");
    }
}
