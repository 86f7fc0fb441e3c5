//! Several errors of one file are told at once, and none that only follows from another.

use ropewalk_scenario::{Error, Overrides, parse};
use std::path::Path;

const GOOD: &str = r#"name = "good"
duration = "1s"

[[path]]
name = "one"
rate = "10mbit"
delay = "5ms"

[[path]]
name = "two"
rate = "10mbit"
delay = "5ms"

[[flow]]
name = "a"
path = "one"
congestion = "reno"

[[flow]]
name = "b"
path = "two"
congestion = "reno"

[[event]]
at = "0.5s"
path = "one"
rate = "1mbit"
"#;

/// Line and key of each error of the file with its text changed.
fn errors(changes: &[(&str, &str)]) -> Vec<(usize, String)> {
    let text = changes.iter().fold(GOOD.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    match parse("good.toml", &text, Path::new(""), &Overrides::default()) {
        Ok(_) => Vec::new(),
        Err(first) => {
            let shown = first.to_string();
            let all: Vec<&Error> = std::iter::once(&first).chain(first.others()).collect();
            assert!(all.iter().all(|error| shown.contains(error.message())), "{shown}");
            all.into_iter().map(|error| (error.line(), error.key().to_owned())).collect()
        }
    }
}

fn expected(errors: &[(usize, &str)]) -> Vec<(usize, String)> {
    errors.iter().map(|(line, key)| (*line, (*key).to_owned())).collect()
}

#[test]
fn values_and_keys_of_all_tables_are_told_at_once() {
    assert_eq!(errors(&[]), []);
    let changes = [("10mbit", "10mbps"), ("5ms", "5"), ("congestion", "congestoin"), ("at = \"0.5s\"\n", "")];
    let told = [(6, "path.one.rate"), (7, "path.one.delay"), (17, "flow.a.congestoin"), (24, "event.0.at")];
    assert_eq!(errors(&changes), expected(&told));
}

#[test]
fn names_that_are_not_there_are_told_at_once() {
    let changes = [("path = \"one\"", "path = \"on\""), ("path = \"two\"", "path = \"to\"")];
    assert_eq!(errors(&changes), expected(&[(16, "flow.a.path"), (21, "flow.b.path")]));
}

#[test]
fn what_follows_from_another_error_is_not_told() {
    // Without its name the second path is none that a flow could use; without the misspelt key its delay is missing.
    assert_eq!(errors(&[("name = \"two\"", "nam = \"two\"")]).len(), 1);
    assert_eq!(errors(&[("delay = \"5ms\"", "dealy = \"5ms\"")]), expected(&[(7, "path.one.dealy")]));
    // A flow without its congestion control is left out, and the event still means the same.
    let changes = [("congestion", "congestoin"), ("path = \"one\"\nrate", "path = \"on\"\nrate")];
    assert_eq!(errors(&changes), expected(&[(17, "flow.a.congestoin"), (26, "event.0.path")]));
}
