//! The tables of docs/explanation/algorithm.md.

use super::results::{Cell, Results};
use crate::shell;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// The scenario of the questions.
const QUESTIONS: &str = "scenarios/studies/rfc9743.toml";

/// A marked table of the page.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The studies from which it is made.
    pub(super) studies: &'static [&'static str],
    pub(super) make: fn(&Results) -> Result<String, String>,
}

pub(super) const TABLES: &[Table] = &[
    Table { name: "verdicts", studies: &["evaluate"], make: |results| lines(results, "evaluate", is_count) },
    Table {
        name: "algorithms",
        studies: &["evaluate"],
        make: |results| lines(results, "evaluate", |line| !is_count(line)),
    },
    Table { name: "questions", studies: &["evaluate"], make: questions },
    Table { name: "worse", studies: &["evaluate"], make: worse },
    Table { name: "parts", studies: &["parts"], make: |results| lines(results, "parts", |_| true) },
    Table { name: "worlds", studies: &["worlds"], make: worlds },
    Table { name: "open-question", studies: &["open-question"], make: modes },
    Table { name: "inner-flows", studies: &["open-question"], make: inner_flows },
    Table {
        name: "path-control",
        studies: &["path-control"],
        make: |results| {
            pivot(
                results,
                &[("path-control", 1, "", ""), ("path-control", 2, " (", ")"), ("path-control", 3, ", ", "")],
            )
        },
    },
    Table { name: "wide-area", studies: &["wide-area"], make: |results| pivot(results, &[("wide-area", 1, "", "")]) },
    Table {
        name: "sparse",
        studies: &["wide-area"],
        make: |results| pivot(results, &[("wide-area", 2, "", ""), ("wide-area", 3, ", ", "")]),
    },
    Table {
        name: "ablation",
        studies: &["ablation"],
        make: |results| pivot(results, &[("ablation", 1, "", ""), ("ablation", 2, ", ", "")]),
    },
    Table {
        name: "reordering",
        studies: &["reordering"],
        make: |results| pivot(results, &[("reordering", 1, "", "")]),
    },
    Table {
        name: "tunnel-and-cubic",
        studies: &["kernel-tunnel-and-cubic", "tunnel-and-cubic"],
        make: |results| two_flows(results, "kernel-tunnel-and-cubic", "tunnel-and-cubic"),
    },
    Table {
        name: "program",
        studies: &["kernel-program", "program"],
        make: |results| two_flows(results, "kernel-program", "program"),
    },
    Table {
        name: "kernel",
        studies: &["kernel", "sample"],
        make: |results| pivot(results, &[("kernel", 1, "", ""), ("sample", 1, " (", ")")]),
    },
];

/// Lines of the table that `ropewalk evaluate` prints for several algorithms, below its head.
fn lines(results: &Results, study: &str, is_wanted: impl Fn(&str) -> bool) -> Result<String, String> {
    let printed = results.printed(study)?;
    let table = printed.lines().filter(|line| line.starts_with('|'));
    let lines = table.enumerate().filter(|(number, line)| *number < 2 || is_wanted(line));
    Ok(lines.map(|(_, line)| format!("{line}\n")).collect())
}

/// Whether a line of that table counts verdicts.
fn is_count(line: &str) -> bool {
    ["| hold (", "| do not hold", "| not decided"].iter().any(|start| line.starts_with(start))
}

/// A Markdown table.
fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---".to_owned(); head.len()];
    [line(head), line(&rule)].into_iter().chain(rows.iter().map(|row| line(row))).collect()
}

fn owned<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The basis of a claim's verdict: the numbers behind the algorithm's name and "cubic", the ratio, and the bound.
#[derive(Debug, PartialEq)]
struct Numbers<'a> {
    proposed: &'a str,
    cubic: Option<&'a str>,
    ratio: Option<&'a str>,
    bound: String,
}

fn numbers(result: &Value) -> Numbers<'_> {
    let text = result["values"][0]["numbers"].as_str().unwrap_or_default();
    let between = |start, end: &[char]| {
        let (_, rest) = text.split_once(start)?;
        rest.split(end).next().map(str::trim)
    };
    let (name, of_algorithm) = text.split_once(' ').unwrap_or_default();
    let ratio = between("ratio ", &[',']);
    let bound = text.split_once("claimed ").map_or("", |(_, bound)| bound).replace(&format!(", or {name} "), ", or ");
    Numbers {
        proposed: of_algorithm.split([' ', ',']).next().unwrap_or_default(),
        cubic: between("over cubic ", &[':']),
        bound: if ratio.is_some() { format!("ratio {bound}") } else { bound },
        ratio,
    }
}

