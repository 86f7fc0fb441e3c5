//! The shipped comparison with Linux keeps what it has reached. docs/evidence/validation/linux-6.1.md names the cells that
//! deviate, and why.

use crate::program::{folder, ropewalk};
use std::path::Path;

/// The number before (-1) or after (1) these words.
fn number(text: &str, words: &str, side: isize) -> f64 {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, after) = text.split_once(words).unwrap_or_else(|| panic!("no {words:?} in:\n{text}"));
    let word = if side < 0 { before.split_whitespace().next_back() } else { after.split_whitespace().next() };
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{word:?} beside {words:?}"))
}

#[test]
fn every_algorithm_of_linux_stays_as_near_to_linux_as_it_is() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/validation/kernel.toml");
    let out = folder("validation").join("out").display().to_string();
    let run = ropewalk(&["run", &scenario.display().to_string(), "-q", "--set", "repetitions=1", "--out", &out]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let text = run.stdout;
    let [within_5, within_15] = ["within 5 %", "within 15 %"].map(|what| number(&text, what, -1));
    let trajectory_error = number(&text, "median |cwnd trajectory error|", 1);
    println!("{within_5} of 102 within 5 %, {within_15} within 15 %, median trajectory error {trajectory_error} %");
    assert_eq!(number(&text, "values,", -1), 102.0, "seventeen algorithms in six situations");
    // What is reached with the first seed, which is the same on every machine. (The goal is 92 and 102.)
    assert!(within_5 >= 86.0 && within_15 >= 96.0 && trajectory_error < 8.0);
}

/// Starts within a second, as a kernel's are: in which order the first packets meet decides for some cells.
const DRAWN: [&str; 4] = ["--set", "flow.mptcp.start_within=1s", "--set", "repetitions=5"];

#[test]
fn upstream_mptcp_stays_as_near_to_linux_as_it_is() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/validation/mptcp.toml");
    let out = folder("validation-mptcp").join("out").display().to_string();
    let run = ropewalk(&[&["run", &scenario.display().to_string(), "-q", "--out", &out], &DRAWN[..]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(number(&run.stdout, "values,", -1), 8.0);
    assert!(number(&run.stdout, "within 5 %", -1) >= 7.0, "{}", run.stdout);
    assert!(number(&run.stdout, "median |error|", 1) < 1.0, "{}", run.stdout);
    // The other: Reno, where the slow path has a sixteenth of the rate; the kernel's three runs have 52 to 70 Mbit/s, ours
    // 77 to 79.
    let row = run.stdout.lines().find(|line| line.starts_with("reno")).expect("a row for the algorithm");
    let reno = row.split_whitespace().nth(2).expect("the second case").trim_end_matches('‡');
    let reno: f64 = reno.parse().expect("a number");
    assert!(reno / 62.7 < 1.26, "{}", run.stdout);
}

#[test]
fn upstream_mptcp_over_paths_with_losses_stays_as_near_to_linux_6_1_as_it_is() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/validation/mptcp-loss.toml");
    let out = folder("validation-mptcp-loss").join("out").display().to_string();
    let run = ropewalk(&["run", &scenario.display().to_string(), "-q", "--out", &out]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(number(&run.stdout, "values,", -1), 5.0);
    // Where both lose the simulator is 5 % high, and 9 % with jitter. The kernel's intervals of 95 % are up to 5 % wide.
    assert!(number(&run.stdout, "within 15 %", -1) >= 5.0, "{}", run.stdout);
    assert!(number(&run.stdout, "median |error|", 1) < 3.0, "{}", run.stdout);
}

/// Linux 6.1's kept runs, where the send buffer is as large as the largest subflow's; with the sum of them the worst cell
/// misses by 107 %. The worst are Reno and CUBIC over 80 and 5 Mbit/s, where both have two outcomes, at the kernel and here.
#[test]
fn upstream_mptcp_with_the_send_buffer_of_linux_6_1_stays_as_near_to_it_as_it_is() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/validation");
    let [scenario, kernel] = ["mptcp.toml", "mptcp-6.1"].map(|name| scenarios.join(name).display().to_string());
    let [out, page] = ["out", "page.html"].map(|name| folder("validation-mptcp-6.1").join(name).display().to_string());
    let host = ["--set", "host.mptcp_send_buffer=largest", "--set", "host.tick=10ms"];
    let run = ropewalk(&[&["run", &scenario, "-q", "--out", &out], &host[..], &DRAWN[..]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let compared = ropewalk(&["compare", &out, &kernel, "--out", &page]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    let [median, worst] = ["median |error|", "worst"].map(|words| number(&compared.stdout, words, 1));
    assert!(median < 3.0 && worst < 11.0, "{}", compared.stdout);
}
