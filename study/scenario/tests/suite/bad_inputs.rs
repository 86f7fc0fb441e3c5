//! A fault in a scenario is reported with its line, its key and a remedy.

use crate::common::error;
use ropewalk_scenario::{Error, Overrides, Scenario};
use std::path::Path;

/// A scenario that reads; the lines of a bad one are put behind, or in the place of, its own.
pub(crate) const HEAD: &str = "name = \"x\"\nduration = \"10s\"\n";
pub(crate) const PATH: &str = "[[path]]\nname = \"wire\"\nrate = \"100mbit\"\ndelay = \"10ms\"\n";
pub(crate) const FLOW: &str = "[[flow]]\nname = \"tcp\"\n";

/// Line and key where the fault is found, and a phrase of the message or of the help.
pub(crate) fn check(text: &str, line: usize, key: &str, phrase: &str) {
    let error = error(text, &[]);
    let shown = error.to_string();
    assert_eq!((error.line(), error.key()), (line, key), "{text}\n{shown}");
    assert!(error.message().contains(phrase) || error.help().contains(phrase), "{phrase:?} is not in:\n{shown}");
    assert!(shown.contains("test.toml") || shown.contains(".trace"), "{shown}");
}

#[test]
fn quantities() {
    let walk = |min: &str, max: &str, interval: &str| {
        format!("rate_walk = {{ min = \"{min}\", max = \"{max}\", deviation = \"1mbit\", interval = \"{interval}\" }}")
    };
    for (line, key, phrase) in [
        ("rate = \"100mbps\"", "rate", "write `100mbit`"),
        ("rate = \"-5mbit\"", "rate", "negative"),
        ("rate = \"0mbit\"", "rate", "carries nothing"),
        ("rate = 100", "rate", "write \"100mbit\"?"),
        ("rate = true", "rate", "expected a rate"),
        ("rate = \"fast\"", "rate", "is not a rate"),
        ("delay = 10", "delay", "write \"10ms\"?"),
        ("delay = \"10 ms\"", "delay", "unknown unit ` ms`"),
        ("delay = \"10min\"", "delay", "units: s ms us ns"),
        ("delay = \"0.5ns\"", "delay", "not a whole number"),
        ("loss = \"101%\"", "loss", "at most `100%`"),
        ("loss = 0.01", "loss", "write \"1%\"?"),
        ("loss = { to_bad = \"1%\" }", "loss.to_good", "missing key `to_good`"),
        ("loss = { to_bad = \"1%\", to_good = \"200%\" }", "loss.to_good", "at most `100%`"),
        ("overhead = \"5GiB\"", "overhead", "4 GiB"),
        ("reorder = \"1%\"", "reorder", "give the link a `delay`"),
        ("duplicate = \"101%\"", "duplicate", "at most `100%`"),
        ("corrupt = 0.01", "corrupt", "write \"1%\"?"),
        ("grants = { period = \"5ms\", request = \"8ms\" }", "grants", "`grants` without `rate`"),
        ("grants = { period = \"0ms\", request = \"8ms\" }\nrate = \"1mbit\"", "grants.period", "more than zero"),
        (
            "grants = { period = \"7us\", request = \"8ms\" }\nrate = \"1mbit\"",
            "grants.period",
            "carries nothing at 1mbit",
        ),
        ("handover = { period = \"1s\", outage = \"1s\" }", "handover.outage", "less than `period`"),
        ("handover = { period = \"1s\" }", "handover", "changes nothing"),
        ("handover = { period = \"1s\", delay = [\"2ms\", \"1ms\"] }", "handover.delay", "minimum first"),
        (&walk("1mbit", "9mbit", "1s"), "rate_walk", "`rate_walk` without `rate`"),
        (&(walk("9mbit", "9mbit", "1s") + "\nrate = \"9mbit\""), "rate_walk.max", "more than `min`"),
        (&(walk("1mbit", "9mbit", "1s") + "\nrate = \"10mbit\""), "rate_walk", "not between"),
        (&(walk("1mbit", "9mbit", "9us") + "\nrate = \"1mbit\""), "rate_walk.interval", "at least 1ms"),
        ("policer = { rate = \"1mbit\", burst = \"1499b\" }", "policer.burst", "at least 1500b"),
        ("policer = { rate = \"1mbit\" }", "policer.burst", "missing key `burst`"),
        ("policer = { rate = \"1mbit\", burst = \"9kB\" }\nlocal = true", "policer", "stands in the network"),
        ("queue = { discipline = \"drophead\", ecn = true }", "queue", "marks nothing"),
        ("wire_limit = \"1.5p\"", "wire_limit", "whole number"),
        ("queue = { limit = \"0p\" }", "queue.limit", "passes no packets"),
        ("queue = { limit = \"64kb\" }", "queue.limit", "`64kB` or `64KiB`"),
        ("queue = { limit = \"1bpd\" }", "queue.limit", "unknown unit `bpd`"),
        ("queue = { limit = 100 }", "queue.limit", "write \"100p\"?"),
    ] {
        check(&format!("{HEAD}{FLOW}[[path]]\nname = \"wire\"\n{line}\n"), 7, &format!("path.wire.{key}"), phrase);
    }
}