/// The claims of an algorithm's evaluation, with their verdicts.
fn claims(results: &Results, algorithm: &str) -> Result<Vec<Value>, String> {
    let claims = results.claims(&format!("evaluate/{algorithm}"))?;
    Ok(claims["results"].as_array().cloned().unwrap_or_default())
}

/// The questions of RFC 9743 with the numbers of `discern` and of CUBIC.
fn questions(results: &Results) -> Result<String, String> {
    let scenario =
        fs::read_to_string(shell::root().join(QUESTIONS)).map_err(|error| format!("{QUESTIONS}: {error}"))?;
    let (discern, cubic) = (claims(results, "discern")?, claims(results, "cubic")?);
    let row = |(own, cubic): (&Value, &Value)| {
        let (says, own_numbers) = (text(own, "says"), numbers(own));
        vec![
            text(own, "source").trim_start_matches("RFC 9743, section ").to_owned(),
            says.to_owned(),
            match text(own, "setting").strip_prefix("case ") {
                Some(case) => format!("`{case}`"),
                None => format!("{} {}", cases(&scenario, says), text(own, "setting")).trim_end().to_owned(),
            },
            own_numbers.bound,
            own_numbers.proposed.to_owned(),
            own_numbers.cubic.unwrap_or(numbers(cubic).proposed).to_owned(),
            format!("{} {}", own_numbers.ratio.unwrap_or("–"), text(own, "verdict").replace('_', " ")),
        ]
    };
    let rows: Vec<Vec<String>> = discern.iter().zip(&cubic).map(row).collect();
    Ok(markdown(&owned(["section", "question", "case", "bound", "`discern`", "CUBIC", "ratio, verdict"]), &rows))
}

/// The questions in which `discern` is worse by a twentieth than one of the others, whose number is bold.
fn worse(results: &Results) -> Result<String, String> {
    let all = ["discern", "cubic", "bbr-path", "bbr3-draft"].map(|name| claims(results, name));
    let [discern, cubic, bbr_path, bbr3_draft] = all;
    let (discern, others) = (discern?, [cubic?, bbr_path?, bbr3_draft?]);
    let row = |(index, own): (usize, &Value)| {
        let Numbers { proposed, bound, .. } = numbers(own);
        let value: f64 = proposed.parse().ok()?;
        let is_better =
            |other: f64| if bound.contains("at least") { other > 1.05 * value } else { other < value / 1.05 };
        let others = others.iter().map(|claims| numbers(claims.get(index).unwrap_or(&Value::Null)).proposed);
        let cells: Vec<String> = others
            .map(|other| if other.parse().is_ok_and(is_better) { format!("**{other}**") } else { other.to_owned() })
            .collect();
        let name = [text(own, "says"), text(own, "setting")].join("; ").trim_end_matches("; ").to_owned();
        cells.iter().any(|cell| cell.starts_with('*')).then(|| [vec![name, proposed.to_owned()], cells].concat())
    };
    let rows: Vec<Vec<String>> = discern.iter().enumerate().filter_map(row).collect();
    Ok(markdown(&owned(["question", "`discern`", "CUBIC", "`bbr-path`", "`bbr3-draft`"]), &rows))
}

/// The cases of a claim of a scenario's file.
fn cases(scenario: &str, says: &str) -> String {
    let claim = scenario.split_once(&format!("says = \"{says}\"")).map_or("", |(_, claim)| claim);
    let list = claim.split_once("case = [").and_then(|(_, list)| list.split(']').next());
    format!("`{}`", list.unwrap_or_default().replace('"', ""))
}

/// Shares of the drawn worlds that pass, in percent.
fn worlds(results: &Results) -> Result<String, String> {
    let percent =
        |value: &Value| value["share"].as_f64().map_or(String::new(), |share| format!("{:.1}", 100.0 * share));
    let printed = results.printed("worlds")?;
    let documents = serde_json::Deserializer::from_str(&printed).into_iter();
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().map_err(|error| format!("worlds: {error}"))?;
    let row = |document: &Value| {
        let measures = document["measures"].as_array().into_iter().flatten().map(|measure| percent(&measure["all"]));
        let start = [format!("`{}`", text(document, "algorithm")), percent(&document["worlds"])];
        start.into_iter().chain(measures).collect()
    };
    let rows: Vec<Vec<String>> = documents.iter().map(row).collect();
    Ok(markdown(&owned(["algorithm", "everything", "others keep", "own losses", "queue", "goodput"]), &rows))
}

/// The goal of an algorithm's goodput in the open question, as a share of the capacity of both paths.
const GOAL: f64 = 0.9;

/// The number of these cells at the goal, and the lowest value with its cell.
fn cells_at_goal(cells: &[&Cell]) -> [String; 2] {
    let at_goal = cells.iter().filter(|cell| cell.mean >= GOAL).count();
    let least = cells.iter().min_by(|a, b| a.mean.total_cmp(&b.mean));
    let least = least.map_or(String::new(), |cell| format!("{:.2} at {}", cell.mean, cell.row));
    [format!("{at_goal} of {}", cells.len()), least]
}

