//! `ropewalk kernel metrics`, read as Prometheus reads it.

use super::program::folder;
use super::{CONNECTION, Process, free, ropewalk, turn, with};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// The values of the series, by name and labels as written. Panics at what Prometheus's text format 0.0.4 does not allow:
/// a sample before its HELP and TYPE, a family in two places, a series twice, a name or value that is none.
fn read(text: &str) -> BTreeMap<String, f64> {
    let (mut families, mut series, mut current) = (BTreeSet::new(), BTreeMap::new(), String::new());
    assert!(text.ends_with('\n'), "{text}");
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, help] => {
                assert!(families.insert(name.to_owned()) && !help.is_empty() && !help.contains('\\'), "{line}");
                current = name.to_owned();
            }
            ["#", "TYPE", name, kind] => {
                assert!(
                    name == current && kind == if name.ends_with("_total") { "counter" } else { "gauge" },
                    "{line}"
                );
            }
            _ => {
                let (key, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = key.split_once('{').unwrap_or((key, "}"));
                assert!(name == current && is_name(name), "{line}");
                check_labels(labels, line);
                let value: f64 = value.parse().unwrap();
                assert!(value.is_finite() && value >= 0.0, "{line}");
                assert!(series.insert(key.to_owned(), value).is_none(), "twice: {line}");
            }
        }
    }
    series
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `name="value",...}`. No value here has a comma, a quote or a backslash.
fn check_labels(labels: &str, line: &str) {
    let labels = labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}"));
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (name, value) = label.split_once('=').unwrap_or_else(|| panic!("{line}"));
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        assert!(is_name(name) && value.is_some_and(|value| !value.contains(['"', '\\'])), "{line}");
    }
}

#[test]
fn connections_of_every_namespace_are_counted_and_each_is_shown_if_asked() {
    let Some(_turn) = turn() else { return };
    let Some(name) = free().last().copied() else { return };
    let namespace = format!("rw-{}-metrics", std::process::id());
    let ip = |arguments: &str| Command::new("ip").args(arguments.split_whitespace()).status().unwrap().success();
    assert!(ip(&format!("netns add {namespace}")) && ip(&format!("-n {namespace} link set lo up")));
    let number = fs::metadata(format!("/run/netns/{namespace}")).unwrap().ino();
    assert_eq!(with("load", &[name]).code, Some(0));
    let mut python = Command::new("ip");
    python.args(["netns", "exec", &namespace, "python3", "-c", CONNECTION, name]);
    let mut python = Process(python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    BufReader::new(python.0.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();

    let few = ropewalk(&["kernel", "metrics"]);
    let all = ropewalk(&["kernel", "metrics", "--per-connection"]);
    let none = ropewalk(&["kernel", "metrics", "--per-connection", "--limit", "0"]);
    let file = folder("kernel-metrics").join("ropewalk.prom");
    fs::write(&file, "earlier").unwrap();
    let written = ropewalk(&["kernel", "metrics", "--out", file.to_str().unwrap()]);
    drop(python);
    assert!(ip(&format!("netns del {namespace}")) && with("unload", &[name]).code == Some(0));

    let (few, all, none) = (read(&few.stdout), read(&all.stdout), read(&none.stdout));
    // What a lab's run may have at the same time comes on top.
    let of_program = format!("{{protocol=\"mptcp\",algorithm=\"{name}\"}}");
    assert!(few[&format!("ropewalk_kernel_connections{of_program}")] >= 1.0, "{few:?}");
    assert!(few[&format!("ropewalk_kernel_subflows{of_program}")] >= 1.0, "{few:?}");
    assert_eq!(few[&format!("ropewalk_kernel_program_loaded{{program=\"{name}\"}}")], 1.0);
    assert!(few.keys().any(|key| key.starts_with(&format!("ropewalk_kernel_program_info{{program=\"{name}\",id="))));
    assert!(few["ropewalk_kernel_namespaces{state=\"read\"}"] >= 2.0);
    assert!(few.keys().all(|key| !key.contains("127.0.0.1")), "{few:?}");
    let here = |key: &&String| key.contains(&format!("namespace=\"{number}\"")) && key.contains(&format!("\"{name}\""));
    let acked = all.iter().find(|(key, _)| key.starts_with("ropewalk_kernel_subflow_acknowledged") && here(key));
    // 100 kB by TCP, and a byte that TCP counts for the SYN.
    assert_eq!(acked.map(|(_, bytes)| *bytes), Some(100_001.0), "{all:?}");
    assert!(
        all.iter().any(|(key, share)| key.starts_with("ropewalk_kernel_subflow_share") && here(&key) && *share == 1.0)
    );
    assert!(none["ropewalk_kernel_subflows_left_out"] >= 2.0 && !none.keys().any(|key| here(&key)), "{none:?}");
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{}", written.stderr);
    assert!(read(&fs::read_to_string(&file).unwrap()).contains_key("ropewalk_kernel_namespaces{state=\"read\"}"));
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no other file is left");
}

#[test]
fn a_file_that_cannot_be_replaced_is_named() {
    let outcome = ropewalk(&["kernel", "metrics", "--out", "/no/such/folder/ropewalk.prom"]);
    assert_eq!(outcome.code, Some(4));
    assert!(outcome.stderr.starts_with("error: /no/such/folder/ropewalk.prom: "), "{}", outcome.stderr);
}