#[test]
fn keys_and_shapes() {
    let path_and_flow = format!("{PATH}{FLOW}");
    check(&format!("{HEAD}{PATH}dealy = \"1ms\"\n{FLOW}"), 7, "path.wire.dealy", "did you mean `delay`?");
    check(&format!("nmae = \"x\"\n{HEAD}{path_and_flow}"), 1, "nmae", "did you mean `name`?");
    check(&format!("{HEAD}wombat = 1\n{path_and_flow}"), 3, "wombat", "known: name, title");
    check(&format!("{HEAD}{path_and_flow}knid = \"udp\"\n"), 9, "flow.tcp.knid", "did you mean `kind`?");
    check(&format!("{HEAD}{path_and_flow}[host]\ngroo = 3\n"), 10, "host.groo", "did you mean `gro`?");
    check(&format!("{HEAD}{path_and_flow}kind = \"tpc\"\n"), 9, "flow.tcp.kind", "did you mean `tcp`?");
    check(&format!("{HEAD}[[path]]\nrate = \"1mbit\"\n{FLOW}"), 3, "path.0.name", "missing key `name`");
    check(&format!("name = \"x\"\n{path_and_flow}"), 1, "duration", "missing key `duration`");
    check(&format!("{HEAD}{PATH}[[flow]\n"), 7, "", "not TOML");
    check(&format!("{HEAD}name = \"y\"\n{path_and_flow}"), 3, "", "duplicate key");
    check(&format!("name = \"a b\"\nduration = \"1s\"\n{path_and_flow}"), 1, "name", "letters, digits");
    check(&format!("name = \"x\"\nduration = \"0s\"\n{path_and_flow}"), 2, "duration", "more than zero");
    check(&format!("{HEAD}sample = \"0s\"\n{path_and_flow}"), 3, "sample", "more than zero");
    check(&format!("{HEAD}seeds = []\n{path_and_flow}"), 3, "seeds", "no runs");
    check(&format!("{HEAD}seeds = [1, 2, 1]\n{path_and_flow}"), 3, "seeds", "twice");
    check(&format!("{HEAD}seeds = [1]\nrepetitions = 3\n{path_and_flow}"), 4, "repetitions", "same thing");
    check(&format!("{HEAD}seeds = [-1]\n{path_and_flow}"), 3, "seeds.0", "-1");
}

#[test]
fn paths_and_links() {
    check(&format!("{HEAD}{FLOW}"), 1, "path", "no path");
    check(&format!("{HEAD}{PATH}{PATH}{FLOW}"), 8, "path.wire.name", "two paths called `wire`");
    let links = "[[link]]\nname = \"access\"\nrate = \"1gbit\"\n[[path]]\nname = \"p\"\n";
    check(&format!("{HEAD}{FLOW}{links}links = [\"acces\"]\n"), 10, "path.p.links.0", "did you mean `access`?");
    check(&format!("{HEAD}{FLOW}{links}links = []\n"), 10, "path.p.links", "at least one link");
    check(&format!("{HEAD}{FLOW}{links}links = [\"access\", \"access\"]\n"), 10, "path.p.links.1", "twice");
    check(&format!("{HEAD}{FLOW}{links}links = [\"access\"]\ndelay = \"1ms\"\n"), 10, "path.p.links", "not both");
    check(&format!("{HEAD}{FLOW}{links}[[path]]\nname = \"access\"\n"), 11, "path.access.name", "two links");
    let queue =
        |queue: &str| format!("{HEAD}{FLOW}[[path]]\nname = \"wire\"\nqueue = {{ {queue} }}\nrate = \"1mbit\"\n");
    check(&queue("limit = \"1bdp\""), 7, "path.wire.queue.limit", "no delay");
    check(&queue("target = \"5ms\""), 7, "path.wire.queue.target", "droptail queue has no `target`");
    check(&queue("discipline = \"codel\", interval = \"0s\""), 7, "path.wire.queue.interval", "more than zero");
    check(&queue("discipline = \"fifo\""), 7, "path.wire.queue.discipline", "unknown value `fifo`");
    check(&queue("discipline = \"red\""), 7, "path.wire.queue", "needs `min` and `max`");
    check(&queue("discipline = \"red\", min = \"9kB\", max = \"9kB\""), 7, "path.wire.queue.max", "more than `min`");
    check(&queue("ecn = true"), 7, "path.wire.queue", "marks nothing");
    for (queue_of, key, phrase) in [
        ("discipline = \"fq_codel\"", "discipline", "did you mean `fq-codel`?"),
        ("discipline = \"pie\", interval = \"1ms\"", "interval", "it has target, tupdate, alpha, beta"),
        ("discipline = \"pie\", alpha = 2.1", "alpha", "0 to 2"),
        ("discipline = \"pie\", beta = nan", "beta", "usual: 1.25"),
        ("discipline = \"pie\", tupdate = \"0s\"", "tupdate", "more than zero"),
        ("discipline = \"codel\", quantum = \"1514b\"", "quantum", "it has target, interval, ce_threshold"),
        ("discipline = \"fq-codel\", quantum = \"255b\"", "quantum", "at least 256"),
        ("discipline = \"fq-codel\", flows = 0", "flows", "1 to 65536"),
        ("discipline = \"fq-codel\", rtt = \"1ms\"", "rtt", "fq-codel queue has no `rtt`"),
        ("discipline = \"cake\", target = \"5ms\"", "target", "it has rtt"),
        ("discipline = \"cake\", rtt = \"0ms\"", "rtt", "more than zero"),
    ] {
        check(&queue(queue_of), 7, &format!("path.wire.queue.{key}"), phrase);
    }
    let unrated = "[[path]]\nname = \"wire\"\ndelay = \"1ms\"\nqueue = { limit = \"1bdp\" }\n";
    check(&format!("{HEAD}{FLOW}{unrated}"), 8, "path.wire.queue.limit", "no link of `wire` has a rate");
}

