//! Connections of quinn and noq in scenarios: what they carry, that runs repeat, and what is refused.

use record::Run;
use std::path::Path;
use std::process::Command;
use std::sync::Once;

/// Two paths with 40 ms of RTT and queues of a bandwidth-delay product, and a flow over the first or both.
fn scenario(flow: &str, link: &str, seconds: u64) -> String {
    format!(
        r#"
        name = "stacks"
        duration = "{seconds}s"
        [[path]]
        name = "fast"
        rate = "20mbit"
        delay = "20ms"
        queue = {{ limit = "100kB" }}
        {link}
        [[path]]
        name = "slow"
        rate = "10mbit"
        delay = "20ms"
        queue = {{ limit = "50kB" }}
        [[flow]]
        name = "flow"
        kind = "hosted"
        {flow}
        "#
    )
}

fn try_run(text: &str, seed: u64) -> Result<Run, String> {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| stacks::register().expect("the names are free"));
    let scenario = scenario::parse("TEST", text, Path::new(""), &scenario::Overrides::default());
    let scenario = scenario.map_err(|error| error.to_string())?;
    sim::run(&scenario.cells[0].experiment, seed).map_err(|error| error.to_string())
}

fn run(text: &str) -> Run {
    try_run(text, 1).expect("it runs")
}

/// Why the flow's connection was lost; empty if it was not.
fn stack_error(run: &Run) -> &str {
    run.flows[0].stack.as_ref().map_or("", |stack| stack.stack_error.as_str())
}

/// Runs a transfer of `bytes`, which must arrive.
fn transfer(flow: &str, link: &str, bytes: u64) -> Run {
    let run = run(&scenario(&format!("{flow}\nsize = \"{bytes}b\""), link, 60));
    assert_eq!((run.flows[0].delivered_bytes, stack_error(&run)), (bytes, ""), "{flow}");
    assert!(run.flows[0].completion_s.is_some());
    run
}

const ONE: &str = "path = \"fast\"";
const TWO: &str = "paths = [\"fast\", \"slow\"]";

fn of(stack: &str, congestion: &str, paths: &str) -> String {
    format!("stack = \"{stack}\"\ncongestion = \"{congestion}\"\n{paths}")
}

#[test]
fn what_is_sent_arrives_with_and_without_tls_and_losses() {
    for stack in ["quinn", "noq"] {
        for tls in ["off", "on"] {
            for link in ["", "loss = \"2%\""] {
                let flow = format!("stack = {{ name = \"{stack}\", tls = \"{tls}\" }}\n{ONE}");
                transfer(&flow, link, 1_000_000);
            }
        }
    }
}

/// More requests at once than a stack lets a peer open streams (100): the others follow as streams end. A request takes a round
/// trip of 40 ms, and one more for the handshake.
#[test]
fn every_request_has_its_answer_however_many_are_under_way() {
    for (stack, paths) in [("quinn", ONE), ("noq", TWO)] {
        for (streams, link) in [(6, ""), (150, ""), (150, "loss = \"2%\"")] {
            let requests = format!("requests = {{ size = \"5kB\", think = \"1000s\", streams = {streams} }}");
            let run = run(&scenario(&format!("{}\n{requests}", of(stack, "cubic", paths)), link, 20));
            let requests = run.flows[0].requests.as_ref().expect("a flow of requests");
            assert_eq!((requests.requests, run.flows[0].delivered_bytes), (streams, streams * 5000), "{stack} {link}");
            assert!(requests.response_time_ms.min >= 80.0, "{stack}: {:?}", requests.response_time_ms);
            assert_eq!(stack_error(&run), "");
        }
    }
}

/// An answer of 5 kB is within the first window of 12 kB: a round trip of 40 ms, and 2 ms for its bytes at 20 Mbit/s. noq paces
/// it by 1.25 windows per RTT, which takes 13.3 ms more. A percentile may be 1.6 % too large.
#[test]
fn a_client_thinks_between_its_requests() {
    for stack in ["quinn", "noq"] {
        let requests = "requests = { size = \"5kB\", think = \"1s\", streams = 2 }";
        let run = run(&scenario(&format!("{}\n{requests}", of(stack, "cubic", ONE)), "", 10));
        let requests = run.flows[0].requests.as_ref().expect("a flow of requests");
        assert_eq!(requests.requests, 2 * 10, "{stack}");
        assert!((42.0..56.5).contains(&requests.response_time_ms.p50), "{stack}: {:?}", requests.response_time_ms);
    }
}

