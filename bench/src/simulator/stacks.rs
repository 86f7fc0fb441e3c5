//! `cargo xtask bench stacks`: packets per CPU second of each transport stack over the same links, compared with Ropewalk's
//! TCP in the same round.

use super::quartiles;
use super::workloads::{System, Workload};
use crate::shell;
use std::fmt::Write;

/// The stacks, the first of which is what the others are compared with.
const STACKS: &[Workload] = &[
    stack("TCP", &[]),
    stack("QUIC", &["flow.flow.kind=mpquic"]),
    stack("quinn", &["flow.flow.kind=hosted", "flow.flow.stack=quinn"]),
    stack("quinn, TLS", &["flow.flow.kind=hosted", "flow.flow.stack={ name = \"quinn\", tls = \"on\" }"]),
    stack("noq", &["flow.flow.kind=hosted", "flow.flow.stack=noq"]),
    stack("noq, TLS", &["flow.flow.kind=hosted", "flow.flow.stack={ name = \"noq\", tls = \"on\" }"]),
];

const fn stack(name: &'static str, settings: &'static [&'static str]) -> Workload {
    Workload { name, scenario: "stacks", settings, flows: None }
}

/// Measures and prints.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let rounds = match options {
        [] => 5,
        ["--runs", count] => count.parse().ok().filter(|count| *count > 0).ok_or("--runs needs a number above zero")?,
        _ => return Err("bench stacks has the option --runs N".to_owned()),
    };
    let folder = shell::release_folder()?;
    let program = System { name: "stacks".to_owned(), program: folder.join("ropewalk-stacks"), is_ropewalk: true };
    let speed = |stack| program.run(stack, &folder).map(|row| row.delivered / row.cpu_s);
    let round = |_| STACKS.iter().map(speed).collect::<Result<Vec<f64>, String>>();
    shell::print(&table(&(0..rounds).map(round).collect::<Result<Vec<_>, _>>()?))
}

/// The table of rounds, each with the speed of every stack.
fn table(rounds: &[Vec<f64>]) -> String {
    let columns = ["packets/CPU s", "times TCP", "1st quartile", "3rd quartile"];
    let mut lines = format!("{:<12}", "stack");
    columns.iter().for_each(|column| write!(lines, "{column:>15}").expect("a string takes it"));
    for (index, stack) in STACKS.iter().enumerate() {
        let [_, speed, _] = quartiles(rounds.iter().map(|round| round[index]).collect());
        let [low, median, high] = quartiles(rounds.iter().map(|round| round[index] / round[0]).collect());
        write!(lines, "\n{:<12}{speed:>15.0}{median:>15.2}{low:>15.2}{high:>15.2}", stack.name)
            .expect("a string takes it");
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was half as fast in the second round.
        let rounds = [vec![4e5, 2e5, 1e5, 1e5, 1e5, 1e5], vec![2e5, 1e5, 5e4, 5e4, 5e4, 5e4]];
        let table = table(&rounds);
        let row: Vec<_> = table.lines().nth(2).expect("QUIC's").split_whitespace().collect();
        assert_eq!(row, ["QUIC", "150000", "0.50", "0.50", "0.50"]);
        assert_eq!(table.lines().count(), 1 + STACKS.len());
        assert!(run(&["--runs", "0"]).is_err() && run(&["--fast"]).is_err());
    }
}
