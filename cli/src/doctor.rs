//! `ropewalk doctor`: what this machine can run. The facts are the lab's; here they are laid out.

use crate::kernel::AGENT;
use crate::{Failure, output};
use control::registry::REGISTRY;
use lab::{BackendReport, Diagnosis};
use std::fmt::Write;

/// The widest that lines may be: longer ones are tiring to read.
const WIDEST: usize = 140;
/// Between columns.
const GAP: usize = 2;

/// Outside of a checkout there is no command for it.
const ELSEWHERE: &str = "A kernel with virtual time and MPTCP comes with `cargo xtask kernel`
in Ropewalk's sources; ROPEWALK_LINUX names it.";

/// Looks at the machine and says what it is able to do.
pub(crate) fn doctor(json: bool) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|why| Failure::Environment(why.to_string()))?;
    let found = lab::doctor(&program.to_string_lossy(), AGENT);
    if json { output::json(&found) } else { output::print(&text(&found, output::width())) }
}

fn text(found: &Diagnosis, width: usize) -> String {
    let width = width.clamp(40, WIDEST);
    let mut text = table(&kernels(&found.backends), width);
    text.push('\n');
    text.push_str(&table(&programs(found), width));
    text.push_str("\n--on sim runs every scenario, on any machine. No kernel runs\n");
    text.push_str(&list(found, width));
    let _ = match &found.remedy {
        Some(line) => writeln!(text, "\nWhat is missing comes with\n\n    {line}"),
        None if !found.missing.is_empty() => Ok(()),
        None if found.backends.iter().any(|it| it.virtual_time && it.mptcp) => writeln!(text, "\nNothing is missing."),
        None => writeln!(text, "\n{ELSEWHERE}"),
    };
    text
}

/// A column a kernel.
fn kernels(backends: &[BackendReport]) -> Vec<Vec<String>> {
    let row = |label: &str, cell: &dyn Fn(&BackendReport) -> String| {
        std::iter::once(label.to_owned()).chain(backends.iter().map(cell)).collect()
    };
    let yes = |has: bool, or: &str| if has { "yes" } else { or }.to_owned();
    vec![
        row("", &|it| format!("--on {}", it.name)),
        row("runs", &|it| it.fault.as_ref().map_or_else(|| "yes".to_owned(), |why| format!("no: {why}"))),
        row("kernel", &|it| {
            it.release.as_ref().map_or_else(|| "none".to_owned(), |release| format!("Linux {release}"))
        }),
        row("program", &|it| it.program.clone().unwrap_or_else(|| own(it, "this machine's own, in namespaces"))),
        row("time", &|it| {
            own(it, if it.virtual_time { "virtual: load changes nothing" } else { "real: load disturbs" })
        }),
        row("algorithms", &|it| it.congestion.join(", ")),
        row("MPTCP", &|it| own(it, &yes(it.mptcp, "no"))),
        row("tunnels", &|it| own(it, &yes(it.tun, "no: no TUN devices"))),
        row("netem", &|it| own(it, &yes(it.netem, "no: a process of ours delays and loses"))),
        row("IPv6", &|it| own(it, &yes(it.ipv6, "no"))),
        row("tick", &|it| own(it, &it.tick_ms.map_or_else(|| "unknown".to_owned(), |tick| format!("{tick} ms")))),
        row("cannot run", &|it| own(it, &it.lacks.join(", "))),
    ]
}

/// Of a kernel that is there.
fn own(backend: &BackendReport, text: &str) -> String {
    if backend.release.is_some() { text.to_owned() } else { String::new() }
}

fn programs(found: &Diagnosis) -> Vec<Vec<String>> {
    let present: Vec<&str> = found.present.iter().map(|it| it.name).collect();
    let missing = found.missing.iter().map(|it| format!("{} (Debian: {}; {})", it.name, it.package, it.purpose));
    let missing = missing.collect::<Vec<_>>().join(", ");
    let rows = [("programs", present.join(", ")), ("missing", missing)];
    let shown = rows.into_iter().filter(|(_, cell)| !cell.is_empty());
    shown.map(|(label, cell)| vec![label.to_owned(), cell]).collect()
}