/// 40 ms at 20 Mbit/s are 67 packets. Until the window is as large, slow start has to double ten packets thrice.
#[test]
fn a_connection_fills_its_link() {
    for (stack, congestion) in [("quinn", "cubic"), ("quinn", "own:newreno"), ("noq", "reno"), ("noq", "bbr3-draft")] {
        let run = run(&scenario(&of(stack, congestion, ONE), "", 10));
        // 1472 of 1500 bytes are UDP payload, of which headers and tag of QUIC take some more.
        let limit = 20.0 * 1472.0 / 1500.0;
        let goodput = run.flows[0].goodput_mbps;
        assert!(goodput < limit && goodput > 0.85 * limit, "{stack} {congestion}: {goodput} Mbit/s");
    }
}

#[test]
fn two_paths_carry_more_than_one() {
    for congestion in ["lia", "olia", "own:cubic", "bbr3-draft"] {
        let run = run(&scenario(&of("noq", congestion, TWO), "", 10));
        assert!(run.flows[0].goodput_mbps > 20.0, "{congestion}: {} Mbit/s", run.flows[0].goodput_mbps);
        assert!(run.subflows.iter().all(|subflow| subflow.sent_packets > 3000), "{congestion}: {:?}", run.subflows);
    }
}

#[test]
fn marks_reduce_the_window_without_a_loss() {
    for stack in ["quinn", "noq"] {
        let text = scenario(&of(stack, "cubic", ONE), "", 10).replace(
            "queue = { limit = \"100kB\" }",
            "queue = { discipline = \"codel\", limit = \"10MB\", ecn = true }",
        );
        let run = run(&text);
        let path = &run.paths[0];
        assert!(path.marked_packets > 0 && path.lost_packets == 0, "{stack}: {path:?}");
        assert!(run.flows[0].goodput_mbps > 15.0, "{stack}");
    }
}

/// Losses, a handshake, and what a controller draws: BBRv3's draft has random times. TLS draws keys, but neither times nor
/// sizes depend on them.
#[test]
fn two_runs_are_the_same() {
    for (flow, seconds) in [
        (of("quinn", "own:bbr", ONE), 5),
        (of("quinn", "cubic", ONE), 5),
        (of("noq", "own:cubic", ONE), 5),
        (of("noq", "bbr3-draft", TWO), 5),
        (of("noq", "lia", TWO), 5),
        (format!("stack = {{ name = \"quinn\", tls = \"on\" }}\n{ONE}"), 5),
        (format!("stack = {{ name = \"noq\", tls = \"on\" }}\n{TWO}"), 5),
    ] {
        let text = scenario(&flow, "loss = \"1%\"", seconds);
        let [first, second, other] = [1, 1, 2].map(|seed| try_run(&text, seed).expect("it runs").digest);
        assert_eq!(first, second, "{flow}");
        assert_ne!(first, other, "{flow}");
    }
}

/// Every algorithm of the registry that the stack can carry out.
#[test]
fn algorithms_serve_the_stacks_or_are_refused_with_a_sentence() {
    for (stack, paths, refused) in [("quinn", ONE, 8), ("noq", TWO, 2)] {
        let runs = control::registry::REGISTRY.iter().map(|entry| {
            let flow = format!("{}\nsize = \"500000b\"", of(stack, entry.name, paths));
            try_run(&scenario(&flow, "", 60), 1)
        });
        let (served, errors): (Vec<_>, Vec<_>) = runs.partition(Result::is_ok);
        assert_eq!(errors.len(), refused, "{stack}: {errors:?}");
        assert!(errors.iter().all(|error| {
            error.as_ref().is_err_and(|error| error.contains(" sets a pacing rate") || error.contains(" needs the "))
        }));
        for run in served.iter().flatten() {
            assert_eq!(run.flows[0].delivered_bytes, 500_000, "{stack} {}", run.flows[0].congestion_control);
        }
    }
}