/// The cells at the goal in each mode.
fn modes(results: &Results) -> Result<String, String> {
    let cells = results.table("open-question", 1)?;
    let row = |panel: &str| {
        let of_mode: Vec<&Cell> = cells.iter().filter(|cell| cell.panel == panel).collect();
        let mut means: Vec<f64> = of_mode.iter().map(|cell| cell.mean).collect();
        means.sort_by(f64::total_cmp);
        let [at_goal, least] = cells_at_goal(&of_mode);
        vec![panel.trim_start_matches("case ").to_owned(), at_goal, format!("{:.2}", means[means.len() / 2]), least]
    };
    let rows: Vec<Vec<String>> = ordered(cells.iter().map(|cell| &cell.panel)).iter().map(|panel| row(panel)).collect();
    Ok(markdown(&owned(["mode", "cells at 0.90 or more", "median", "least"]), &rows))
}

/// The cells at the goal for each inner flow, through the tunnel without and with a relay.
fn inner_flows(results: &Results) -> Result<String, String> {
    let cells = results.table("open-question", 1)?;
    let row = |flow: &String| {
        let of_mode = |mode: &str| {
            let panel = format!("case {mode}");
            cells_at_goal(&cells.iter().filter(|cell| cell.panel == panel && cell.column == *flow).collect::<Vec<_>>())
        };
        [vec![flow.clone()], of_mode("ropewalk").to_vec(), of_mode("relay").to_vec()].concat()
    };
    let rows: Vec<Vec<String>> = ordered(cells.iter().map(|cell| &cell.column)).iter().map(row).collect();
    Ok(markdown(&owned(["inner flow", "transparent", "least", "with a relay", "least"]), &rows))
}

/// The distinct values of a sequence, in the order of their first occurrence.
fn ordered<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.fold(Vec::new(), |mut seen, name| {
        if !seen.contains(name) {
            seen.push(name.clone());
        }
        seen
    })
}

/// The rates of a flow under test and of the flow next to it, on a kernel and, in brackets, simulated.
fn two_flows(results: &Results, kernel: &str, simulated: &str) -> Result<String, String> {
    pivot(results, &[(kernel, 1, "", ""), (kernel, 2, ", ", ""), (simulated, 1, " (", ""), (simulated, 2, ", ", ")")])
}

/// Rows and columns of reports' tables. A cell has the value of each table, with its prefix and suffix.
fn pivot(results: &Results, sources: &[(&str, usize, &str, &str)]) -> Result<String, String> {
    let mut values: BTreeMap<(String, String), String> = BTreeMap::new();
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for (study, number, before, after) in sources {
        for cell in results.table(study, *number)? {
            let row = if cell.panel.is_empty() { cell.row } else { format!("{}, {}", cell.panel, cell.row) };
            rows.push(row.clone());
            columns.push(cell.column.clone());
            *values.entry((row, cell.column)).or_default() += &format!("{before}{}{after}", three_digits(cell.mean));
        }
    }
    let columns = ordered(columns.iter());
    let line = |row: &String| {
        let cells =
            columns.iter().map(|column| values.get(&(row.clone(), column.clone())).cloned().unwrap_or_default());
        std::iter::once(row.clone()).chain(cells).collect()
    };
    let head = [vec![String::new()], columns.clone()].concat();
    Ok(markdown(&head, &ordered(rows.iter()).iter().map(line).collect::<Vec<_>>()))
}

/// A number with three significant digits.
fn three_digits(value: f64) -> String {
    let before_the_point = if value.abs() < 1.0 { 0.0 } else { value.abs().log10().floor() + 1.0 };
    format!("{value:.*}", (3.0 - before_the_point).max(0.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_claim_are_read_from_its_text() {
        let text = "bbr3 0.516 over cubic 0.558 %: ratio 0.926, claimed at most 2, or bbr3 at most 2 %";
        let claim = serde_json::json!({ "values": [{ "numbers": text }] });
        let bound = "ratio at most 2, or at most 2 %".to_owned();
        let expected = Numbers { proposed: "0.516", cubic: Some("0.558 %"), ratio: Some("0.926"), bound };
        assert_eq!(numbers(&claim), expected);
        let claim = serde_json::json!({ "values": [{ "numbers": "bbr3 7, claimed at most 9" }] });
        assert_eq!(numbers(&claim), Numbers { proposed: "7", cubic: None, ratio: None, bound: "at most 9".into() });
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.926, 4.5, 45.04, 450.4, 4504.0].map(three_digits), ["0.926", "4.50", "45.0", "450", "4504"]);
    }
}