/// What is the simulator's alone, an item a line.
fn list(found: &Diagnosis, width: usize) -> String {
    let foreign = format!("algorithms that no kernel here has: {}", foreign(&found.backends).join(", "));
    let items = found.simulator_only.iter().copied().chain([foreign.as_str()]);
    let lines = items.flat_map(|item| {
        let lines = wrapped(item, width - 4).into_iter().enumerate();
        lines.map(|(n, line)| format!("  {} {line}\n", if n == 0 { '-' } else { ' ' }))
    });
    lines.collect()
}

/// The simulator's algorithms that no kernel here has.
fn foreign(backends: &[BackendReport]) -> Vec<&'static str> {
    let has = |name: &str| backends.iter().any(|it| it.congestion.iter().any(|own| own == name));
    REGISTRY.iter().map(|entry| entry.name).filter(|name| !has(name)).collect()
}

/// Columns as wide as their longest cells, or else all but the first equally wide; what does not fit goes to the next line.
fn table(rows: &[Vec<String>], width: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let label = "cannot run".len() + GAP;
    let most = (width - label) / (columns - 1).max(1) - GAP;
    let longest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (1..columns).map(|column| longest(column).min(most)).collect();
    widths.insert(0, label - GAP);
    let mut text = String::new();
    for row in rows {
        let cells: Vec<Vec<String>> = row.iter().zip(&widths).map(|(cell, width)| wrapped(cell, *width)).collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let part = |(cell, width): (&Vec<String>, &usize)| {
                let width = width + GAP;
                format!("{:width$}", cell.get(line).map_or("", String::as_str))
            };
            let whole: String = cells.iter().zip(&widths).map(part).collect();
            let _ = writeln!(text, "{}", whole.trim_end());
        }
    }
    text
}

/// Lines of at most `width` characters, broken at blanks, or anywhere if a word is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let line = lines.last_mut().expect("there is a line");
            let used = line.chars().count();
            let room = width.saturating_sub(used + usize::from(used > 0));
            if rest.len() > room && used > 0 {
                lines.push(String::new());
                continue;
            }
            if used > 0 {
                line.push(' ');
            }
            line.extend(rest.drain(..rest.len().min(room.max(1))));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Program;

    fn found() -> Diagnosis {
        let uml = BackendReport {
            name: "uml",
            release: Some("6.1.176".into()),
            program: Some("/usr/local/lib/somewhere/very/far/below/all/others/linux".into()),
            congestion: ["bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp"].map(str::to_owned).to_vec(),
            netem: true,
            tick_ms: Some(10.0),
            lacks: vec!["MPTCP", "tunnels"],
            ..BackendReport::default()
        };
        let netns =
            BackendReport { name: "netns", fault: Some("test beds need root".into()), ..BackendReport::default() };
        let program = Program { name: "ethtool", package: "ethtool", purpose: "devices without offloads" };
        Diagnosis {
            backends: vec![uml, netns],
            missing: vec![program],
            simulator_only: &["rate traces"],
            remedy: Some("apt-get install ethtool".into()),
            ..Diagnosis::default()
        }
    }

    #[test]
    fn every_line_is_as_wide_as_asked_and_no_word_is_lost() {
        for width in [60, 80, 140] {
            let text = text(&found(), width);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width, "{widest} columns of {width}\n{text}");
            for word in ["6.1.176", "highspeed,", "root", "ethtool)", "traces", "copa", "10", "apt-get"] {
                assert!(text.contains(word) || text.contains(word.trim_end_matches(')')), "`{word}` is lost\n{text}");
            }
        }
        assert!(text(&found(), 140).lines().count() < text(&found(), 60).lines().count());
    }

    #[test]
    fn text_is_broken_at_blanks_and_words_only_if_they_must_be() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("a /very/long/path", 6), ["a", "/very/", "long/p", "ath"]);
        assert_eq!(wrapped("", 6), [""]);
    }

    #[test]
    fn what_no_kernel_has_is_the_simulators_alone() {
        let foreign = foreign(&found().backends);
        assert!(foreign.contains(&"copa") && !foreign.contains(&"cubic"), "{foreign:?}");
    }
}
