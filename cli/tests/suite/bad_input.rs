//! Bad input gets its exit code and a message that helps, and never a panic.

use std::path::Path;

use crate::program::{Outcome, folder, ropewalk, write};

/// Code, a phrase of the message, command line. `{dir}` is a folder of the test's own.
const CASES: &[(&str, i32, &str, &[&str])] = &[
    ("an unknown key", 3, "did you mean `delay`?", &["run", "{dir}/unknown-key.toml"]),
    ("a rate in mbps", 3, "mbit", &["run", "{dir}/mbps.toml"]),
    ("a negative rate", 3, "-100mbit", &["run", "{dir}/negative.toml"]),
    ("no paths", 3, "path", &["run", "{dir}/no-paths.toml"]),
    ("a sweep of a billion cells", 3, "1000000000", &["run", "{dir}/sweep.toml"]),
    ("what is not TOML", 3, "not TOML", &["run", "{dir}/not.toml"]),
    ("a misspelt scenario", 2, "did you mean `one-link`?", &["run", "onelink"]),
    ("a file that is not there", 3, "cannot read the scenario", &["run", "{dir}/none.toml"]),
    ("a folder for a file", 3, "cannot read the scenario", &["run", "{dir}"]),
    ("an unknown algorithm", 3, "did you mean `reno`?", &["run", "{dir}/algorithm.toml"]),
    (
        "an unknown algorithm in a --set",
        3,
        "list algorithms",
        &["run", "{dir}/good.toml", "--set", "flow.tcp.congestion=xyzzy"],
    ),
    ("an unknown scheduler", 3, "did you mean `packet-round-robin`?", &["run", "{dir}/scheduler.toml"]),
    ("uncoupled is no name of its own", 2, "runs uncoupled, once on each path", &["list", "algorithms", "uncoupled"]),
    ("a misspelt scheduler of an MPTCP flow", 3, "did you mean `blest`?", &["run", "{dir}/blesst.toml"]),
    ("a stack that the program lacks", 3, "this program has no stack `noq`", &["run", "{dir}/stack.toml"]),
    ("a wrong parameter of a scheduler", 3, "`ropewalk list schedulers blest`", &["run", "{dir}/lamda.toml"]),
    (
        "a scheduler's policy that is no model",
        3,
        "docs/reference/policies.md says what the file of `policy` may contain",
        &["run", "{dir}/blesst.toml", "--set", "flow.tcp.scheduler={ name = \"policy\", file = \"good.toml\" }"],
    ),
    ("a scheduler without what it decides by", 3, "leave out `congestion`", &["run", "{dir}/unwatched.toml"]),
    ("a tunnel that measures nothing", 3, "one of `roundrobin`, `packet-round-robin`", &["run", "{dir}/measured.toml"]),
    ("an algorithm's unknown parameter", 3, "no parameter `colour`", &["run", "{dir}/parameter.toml"]),
    ("a parameter out of its range", 3, "cannot be 7", &["run", "{dir}/range.toml"]),
    (
        "a policy without its file",
        3,
        "`file` is missing",
        &["run", "{dir}/good.toml", "--set", "flow.tcp.congestion=policy"],
    ),
    (
        "a policy that is no model",
        3,
        "docs/reference/policies.md says what the file of `policy` may contain",
        &["run", "{dir}/good.toml", "--set", "flow.tcp.congestion={ name = \"policy\", file = \"good.toml\" }"],
    ),
    ("a --set of an unknown key", 3, "speed", &["run", "{dir}/good.toml", "--set", "path.one.speed=1mbit"]),
    ("a table of what no result has", 3, "did you mean `goodput_mbps`?", &["run", "{dir}/value.toml"]),
    ("a comparison of windows without a baseline", 3, "baseline = ", &["run", "{dir}/no-baseline.toml"]),
    ("a figure of what no series has", 3, "did you mean `goodput_mbps`?", &["run", "{dir}/figure.toml"]),
    ("a baseline that is not there", 3, "not a results folder", &["run", "{dir}/good.toml", "--set", "baseline=none"]),
    (
        "an algorithm in capitals",
        3,
        "did you mean `reno`?",
        &["run", "{dir}/good.toml", "--set", "flow.tcp.congestion=RENO"],
    ),
    (
        "more samples than memory",
        3,
        "sample less often",
        &["run", "{dir}/good.toml", "--set", "sample=1us", "--set", "duration=100s"],
    ),
    ("a --set without =", 2, "KEY=VALUE", &["run", "{dir}/good.toml", "--set", "flow.tcp.congestion"]),
    ("measurements that are not there", 3, "none.json", &["probe", "--import", "{dir}/none.json"]),
    ("measurements of no known format", 3, "iperf3 (-J)", &["probe", "--import", "{dir}/not.toml"]),
    ("a probe without a server", 2, "HOST[:PORT]", &["probe"]),
    ("a probe with a short token", 2, "at least 16 characters", &["probe", "127.0.0.1", "--token", "short"]),
    ("a path without a source", 2, "NAME=ADDRESS", &["probe", "127.0.0.1", "--path", "lte="]),
    ("no jobs", 2, "--jobs", &["run", "{dir}/good.toml", "--jobs", "0"]),
    ("a seed that is no number", 2, "--seed", &["run", "{dir}/good.toml", "--seed", "-1"]),
    ("a scenario without fitted constants", 2, "has no [[fit]]", &["fit", "{dir}/good.toml"]),
    ("a fit to nothing", 2, "<FILE>", &["fit"]),
    ("a range without --to", 2, "--to", &["fit", "{dir}/good.toml", "--free", "path.a.rate=3mbit..60mbit"]),
    (
        "a range of two units",
        2,
        "different units",
        &["fit", "{dir}/good.toml", "--to", "{dir}/measured.json", "--free", "path.a.rate=3mbit..60ms"],
    ),
    ("a range in a file", 3, "is no range of quantities", &["run", "{dir}/free.toml"]),
    ("links without unknowns", 3, "has no unknown", &["fit", "{dir}/good.toml", "--to", "{dir}/measured.json"]),
    ("a measurement without a download", 3, "lacks the goodput", &["fit", "--to", "{dir}/measured.json"]),
    ("a budget of no time", 2, "expected a time", &["fit", "--to", "{dir}/measured.json", "--budget", "0s"]),
    ("a folder without a fit", 3, "fit.json", &["advise", "{dir}"]),
    ("advice for no tunnel's file", 3, "no [interface]", &["advise", "{dir}", "--tunnel", "{dir}/good.toml"]),
    ("a check of no advice", 2, "advice-throughput.json", &["advise", "{dir}", "--check", "{dir}/measured.json"]),
    (
        "a folder, and nothing stored",
        2,
        "'--no-store' cannot be used with '--out <DIR>'",
        &["run", "{dir}/good.toml", "--no-store", "--out", "{dir}/out"],
    ),
    (
        "a shard to merge, and nothing stored",
        2,
        "'--no-store' cannot be used with '--shard <I/N>'",
        &["run", "{dir}/good.toml", "--no-store", "--shard", "1/2"],
    ),
    (
        "packets to keep, and nothing stored",
        2,
        "'--no-store' cannot be used with '--capture'",
        &["run", "{dir}/good.toml", "--no-store", "--on", "netns", "--capture"],
    ),
    (
        "an evaluation's folder, and nothing stored",
        2,
        "'--no-store' cannot be used with '--out <DIR>'",
        &["evaluate", "reno", "--no-store", "--out", "{dir}/out"],
    ),
    (
        "a folder that cannot be written",
        4,
        "Not a directory",
        &["run", "{dir}/good.toml", "--out", "{dir}/good.toml/out"],
    ),
    ("a folder full of other things", 4, "choose another folder", &["run", "{dir}/good.toml", "--out", "{dir}"]),
    ("claims of a folder that is none", 4, "not a results folder", &["claims", "{dir}", "{dir}"]),
    ("claims of one folder", 2, "2 values required", &["claims", "{dir}"]),
    ("a report on a folder that is none", 4, "not a results folder", &["report", "{dir}"]),
    ("a comparison with nothing", 4, "not a results folder", &["compare", "{dir}", "{dir}/none"]),
    ("a folder without another to compare it with", 2, "of 3, c has no partner", &["compare", "a", "b", "c"]),
    ("a tunnel's misspelt key", 3, "did you mean `address`?", &["check", "{dir}/tunnel.toml"]),
    ("a list of hosts with a misspelt key", 3, "did you mean `name`?", &["fleet", "{dir}/hosts.toml"]),
    ("a list of hosts that is not there", 3, "cannot read the list of hosts", &["fleet", "{dir}/none.toml"]),
    ("a tunnel's file that is not there", 3, "cannot read the configuration", &["up", "{dir}/none.toml"]),
    ("a tunnel that is not up", 4, "no tunnel rw-none is up", &["show", "rw-none"]),
    ("a tunnel that is not up, by its file", 4, "no tunnel tunnel is up", &["down", "{dir}/tunnel.toml"]),
    ("a dump in JSON", 2, "cannot be used with", &["show", "rw-none", "dump", "--json"]),
    ("MPT's files that are not there", 3, "cannot read MPT's file", &["tunnel", "import-mpt", "{dir}/none"]),
    ("a private key that is none", 2, "44 characters of base64", &["pubkey"]),
    ("an unknown verb", 2, "unrecognized subcommand", &["walk"]),
    ("a script that is not there", 3, "cannot read", &["drill", "{dir}/none.pkt"]),
    ("a script with a typing error", 3, "bad.pkt:2: sokcet() is not supported", &["drill", "{dir}/bad.pkt"]),
    ("a script without a handshake", 3, "has the SYN of both ends", &["drill", "{dir}/no-handshake.pkt"]),
    (
        "an algorithm that no script can have",
        2,
        "did you mean `reno`?",
        &["drill", "{dir}/bad.pkt", "--congestion", "renno"],
    ),
    ("a misspelt scenario to explore", 2, "did you mean `one-link`?", &["explore", "onelink", "--no-browser"]),
    ("an unknown key to explore", 3, "did you mean `delay`?", &["explore", "{dir}/unknown-key.toml", "--no-browser"]),
    (
        "an unknown algorithm to explore",
        3,
        "did you mean `reno`?",
        &["explore", "{dir}/algorithm.toml", "--no-browser"],
    ),
    ("a port that is none", 2, "--port", &["explore", "one-link", "--port", "70000"]),
    ("an unknown list", 2, "algorithms", &["list", "paths"]),
    ("an unknown name in a list", 2, "did you mean `reno`?", &["list", "algorithms", "rena"]),
];

