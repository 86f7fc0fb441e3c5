//! Scripts of our own, each of which passes on Linux 6.18 too; and scripts that nobody would write.

#![expect(clippy::disallowed_methods, reason = "tests read files")]

use control::LinuxRelease;
use proptest::prelude::*;
use ropewalk_drill::{Options, Outcome, ScriptError, run};
use std::fs;
use std::path::PathBuf;
use units::Span;

fn options() -> Options {
    Options { congestion: None, tick: Span::from_millis(1), release: LinuxRelease::V6_1, timeline: false }
}

/// The shipped scripts with their names.
fn scripts() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| (path.display().to_string(), fs::read_to_string(path).expect("text"))).collect()
}

fn script(name: &str) -> String {
    let is_named = |path: &str| path.ends_with(&format!("/{name}.pkt"));
    scripts().into_iter().find(|(path, _)| is_named(path)).expect("shipped").1
}

fn outcome(text: &str) -> Outcome {
    run(text, &options()).expect("a script")
}

fn error(text: &str) -> ScriptError {
    run(text, &options()).expect_err("refused")
}

#[test]
fn the_shipped_scripts_pass() {
    for release in [LinuxRelease::V6_1, LinuxRelease::V6_12, LinuxRelease::V6_18] {
        for (name, text) in scripts() {
            let options = Options { release, ..options() };
            let outcome = run(&text, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(outcome.difference, None, "{name} {release:?}");
            assert!(outcome.packets > 2, "{name} {release:?}: {outcome:?}");
        }
    }
}

#[test]
fn the_first_difference_is_told_with_its_line() {
    let text = script("slow-start").replace("tcpi_snd_cwnd == 12", "tcpi_snd_cwnd == 13");
    let difference = outcome(&text).difference.expect("it differs");
    let line = 1 + text.lines().position(|line| line.contains("== 13")).expect("there is one");
    assert_eq!((difference.line, difference.found.as_str()), (line, "tcpi_snd_cwnd 12"));
    let shorter = script("slow-start").replace("> P. 14001:18001(4000)", "> P. 14001:17001(3000)");
    let difference = outcome(&shorter).difference.expect("it differs");
    assert_eq!(difference.expected, "P. 18001:22001(4000) ack 1 at 0.320000 s");
    assert_eq!(difference.found, "17001:18001(1000) at 0.310000 s");
    assert!(outcome(&script("timeout").replace("+.2~+.23", "+.3~+.33")).difference.is_some(), "too early");
    assert!(outcome(&script("timeout").replace("+.2~+.23", "+.1~+.11")).difference.is_some(), "too late");
}

/// The window of Linux 6.18 under BBR, which does not use the slow-start threshold.
#[test]
fn another_congestion_control_takes_the_same_script() {
    let bbr = Options { congestion: Some("bbr".into()), ..options() };
    let difference = run(&script("fast-retransmit"), &bbr).expect("a script").difference.expect("BBR is not Reno");
    assert!(difference.expected.contains("tcpi_snd_ssthresh == 5"), "{difference:?}");
    let unknown = Options { congestion: Some("cubik".into()), ..options() };
    let error = run(&script("fast-retransmit"), &unknown).expect_err("unknown");
    assert_eq!(error.message, "there is no congestion control `cubik`");
}

#[test]
fn the_timeline_has_packets_and_states() {
    let timeline = run(&script("slow-start"), &Options { timeline: true, ..options() }).expect("a script").timeline;
    assert!(timeline.iter().any(|line| line == "0.300000 < ack 2001"), "{timeline:#?}");
    assert!(
        timeline.iter().any(|line| line.starts_with("0.300000 Open cwnd 12 ssthresh infinite out 12")),
        "{timeline:#?}"
    );
}

#[test]
fn what_does_not_apply_is_refused_with_its_line() {
    let head = script("slow-start")
        .lines()
        .take_while(|line| !line.contains("write("))
        .fold(String::new(), |text, line| text + line + "\n");
    let line = head.lines().count() + 1;
    for (statement, message) in [
        ("+0 < . 1:1(0) ack 501 win 800", "byte 501 is not the first of a segment that was written"),
        ("+0 < . 1:501(500) ack 1 win 800", "data that is not whole segments is not supported"),
        ("0.1 < . 1:1(0) ack 1 win 800", "the event is before the one above"),
        ("+0 sendfile(4, 5, [0], 5) = 5", "sendfile() is not supported"),
        ("+0 > . 1:1(0) ack 1 <mptcp dss>", "the option `mptcp dss` is not supported"),
        ("+0 %{ assert tcpi_probes == 1 }%", "`tcpi_probes == 1` does not begin with a number or a known name"),
        ("+0 `ip link`", "a command within the script is not supported"),
    ] {
        let error = error(&format!("{head}{statement}\n"));
        assert_eq!((error.line, error.message.as_str()), (line, message));
    }
    assert_eq!(error("`tc qdisc show`\n").message, "the command `tc qdisc show` is not supported");
    assert_eq!(error("`sysctl -q net.ipv4.tcp_shrink=1`\n").message, "the sysctl `tcp_shrink` is not supported");
    assert_eq!(error("--so_filename=a\n0 socket() = 3\n").message, "the handshake is missing");
}

#[test]
fn sysctls_and_socket_options_set_up_the_host() {
    let probe = "+.2~+.23 > P. 3001:4001(1000) ack 1";
    let text = script("timeout");
    assert!(text.contains(probe));
    let without =
        format!("`../common/defaults.sh\nsysctl -q net.ipv4.tcp_early_retrans=0 net.ipv4.tcp_min_tso_segs=4`\n{text}");
    assert_eq!(outcome(&without).ignored, [(2, "tcp_min_tso_segs".to_owned())]);
    let difference = outcome(&without).difference.expect("no probe");
    assert!(difference.expected.contains("3001:4001(1000)"), "{difference:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        let _ = run(&text, &options());
    }

    /// A script whose bytes are changed, left out or doubled.
    #[test]
    fn no_damaged_script_makes_it_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[0-9a-zA-Z<>~+.:(){}%`\"/* \n]{0,3}"), 1..8),
    ) {
        let scripts = scripts();
        let mut text = which.get(&scripts).1.clone();
        for (at, replacement) in changes {
            let at = at.index(text.len());
            text.replace_range(at..at + 1, &replacement);
        }
        let _ = run(&text, &options());
    }
}