#[test]
fn fat_trees() {
    for (tree, flow, line, key, phrase) in [
        ("k = 5", "", 4, "fat_tree.k", "an even number from 2 to 16"),
        ("k = 18", "", 4, "fat_tree.k", "an even number from 2 to 16"),
        ("k = 4\npaths = 33", "", 5, "fat_tree.paths", "32 paths at most"),
        ("k = 4\npaths = 0", "", 5, "fat_tree.paths", "more than zero"),
        ("k = 4", "count = 2\n", 7, "flow.tcp.count", "a flow for each host"),
        ("k = 4", "path = \"a\"\n", 7, "flow.tcp.path", "a flow for each host"),
    ] {
        check(&format!("{HEAD}[fat_tree]\n{tree}\n{FLOW}{flow}"), line, key, phrase);
    }
    check(&format!("{HEAD}{PATH}[fat_tree]\nk = 4\n{FLOW}"), 7, "fat_tree", "the whole network");
}

#[test]
fn files_of_parameters() {
    let flow = |file: &str| format!("{HEAD}{PATH}{FLOW}congestion = {{ name = \"policy\", file = {file} }}\n");
    check(&flow("\"missing.onnx\""), 9, "flow.tcp.congestion.file", "relative to the scenario's folder");
    check(&flow("\"missing.onnx\""), 9, "flow.tcp.congestion.file", "tests/traces/missing.onnx`: No such file");
    check(&flow("\".\""), 9, "flow.tcp.congestion.file", "cannot read");
    check(&flow("\"/dev/zero\""), 9, "flow.tcp.congestion.file", "regular file");
    check(&flow("3"), 9, "flow.tcp.congestion.file", "expected a string");
}