const GOOD: &str = r#"
name = "good"
duration = "1s"

[[path]]
name = "one"
rate = "10mbit"
delay = "5ms"

[[flow]]
name = "tcp"
path = "one"
congestion = "reno"
"#;

const TABLE: &str = r#"
[sweep]
"path.one.rate" = ["10mbit"]
"path.one.delay" = ["5ms"]

[[table]]
rows = "path.one.rate"
columns = "path.one.delay"
value = "goodput_mpbs"
"#;

#[test]
fn every_bad_input_gets_its_exit_code_and_a_message_that_helps() {
    let dir = folder("bad-input");
    write(&dir, "good.toml", GOOD);
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cc/policy/tests/models/by-path.onnx");
    let unwatched = format!(
        "[tunnel]\nmode = \"ropewalk\"\ncongestion = \"off\"\nscheduler = {{ name = \"policy\", file = \"{}\" }}\n\n[[flow]]",
        models.display()
    );
    let variants = [
        ("unknown-key.toml", "delay", "delai"),
        ("mbps.toml", "10mbit", "100mbps"),
        ("negative.toml", "10mbit", "-100mbit"),
        ("not.toml", "[[path]]", "[[path"),
        ("algorithm.toml", "\"reno\"", "\"renno\""),
        ("scheduler.toml", "[[flow]]", "[tunnel]\nkind = \"mpt-gre\"\nscheduler = \"packet-round-rubin\"\n\n[[flow]]"),
        ("measured.toml", "[[flow]]", "[tunnel]\nkind = \"mpt-gre\"\nscheduler = \"minrtt\"\n\n[[flow]]"),
        ("stack.toml", "path = \"one\"", "kind = \"hosted\"\nstack = \"noq\"\npath = \"one\""),
        ("unwatched.toml", "[[flow]]", &unwatched),
        ("blesst.toml", "path = \"one\"", "kind = \"mptcp\"\nscheduler = \"blesst\""),
        ("lamda.toml", "path = \"one\"", "kind = \"mptcp\"\nscheduler = { name = \"blest\", lamda = 1 }"),
        ("parameter.toml", "\"reno\"", "{ name = \"reno\", colour = \"red\" }"),
        ("range.toml", "\"reno\"", "{ name = \"cubic\", beta = 7 }"),
    ];
    for (name, valid, invalid) in variants {
        assert!(GOOD.contains(valid), "{name} changes nothing");
        write(&dir, name, &GOOD.replacen(valid, invalid, 1));
    }
    write(&dir, "bad.pkt", "// A script.\n0 sokcet(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    write(&dir, "no-handshake.pkt", "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    write(&dir, "hosts.toml", "[[server]]\nnmae = 'a'\nurl = 'http://192.0.2.1/'\n");
    write(&dir, "tunnel.toml", "[interface]\nadress = '10.77.0.1/24'\n");
    write(&dir, "no-paths.toml", &GOOD.replace("[[path]]\nname = \"one\"\nrate = \"10mbit\"\ndelay = \"5ms\"\n", ""));
    write(&dir, "value.toml", &format!("{GOOD}{TABLE}"));
    write(&dir, "free.toml", &format!("{GOOD}[free]\n\"path.one.rate\" = \"3mbit\"\n"));
    write(&dir, "measured.json", r#"{"version": 1, "paths": [{"name": "one"}]}"#);
    let table = TABLE.replace("goodput_mpbs", "cwnd_trajectory_error_percent");
    write(&dir, "no-baseline.toml", &format!("{GOOD}{table}"));
    let figure = "\n[[figure]]\nlines = \"path.one.rate\"\nvalue = \"goodput_mpbs\"\n";
    let [good, sweep] = [GOOD.replace("\"1s\"", "\"1s\"\nsample = \"100ms\""), TABLE.replace("mpbs", "mbps")];
    write(&dir, "figure.toml", &format!("{good}{sweep}{figure}"));
    write(&dir, "sweep.toml", &format!("{GOOD}{}", sweep_of(1000, 3)));
    let complaints: Vec<_> = CASES.iter().filter_map(|case| complaint(&dir.display().to_string(), *case)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_baseline_is_checked_before_anything_runs() {
    let dir = folder("bad-baseline");
    let [file, baseline, results] =
        ["good.toml", "baseline", "results"].map(|name| dir.join(name).display().to_string());
    write(&dir, "good.toml", GOOD);
    assert_eq!(ropewalk(&["run", &file, "--out", &baseline, "--quiet"]).code, Some(0));
    let assert_refused = |phrases: &[&str]| {
        let outcome = ropewalk(&["run", &file, "--out", &results]);
        let has_phrases = phrases.iter().all(|phrase| outcome.stderr.contains(phrase));
        assert!(outcome.code == Some(3) && has_phrases && !dir.join("results").exists(), "{outcome:?}");
    };
    let sweep = "\n[sweep]\n\"path.one.delay\" = [\"5ms\"]\n";
    write(&dir, "good.toml", &format!("baseline = \"baseline\"\n{GOOD}{sweep}"));
    assert_refused(&["none of the scenario's cells", "path.one.delay = 5ms", "good.toml:1"]);
    write(&dir, "good.toml", &format!("baseline = \"baseline\"\n{GOOD}"));
    std::fs::write(dir.join("baseline/flows.parquet"), "not a table").unwrap();
    assert_refused(&["flows.parquet is damaged", "good.toml:1"]);
}

fn complaint(dir: &str, (name, code, phrase, arguments): (&str, i32, &str, &[&str])) -> Option<String> {
    let arguments: Vec<_> = arguments.iter().map(|word| word.replace("{dir}", dir)).collect();
    let Outcome { code: exit_code, stdout, stderr } =
        ropewalk(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let is_as_expected =
        exit_code == Some(code) && stderr.contains(phrase) && !stderr.contains("panicked") && stdout.is_empty();
    (!is_as_expected).then(|| format!("{name}: exit {exit_code:?}, not {code} with \"{phrase}\"\n{stderr}{stdout}"))
}

/// `axes` swept keys with `values` values each.
fn sweep_of(values: usize, axes: usize) -> String {
    let keys = ["path.one.rate", "path.one.delay", "duration"];
    let unit = ["kbit", "us", "s"];
    let axis = |axis: usize| {
        let values: Vec<_> = (1..=values).map(|value| format!("\"{value}{}\"", unit[axis])).collect();
        format!("\"{}\" = [{}]\n", keys[axis], values.join(", "))
    };
    format!("\n[sweep]\n{}", (0..axes).map(axis).collect::<String>())
}

#[test]
fn no_document_of_a_stranger_sends_a_control_character_to_the_terminal() {
    let dir = folder("escapes");
    let escape = "\\u001b]0;PWN\\u0007\\u009b31m\\u202e";
    let scenario = "name = 'e'\nduration = '1s'\n";
    write(&dir, "key.toml", &format!("{scenario}\"{escape}\" = 3\n"));
    write(&dir, "name.toml", &format!("name = \"{escape}\"\nduration = '1s'\n"));
    write(&dir, "text.toml", &format!("{scenario}# \u{1b}]0;PWN\u{7}\nspeed = 3\n\u{9b}31m = 1\n"));
    write(&dir, "trace.toml", &format!("{scenario}[[path]]\nname = 'a'\ntrace = \"{escape}\"\n"));
    write(&dir, "bad.pkt", "// A script.\n0 sokcet(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    write(&dir, "no-handshake.pkt", "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    write(&dir, "tunnel.toml", &format!("[interface]\naddress = \"{escape}\"\n\"{escape}\" = 1\n"));
    std::fs::create_dir_all(dir.join("results")).unwrap();
    let manifest =
        format!("{{\"digest\": \"{escape}\", \"scenario\": \"{escape}\", \"complete\": false, \"{escape}\": 1}}");
    write(&dir, "results/manifest.json", &manifest);
    for line in [
        vec!["run", "{dir}/key.toml"],
        vec!["run", "{dir}/name.toml"],
        vec!["run", "{dir}/text.toml"],
        vec!["run", "{dir}/trace.toml"],
        vec!["check", "{dir}/tunnel.toml"],
        vec!["report", "{dir}/results"],
        vec!["merge", "{dir}/results", "--out", "{dir}/all"],
        vec!["run", "{dir}/\u{1b}]0;PWN\u{7}.toml"],
    ] {
        let words: Vec<_> = line.iter().map(|word| word.replace("{dir}", &dir.display().to_string())).collect();
        let outcome = ropewalk(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let text = format!("{}{}", outcome.stdout, outcome.stderr);
        let obeyed = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
        assert!(!text.is_empty() && !text.contains(obeyed), "{line:?}: {text:?}");
    }
}