#[test]
fn a_dead_link_ends_the_connection_with_a_reason() {
    for stack in ["quinn", "noq"] {
        let run = run(&scenario(&of(stack, "own:cubic", ONE), "loss = \"100%\"", 100));
        assert_eq!((stack_error(&run), run.flows[0].delivered_bytes), ("timed out", 0), "{stack}");
    }
}

/// An hour there and one back for the handshake, and another one for the data, in one packet: more are paced.
#[test]
fn a_long_path_takes_an_initial_rtt() {
    for stack in ["quinn", "noq"] {
        let flow = format!(
            "stack = {{ name = \"{stack}\", initial_rtt_s = 7200, idle_timeout_s = 0 }}\n{ONE}\nsize = \"1000b\""
        );
        let text = scenario(&flow, "", 20_000).replacen("delay = \"20ms\"", "delay = \"3600s\"", 1);
        let completion = run(&text).flows[0].completion_s.expect("it is complete");
        assert_eq!(completion.round(), 3.0 * 3600.0, "{stack}");
    }
}

#[test]
fn what_a_stack_does_not_have_is_refused_with_a_sentence() {
    let refusal = |flow: String| try_run(&scenario(&flow, "", 1), 1).expect_err("refused");
    assert_eq!(
        refusal(of("quinn", "own:vegas", ONE)),
        "flow flow: quinn has no `own:vegas`; there are: own:cubic, own:newreno, own:bbr"
    );
    assert_eq!(refusal(of("quinn", "bbr3", ONE)), "flow flow: `bbr3` sets a pacing rate, which quinn 0.11 ignores");
    assert!(refusal(of("noq", "own:bbr3", ONE)).contains("no two runs are the same; `unrepeatable = \"on\"`"));
    let allowed = format!("stack = {{ name = \"noq\", unrepeatable = \"on\" }}\ncongestion = \"own:bbr3\"\n{ONE}");
    transfer(&allowed, "", 1_000_000);
    assert_eq!(refusal(of("quinn", "cubic", TWO)), "flow flow: quinn has connections over at most 1 paths");
}

/// What the program prints.
fn program(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ropewalk-stacks")).args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_large_window_over_a_long_path_ends_connections_and_one_or_two_threads_give_the_same() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/long-fat.toml");
    let outputs = ["1", "2"].map(|jobs| program(&["run", scenario, "--no-store", "--jobs", jobs]));
    let digests = outputs.each_ref().map(|output| output.lines().find(|line| line.starts_with("digest")));
    assert!(digests[0].is_some() && digests[0] == digests[1], "{digests:?}");
    let words: Vec<&str> = outputs[0].split_whitespace().collect();
    assert!(words.join(" ").contains("too many gaps in stream buffer"), "{}", outputs[0]);
}

#[test]
fn coupled_windows_leave_a_connection_over_one_path_its_share() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/coupled.toml");
    let output = program(&["run", scenario, "--no-store", "--set", "duration=30s"]);
    let ratio = |congestion: &str| {
        let row = output.lines().find(|line| line.starts_with(congestion)).expect("a row for each");
        let goodput: Vec<f64> =
            row.split_whitespace().skip(1).map(|number| number.parse().expect("a number")).collect();
        goodput[0] / goodput[1]
    };
    // The bounds of the scenario's claims, which 120 s decide.
    for congestion in ["lia ", "olia ", "balia "] {
        assert!(ratio(congestion) < 1.25, "{output}");
    }
    for congestion in ["own:newreno ", "reno "] {
        assert!(ratio(congestion) > 1.5, "{output}");
    }
}

#[test]
fn its_program_lists_and_runs_them() {
    let list = program(&["list", "stacks"]);
    assert!(list.contains("quinn") && list.contains("noq"), "{list}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("stacks.toml");
    std::fs::write(&file, scenario(&of("noq", "lia", TWO), "", 2)).expect("it is written");
    let out = folder.path().join("results");
    let run = program(&["run", &file.display().to_string(), "--out", &out.display().to_string()]);
    assert!(run.contains("Mbit/s"), "{run}");
}