#[test]
fn traces() {
    let traced = |name: &str| format!("{HEAD}{FLOW}[[path]]\nname = \"lte\"\ntrace = \"{name}\"\n");
    check(&traced("missing.trace"), 7, "path.lte.trace", "cannot read the trace");
    check(&traced("garbage.trace"), 3, "path.lte.trace", "this is not a time stamp");
    check(&traced("backwards.trace"), 4, "path.lte.trace", "time goes backwards");
    check(&traced("empty.trace"), 1, "path.lte.trace", "carries nothing");
    check(&traced("zero.trace"), 1, "path.lte.trace", "cannot be 0");
    check(&format!("{}rate = \"1mbit\"\n", traced("good.trace")), 7, "path.lte.trace", "not both");
    check(&traced("rates-backwards.txt"), 3, "path.lte.trace", "time goes backwards");
    check(&traced("two-rates.csv#latency"), 1, "path.lte.trace", "no column is called `latency`");
    check(&traced("good.trace#latency"), 1, "path.lte.trace", "and no header");
    let begins = |offset: &str| format!("{}trace_offset = \"{offset}\"\n", traced("good.trace"));
    check(&begins("later"), 8, "path.lte.trace_offset", "or \"random\"");
    check(&begins("0.5ms"), 8, "path.lte.trace_offset", "whole number of milliseconds");
    let without = format!("{HEAD}{FLOW}[[path]]\nname = \"lte\"\nrate = \"1mbit\"\ntrace_offset = \"1s\"\n");
    check(&without, 8, "path.lte.trace_offset", "an offset needs a trace");
    let garbage = error(&traced("garbage.trace"), &[]).to_string();
    assert!(garbage.contains("garbage.trace:3:1"), "{garbage}");
    // A scenario of a stranger names files of the reader's.
    assert!(!garbage.contains("three"), "{garbage}");
    let passwords = error(&traced("/etc/passwd"), &[]).to_string();
    assert!(passwords.contains("/etc/passwd:1:1") && !passwords.contains("root:"), "{passwords}");
    check(&traced("/dev/zero"), 7, "path.lte.trace", "a device");
    check(&traced("."), 7, "path.lte.trace", "directory");
    let folder = std::env::temp_dir().join(format!("ropewalk-traces-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    assert!(std::process::Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
    check(&traced(&path("fifo")), 7, "path.lte.trace", "a named pipe");
    std::fs::File::create(path("long")).unwrap().set_len((64 << 20) + 1).unwrap();
    check(&traced(&path("long")), 7, "path.lte.trace", "longer than 64 MiB");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tunnels() {
    let tunnel = |line: &str| format!("{HEAD}{PATH}{FLOW}[tunnel]\nkind = \"mpt-gre\"\n{line}\n");
    check(&tunnel("weights = [0]"), 11, "tunnel.weights", "weight of zero");
    check(&tunnel("weights = [1, 2]"), 11, "tunnel.weights", "2 weights for 1 paths");
    check(&tunnel("paths = [\"wier\"]"), 11, "tunnel.paths.0", "did you mean `wire`?");
    check(&tunnel("paths = []"), 11, "tunnel.paths", "at least one path");
    check(&tunnel("first = 1"), 11, "tunnel.first", "positions 0 to 0");
    check(&tunnel("max_reorder_timeout = \"1s\""), 11, "tunnel.max_reorder_timeout", "set mode = \"ropewalk\"; MPT's");
    check(&tunnel("hold = \"1s\""), 11, "tunnel.hold", "did you mean `max_reorder_timeout`?");
    let ropewalk = |line: &str| format!("{HEAD}{PATH}{FLOW}[tunnel]\nmode = \"ropewalk\"\n{line}\n");
    check(&tunnel("stripe = \"byte-deficit\""), 11, "tunnel.stripe", "did you mean `scheduler`?");
    check(&ropewalk("backup = [\"wier\"]"), 11, "tunnel.backup.0", "did you mean `wire`?");
    check(&ropewalk("backup = [\"wire\"]\nsecondary = [\"wire\"]"), 12, "tunnel.secondary.0", "neither a backup");
    check(&ropewalk("probe_interval = \"0s\""), 11, "tunnel.probe_interval", "more than zero");
    check(&ropewalk("late = \"never\""), 11, "tunnel.late", "known: drop, deliver");
    check(&ropewalk("relay = \"udp\""), 11, "tunnel.relay", "known: off, tcp");
    check(&ropewalk("offload = \"off\""), 11, "tunnel.offload", "expected a boolean");
    check(
        &tunnel("offload = false"),
        11,
        "tunnel.offload",
        "set mode = \"ropewalk\"; an MPT tunnel sends packets one by one",
    );
    for line in ["relay_congestion = \"bbr\"", "relay_rate = \"1gbit\"", "relay_delay = \"1ms\""] {
        let key = format!("tunnel.{}", line.split(' ').next().unwrap());
        check(&ropewalk(line), 11, &key, "add relay = \"tcp\"");
        check(&tunnel(line), 11, &key, "set mode = \"ropewalk\"");
    }
    let relayed = |line: &str| format!("{HEAD}{PATH}[tunnel]\nmode = \"ropewalk\"\nrelay = \"tcp\"\n{FLOW}{line}\n");
    check(&relayed("requests = { size = \"1kB\" }"), 12, "flow.tcp.requests", "a relayed flow has no `requests`");
    check(&relayed("video = { rate = \"1mbit\" }"), 12, "flow.tcp.video", "leave out `relay`");
    check(&relayed("host = { handshake = false }"), 11, "flow.tcp.name", "opens its connection by a handshake");
    check(&tunnel("resequence = { window = \"9p\" }"), 11, "tunnel.resequence.timeout", "missing key `timeout`");
}

#[test]
fn send_buffers() {
    let flow = |line: &str| format!("{HEAD}{PATH}[[flow]]\nname = \"f\"\n{line}\n");
    check(&flow("host = { notsent_lowat = \"0B\" }"), 9, "flow.f.host.notsent_lowat", "more than zero");
    check(&flow("host = { initial_send_buffer = \"0B\" }"), 9, "flow.f.host.initial_send_buffer", "more than zero");
    check(&flow("host = { initial_send_buffer = \"2GiB\" }"), 9, "flow.f.host.initial_send_buffer", "at most");
}

#[test]
fn flows_and_events() {
    let flow = |line: &str| format!("{HEAD}{PATH}[[flow]]\nname = \"f\"\n{line}\n");
    check(&format!("{HEAD}{PATH}"), 1, "flow", "no flow");
    check(&flow("start = \"5s\"\nstop = \"4s\""), 10, "flow.f.stop", "before it starts");
    check(&flow("path = \"wires\""), 9, "flow.f.path", "did you mean `wire`?");
    check(&flow("count = 0"), 9, "flow.f.count", "more than zero");
    check(&flow("count = 1000000000"), 9, "flow.f.count", "at most 10000");
    check(&flow("stagger = \"1s\""), 9, "flow.f.stagger", "goes with `count`");
    check(&flow("packet = \"1kB\""), 9, "flow.f.packet", "a tcp flow has no `packet`");
    check(&flow("write = \"1kB\""), 9, "flow.f.write", "goes with `rate`");
    check(&flow("rate = \"1mbit\"\nwrite = \"0b\""), 10, "flow.f.write", "more than zero");
    check(&flow("kind = \"udp\""), 8, "flow.f.name", "needs `rate` and `packet`");
    let udp = "kind = \"udp\"\nrate = \"1mbit\"\n";
    check(&flow(&format!("{udp}packet = \"28b\"")), 11, "flow.f.packet", "headers alone");
    check(&flow(&format!("{udp}packet = \"1501b\"")), 11, "flow.f.packet", "MTU of 1500");
    check(&flow(&format!("{udp}packet = \"1kB\"\nsize = \"1MB\"")), 12, "flow.f.size", "a udp flow has no `size`");
    check(&flow(&format!("{udp}packet = \"1kB\"\nwrite = \"1MB\"")), 12, "flow.f.write", "a udp flow has no `write`");
    check(&flow("host = { receive_buffer = [\"2B\", \"1B\", \"3B\"] }"), 9, "flow.f.host.receive_buffer", "ascend");
    check(&flow("congestion = { beta = [1] }"), 9, "flow.f.congestion.beta", "a number, a word");
    check(&flow("congestion = 5"), 9, "flow.f.congestion", "a name such as");
    check(&format!("{HEAD}{PATH}{FLOW}{FLOW}"), 10, "flow.tcp.name", "two flows called `tcp`");
    let requests = |keys: &str| flow(&format!("requests = {{ {keys} }}"));
    check(&requests("think = \"1s\""), 9, "flow.f.requests.size", "missing key `size`");
    check(&requests("size = \"0b\""), 9, "flow.f.requests.size", "more than zero");
    check(&requests("size = 20"), 9, "flow.f.requests.size", "write \"20b\"?");
    check(&requests("size = \"1kB\", connection = \"old\""), 9, "flow.f.requests.connection", "unknown value `old`");
    let drawn = |keys: &str| requests(&format!("size = {{ mean = \"1kB\", {keys} }}"));
    check(&drawn("shape = 2"), 9, "flow.f.requests.size.distribution", "missing key `distribution`");
    check(&drawn("distribution = \"pareto\""), 9, "flow.f.requests.size", "needs `shape`");
    check(&drawn("distribution = \"pareto\", shape = 1"), 9, "flow.f.requests.size", "there is no mean");
    check(&drawn("distribution = \"fixed\", shape = 2"), 9, "flow.f.requests.size", "only a pareto");
    check(&drawn("distribution = \"normal\""), 9, "flow.f.requests.size.distribution", "unknown value `normal`");
    let both = "requests = { size = \"1kB\" }\nsize = \"1MB\"";
    check(&flow(both), 10, "flow.f.size", "a flow of requests has no `size`");
    let video = |keys: &str| flow(&format!("video = {{ {keys} }}"));
    check(&video("fps = 25"), 9, "flow.f.video", "`rate`, or a `ladder`");
    check(&video("rate = \"1mbit\", ladder = [\"1mbit\"]"), 9, "flow.f.video.ladder", "not both");
    check(&video("ladder = []"), 9, "flow.f.video.ladder", "list of ascending rates");
    check(&video("ladder = [\"2mbit\", \"1mbit\"]"), 9, "flow.f.video.ladder", "list of ascending rates");
    let rated = |keys: &str| video(&format!("rate = \"1mbit\", {keys}"));
    check(&rated("fps = 0"), 9, "flow.f.video.fps", "more than zero");
    check(&rated("fps = 9000"), 9, "flow.f.video.fps", "at most 1000");
    check(&rated("intra = 0.5"), 9, "flow.f.video.intra", "at least 1");
    check(&rated("variation = nan"), 9, "flow.f.video.variation", "at least 0");
    check(&rated("kind = \"alive\""), 9, "flow.f.video.kind", "did you mean `live`?");
    check(&rated("latency = \"1s\""), 9, "flow.f.video.latency", "stored video has no `latency`");
    check(&rated("kind = \"live\", ahead = \"9s\""), 9, "flow.f.video.ahead", "live video has no `ahead`");
    check(&rated("ahead = \"3s\""), 9, "flow.f.video.ahead", "a group of 2s: 4s");
    check(&rated("startup = \"29s\""), 9, "flow.f.video.startup", "30s of buffer");
    check(&flow("video = { rate = \"1mbit\" }\nsize = \"1MB\""), 10, "flow.f.size", "a flow of video has no `size`");
    let two_uses = "video = { rate = \"1mbit\" }\nrequests = { size = \"1kB\" }";
    check(&flow(two_uses), 10, "flow.f.requests", "a flow of video has no `requests`");
    check(&flow(&format!("{udp}video = {{ rate = \"1mbit\" }}")), 11, "flow.f.video", "a udp flow has no `video`");
    let two = format!("{HEAD}{PATH}[[path]]\nname = \"other\"\n{FLOW}");
    check(&two, 10, "flow.tcp.name", "so the flow must name its path");
    let event = |line: &str| format!("{HEAD}{PATH}{FLOW}[[event]]\nat = \"5s\"\n{line}\n");
    check(&event("path = \"wire\""), 9, "event.0", "changes nothing");
    check(&event("up = false"), 9, "event.0", "names a `path` or a `link`");
    check(&event("path = \"wide\"\nup = false"), 11, "event.0.path", "did you mean `wire`?");
    let granted = PATH.to_owned() + "grants = { period = \"5ms\", request = \"8ms\" }\n";
    let event_on_grants = event("path = \"wire\"\nrate = \"1mbit\"").replace(PATH, &granted);
    check(&event_on_grants, 13, "event.0.rate", "is served in grants");
    let walk = "rate_walk = { min = \"1mbit\", max = \"100mbit\", deviation = \"1mbit\", interval = \"1s\" }\n";
    let event_on_walk = event("path = \"wire\"\nrate = \"1mbit\"").replace(PATH, &format!("{PATH}{walk}"));
    check(&event_on_walk, 13, "event.0.rate", "has a `rate_walk`");
}

#[test]
fn sweeps() {
    let sweep = |lines: &str| format!("{HEAD}{PATH}{FLOW}[sweep]\n{lines}\n");
    check(&sweep("\"path.wire.dealy\" = [\"1ms\"]"), 10, "path.wire.dealy", "did you mean `delay`?");
    check(&sweep("\"path.wier.delay\" = [\"1ms\"]"), 10, "path.wier.delay", "did you mean `wire`?");
    check(&sweep("\"path.wire.delay\" = [\"1ms\", \"2m\"]"), 10, "path.wire.delay", "unknown unit `m`");
    check(&sweep("\"path.wire.delay\" = \"1ms\""), 10, "path.wire.delay", "takes a list");
    check(&sweep("\"path.wire.delay\" = []"), 10, "path.wire.delay", "an empty sweep");
    check(&sweep("\"path.wire.delay\" = [\"1ms\", \"1ms\"]"), 10, "path.wire.delay", "swept twice");
    check(&sweep("\"path.wire.delay.x\" = [\"1ms\"]"), 10, "path.wire.delay.x", "no keys below");
    check(&sweep("\"link.wire.delay\" = [\"1ms\"]"), 10, "link.wire.delay", "no [[link]]");
    let twice = "\"path.wire.delay\" = [\"1ms\"]\npath.wire.delay = [\"2ms\"]";
    check(&sweep(twice), 11, "path.wire.delay", "would overwrite the sweep");
    check(&sweep("seeds = [1, 2]"), 10, "seeds", "cannot be swept");
}

#[test]
fn cases_and_the_short_form() {
    let base = format!("{HEAD}{PATH}{FLOW}");
    check(&format!("{base}[case.a.path]\nwombat = 1\n"), 9, "path", "expected");
    check(&format!("{base}[[case.a.path]]\nname = \"wire\"\ndealy = \"1ms\"\n"), 11, "path.wire.dealy", "`delay`?");
    check(&format!("{base}[case.a]\nseeds = [2]\n"), 10, "case.a.seeds", "the same in every case");
    let case_sweep = |lines: &str| format!("{base}[case.a.sweep]\n{lines}\n");
    check(&case_sweep("\"path.wier.delay\" = [\"1ms\"]"), 10, "path.wier.delay", "did you mean `wire`?");
    check(&case_sweep("\"path.wire.delay\" = 1"), 10, "case.a.sweep.path.wire.delay", "takes a list");
    check(&case_sweep("case = [\"a\"]"), 10, "case.a.sweep.case", "cannot be swept");
    let both = case_sweep("\"path.*.delay\" = [\"1ms\"]\n[sweep]\n\"path.wire.delay\" = [\"2ms\"]");
    check(&both, 10, "case.a.sweep.path.*.delay", "would overwrite the sweep of `path.wire.delay`");
    check(&format!("{base}[case]\na = 1\n"), 10, "case.a", "a case is a table");
    check(&format!("{base}[sweep]\ncase = [\"a\"]\n"), 10, "case", "no [case.NAME]");
    check(&format!("{base}[case.a]\n[sweep]\ncase = [\"b\"]\n"), 11, "case", "unknown case `b`");
    let good = format!("{base}[case.a]\nduration = \"1s\"\n");
    let case_error = error(&good, &["case=other"]);
    assert!(
        case_error.to_string().contains("unknown case `other`") && case_error.help().contains("known: a"),
        "{case_error}"
    );
    let case_error = error(&good, &["sweep.case=[\"other\"]"]);
    assert!(
        case_error.to_string().contains("unknown case `other`") && case_error.help().contains("known: a"),
        "{case_error}"
    );
    assert!(error(&good, &["case.a.duration=2s"]).message().contains("cannot change `case`"));
}

#[test]
fn a_billion_runs_are_refused_before_any_is_made() {
    let ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let axes: String = (0..9).map(|n| format!("\"flow.tcp.congestion.p{n}\" = {ten}\n")).collect();
    check(&format!("{HEAD}{PATH}{FLOW}[sweep]\n{axes}"), 10, "sweep", "1000000000 cells");
    // More cells than 64 bits count.
    let axes: String = (0..30).map(|n| format!("\"flow.tcp.congestion.p{n}\" = {ten}\n")).collect();
    check(&format!("{HEAD}{PATH}{FLOW}[sweep]\n{axes}"), 10, "sweep", "at most 100000");
    check(&format!("{HEAD}repetitions = 1000000000\n{PATH}{FLOW}"), 3, "repetitions", "are 1000000000 runs");
}

#[test]
fn sets_are_blamed_by_name() {
    let good = format!("{HEAD}{PATH}{FLOW}");
    for (set, key, phrase) in [
        ("path.wire.dealy=1ms", "path.wire.dealy", "did you mean `delay`?"),
        ("path.wier.delay=1ms", "path.wier.delay", "did you mean `wire`?"),
        ("flwo.tcp.size=1GB", "flwo.tcp.size", "did you mean `flow`?"),
        ("path.wire.rate=100mbps", "path.wire.rate", "write `100mbit`"),
        ("path.wire.rate=100", "path.wire.rate", "write \"100mbit\"?"),
        ("seeds=3", "seeds", "expected a list"),
        ("path.wire.rate", "", "KEY=VALUE"),
        ("=5", "", "KEY=VALUE"),
        ("sweep.path.wier.delay=[\"1ms\"]", "path.wier.delay", "did you mean `wire`?"),
        ("sweep.seeds=[1, 2]", "seeds", "cannot be swept"),
        ("sweep.path.wire.delay=\"1ms\"", "path.wire.delay", "a sweep takes a list"),
        ("sweep.case=[\"a\"]", "case", "no [case.NAME]"),
        ("sweep=1", "", "[sweep] is a table"),
        ("flow.tcp.host={ gro = 0 }", "flow.tcp.host.gro", "more than zero"),
    ] {
        let error = error(&good, &["duration=9s", set]);
        let shown = error.to_string();
        assert_eq!((error.line(), error.key()), (1, key), "{shown}");
        assert!(shown.contains("--> --set:1:") && shown.contains(set), "{shown}");
        assert!(error.message().contains(phrase) || error.help().contains(phrase), "{phrase:?} is not in:\n{shown}");
    }
}

#[test]
fn an_error_shows_file_line_column_key_and_what_would_be_right() {
    let shown = error(&format!("{HEAD}{PATH}dealy = \"1ms\"\n{FLOW}"), &[]).to_string();
    assert_eq!(
        shown,
        "error: unknown key `dealy`
 --> test.toml:7:1
  |
7 | dealy = \"1ms\"
  | ^^^^^ path.wire.dealy
  |
  = help: did you mean `delay`?"
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = ropewalk_scenario::load(Path::new("no/such.toml"), &Overrides::default()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("no/such.toml"), "{error}");
    assert_eq!((error.line(), error.key()), (0, ""));
    assert!(error.message().contains("cannot read"), "{error}");
}

#[test]
fn multipath_flows() {
    for (line, key, phrase) in [
        ("path = \"wire\"", "path", "an mptcp flow has no `path`"),
        ("paths = [\"wir\"]", "paths.0", "did you mean `wire`?"),
        ("paths = []", "name", "at least one path"),
        ("paths = [\"wire\"]\nsubflow = [{ path = \"wire\" }]", "subflow", "keep one"),
        ("subflow = [{ path = \"wire\", join = \"1s\" }]", "name", "cannot `join` later"),
        ("subflow = [{ path = \"wire\", leave = \"0s\" }]", "subflow.0.leave", "before it joins"),
        ("requests = { size = \"1kB\", connection = \"new\" }", "requests", "are all on one connection"),
        ("scheduler = { lambda = 2 }", "scheduler.name", "missing key `name`"),
        ("mptcp = { stack = \"linux\" }", "mptcp.stack", "unknown value `linux`"),
        ("mptcp = { weights = [1, 1] }", "mptcp.weights", "2 weights for 1 subflows"),
        ("mptcp = { weights = [0] }", "mptcp.weights", "weights start at 1"),
        ("mptcp = { dss_option = \"29b\" }", "mptcp.dss_option", "28 bytes"),
        ("host = { mss = \"1425b\" }", "name", "do not fit into packets of 1500"),
        ("host = { ip = 5 }", "host.ip", "ip = 4 or ip = 6"),
    ] {
        let text = format!("{HEAD}{PATH}[[flow]]\nkind = \"mptcp\"\nname = \"m\"\n{line}\n");
        let line_number = match key {
            "name" => 9,
            "subflow" => 11,
            _ => 10,
        };
        check(&text, line_number, &format!("flow.m.{key}"), phrase);
    }
    for (line, key, phrase) in [
        ("path = \"wire\"", "path", "an mpquic flow has no `path`"),
        ("paths = []", "name", "a connection needs at least one path"),
        ("requests = { size = \"1kB\" }", "requests", "an mpquic flow has no `requests`"),
        ("video = { rate = \"1mbit\" }", "video", "an mpquic flow has no `video`"),
        ("mptcp = { stack = \"upstream\" }", "mptcp", "an mpquic flow has no `mptcp`"),
        ("quic = { streams = 0 }", "quic.streams", "1 to 1024 streams"),
        ("quic = { streams = 1025 }", "quic.streams", "1 to 1024 streams"),
        ("quic = { weights = [1, 1] }", "quic.weights", "2 weights for 1 subflows"),
        ("host = { mss = \"1433b\" }", "name", "do not fit into packets of 1500"),
        ("host = { sack = false }", "host", "QUIC has no `sack`"),
    ] {
        let text = format!("{HEAD}{PATH}[[flow]]\nkind = \"mpquic\"\nname = \"m\"\n{line}\n");
        check(&text, if key == "name" { 9 } else { 10 }, &format!("flow.m.{key}"), phrase);
    }
    let text = format!("{HEAD}{PATH}[[flow]]\nkind = \"mptcp\"\nname = \"m\"\nquic = {{ streams = 2 }}\n");
    check(&text, 10, "flow.m.quic", "an mptcp flow has no `quic`");
    check(&format!("{HEAD}{PATH}{FLOW}quic = {{ streams = 2 }}\n"), 9, "flow.tcp.quic", "a tcp flow has no `quic`");
    let many = format!("paths = [{}]", "\"wire\",".repeat(33));
    let text = format!("{HEAD}{PATH}[[flow]]\nkind = \"mptcp\"\nname = \"m\"\n{many}\n");
    check(&text, 9, "flow.m.name", "32 at most");
    let text = format!("{HEAD}{PATH}mtu = \"52b\"\n{FLOW}");
    check(&text, 9, "flow.tcp.name", "headers of 52 bytes leave no room");
    check(
        &format!("{HEAD}{PATH}{FLOW}scheduler = \"blest\"\n"),
        9,
        "flow.tcp.scheduler",
        "a tcp flow has no `scheduler`",
    );
}

#[test]
fn a_confined_scenario_names_no_file_outside_its_folder_by_path_or_link() {
    let folder = std::env::temp_dir().join(format!("ropewalk-confined-{}", std::process::id()));
    let inside = folder.join("own");
    std::fs::create_dir_all(&inside).unwrap();
    for file in [folder.join("secret"), inside.join("trace")] {
        std::fs::write(file, "1\n2\n").unwrap();
    }
    std::os::unix::fs::symlink(folder.join("secret"), inside.join("link")).unwrap();
    let file = inside.join("s.toml");
    let load = |trace: &str| {
        let text = format!(
            "name = \"s\"\nduration = \"1s\"\n[[flow]]\nname = \"f\"\n[[path]]\nname = \"p\"\ntrace = \"{trace}\"\ndelay = \"1ms\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let read = |load: fn(&Path, &Overrides) -> Result<Scenario, Error>| {
            load(&file, &Overrides::default()).map(drop).map_err(|error| error.to_string())
        };
        (read(ropewalk_scenario::load), read(ropewalk_scenario::load_confined))
    };
    assert_eq!(load("trace"), (Ok(()), Ok(())));
    for trace in ["../secret", "link", &folder.join("secret").display().to_string()] {
        let (anywhere, confined) = load(trace);
        assert_eq!(anywhere, Ok(()), "{trace}");
        let error = confined.unwrap_err();
        assert!(error.contains("leads out of the scenario's folder") && error.contains("s.toml:7"), "{error}");
    }
    assert!(load("../missing").1.unwrap_err().contains("leads out"));
    assert!(load("missing").1.unwrap_err().contains("No such file"));
    std::fs::remove_dir_all(folder).unwrap();
}
