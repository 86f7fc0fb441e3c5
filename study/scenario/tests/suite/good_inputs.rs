//! Scenarios are resolved to experiments, field by field.

use crate::common::read;
use link::*;
use params::ParamValue;
use ropewalk_scenario::Overrides;
use ropewalk_scenario::model::*;
use std::collections::BTreeMap;
use units::{Instant, Rate, Span};

pub(crate) fn experiment(text: &str, sets: &[&str]) -> Experiment {
    read(text, sets).cells.remove(0).experiment
}

pub(crate) const SMALL: &str = r#"
name = "small"
duration = "10s"
[[path]]
name = "wire"
rate = "100mbit"
delay = "10ms"
queue = { limit = "1bdp" }
[[flow]]
name = "tcp"
"#;

const FULL: &str = r#"
name = "full"
title = "Everything"
about = "All keys."
source = "RFC 0"
duration = "1.5s"
sample = "100ms"
repetitions = 3

[[link]]
name = "access"
rate = "1gbit"
delay = "1ms"
queue = { limit = "50ms", discipline = "codel", target = "2ms", ecn = true }

[[link]]
name = "bottleneck"
rate = "10mbit"
delay = "9ms"
jitter = "250us"
loss = { to_bad = "1%", to_good = "20%", bad = "50%" }
duplicate = "1%"
corrupt = "0.2%"
reorder = "25%"
overhead = "38b"
queue = { limit = "0.5bdp", discipline = "red", min = "3kB", max = "9kB", probability = "10%", weight = 0.01 }
local = true
wire_limit = "1000p"
reverse = { rate = "1mbit", delay = "11ms", loss = "0%", reorder = "0%", queue = { limit = "1bdp" } }

[[path]]
name = "chain"
links = ["access", "bottleneck"]

[[path]]
name = "lte"
trace = "good.trace"
delay = "20ms"
queue = { limit = "2bdp" }
reverse = { rate = "5mbit", queue = { limit = "64KiB" } }

[tunnel]
kind = "mpt-gre"
paths = ["lte", "chain"]
scheduler = "byte-deficit"
weights = [2, 1]
first = 2
stray_packets = 1
overhead = "40b"
mtu = "1400b"
resequence = { window = "1600p", timeout = "300ms" }
device = { ring = "500p", socket = "92p" }
nuisances = { stray_interval = "10s", wake_up = { least = "3us", mean = "10us" }, reader = { least = "4us", mean = "12us" } }

[host]
gro = 16
send_buffer = "1MiB"
mptcp_send_buffer = "largest"
initial_send_buffer = "32KiB"
notsent_lowat = "100kB"
slow_start_after_idle = false
early_retrans = false

[[flow]]
name = "tcp"
congestion = { name = "cubic", beta = 0.7, hystart = "off", fast_convergence = false }
size = "1.5MB"
start = "500ms"
stop = "1s"
host = { mss = "1000b", gro = 1, sack = false, receive_buffer = ["4096b", "64KiB", "1MB"] }

[[flow]]
name = "udp"
kind = "udp"
path = "chain"
rate = "64kbit"
packet = "200b"
count = 2
stagger = "10ms"

[[event]]
at = "1s"
path = "chain"
up = false
rate = "5mbit"
loss = "2%"

[[event]]
at = "500ms"
link = "access"
direction = "forward"
delay = "3ms"
"#;

fn bottleneck() -> Link {
    // Slowest rate of the chain, 10 Mbit/s, times 1 + 1 + 9 + 11 ms: 27500 bytes; back at 1 Mbit/s 2750.
    let forward = PipeConfig {
        rate: Some(Rate::from_mbit(10)),
        trace: None,
        trace_offset: Span::ZERO,
        grants: None,
        delay: Span::from_millis(9),
        jitter: Span::from_micros(250).into(),
        loss: LossModel::GilbertElliott { to_bad: 0.01, to_good: 0.2, loss_bad: 0.5, loss_good: 0.0 },
        duplicate: 0.01,
        corrupt: 0.002,
        reorder: 0.25.into(),
        overhead: 38,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Bytes(13_750),
            discipline: QueueDiscipline::Red(RedConfig {
                min: 3000,
                max: 9000,
                probability: 0.1,
                weight: 0.01,
                hard_drop: true,
            }),
            ecn: false,
        },
        local: true,
        wire_limit: Some(1000),
        slot: None,
    };
    let reverse = PipeConfig {
        rate: Some(Rate::from_mbit(1)),
        delay: Span::from_millis(11),
        loss: LossModel::None,
        reorder: 0.0.into(),
        queue: QueueConfig { limit: QueueLimit::Bytes(2750), discipline: QueueDiscipline::DropTail, ecn: false },
        ..forward.clone()
    };
    Link::new("bottleneck".into(), forward, reverse)
}

#[test]
fn a_scenario_that_says_everything_is_the_experiment_it_says() {
    let scenario = read(FULL, &[]);
    assert_eq!((scenario.name.as_str(), scenario.title.as_str()), ("full", "Everything"));
    assert_eq!((scenario.about.as_str(), scenario.source.as_str()), ("All keys.", "RFC 0"));
    assert_eq!((scenario.seeds, scenario.text.as_str()), (vec![1, 2, 3], FULL));
    let [cell] = &scenario.cells[..] else { panic!("nothing is swept") };
    let e = &cell.experiment;
    assert_eq!(
        (e.name.as_str(), e.duration, e.sample),
        ("full", Span::from_millis(1500), Some(Span::from_millis(100)))
    );
    assert_eq!(e.links[1], bottleneck());
    let codel = QueueDiscipline::CoDel(CoDelConfig { target: Span::from_millis(2), ..CoDelConfig::default() });
    let queue = QueueConfig { limit: QueueLimit::Time(Span::from_millis(50)), discipline: codel, ecn: true };
    assert_eq!((e.links[0].forward.queue, &e.links[0].reverse), (queue, &e.links[0].forward));
    let chains: Vec<_> = e.paths.iter().map(|path| (path.name.as_str(), path.links.as_slice())).collect();
    assert_eq!(chains, [("chain", &[0, 1][..]), ("lte", &[2][..])]);
    assert_eq!(e.tunnel, Some(tunnel()));
    assert_eq!(e.flows, flows());
    assert_eq!(e.events, events());
}

fn tunnel() -> Tunnel {
    Tunnel {
        paths: vec![1, 0],
        mpt_scheduler: "byte-deficit".into(),
        weights: vec![2, 1],
        first: 2,
        stray_packets: 1,
        overhead: 40,
        mtu: 1400,
        resequence: Some(Resequence { window: 1600, timeout: Span::from_millis(300), deliver_late: false }),
        device: Some(Device { ring: 500, socket: 92 }),
        nuisances: Nuisances {
            stray_interval: Some(Span::from_secs(10)),
            wake_up: Some(WakeUp { least: Span::from_micros(3), mean: Span::from_micros(10) }),
            reader: Some(WakeUp { least: Span::from_micros(4), mean: Span::from_micros(12) }),
            ..Nuisances::default()
        },
        ropewalk: None,
    }
}

fn flows() -> Vec<Flow> {
    let parameters = BTreeMap::from([
        ("beta".into(), ParamValue::Number(0.7)),
        ("hystart".into(), ParamValue::Choice("off".into())),
        ("fast_convergence".into(), ParamValue::Choice("off".into())),
    ]);
    let host = Host {
        mss: Some(1000),
        sack: false,
        receive_buffer: TcpRmem { min: 4096, default: 65_536, max: 1_000_000 },
        send_buffer: 1 << 20,
        mptcp_send_buffer: SendBufferRule::Largest,
        initial_send_buffer: 32 << 10,
        notsent_lowat: Some(100_000),
        slow_start_after_idle: false,
        early_retrans: false,
        ..Host::default()
    };
    let congestion = AlgorithmChoice { name: "cubic".into(), parameters };
    let half_second = Instant(500_000_000);
    let udp = |name: &str, start| Flow {
        start_within: Span::ZERO,
        reverse: false,
        name: name.into(),
        copy_of: name.strip_suffix("-1").or_else(|| name.strip_suffix("-2")).map(str::to_owned),
        route: Route::Path(0),
        start,
        stop: None,
        kind: FlowKind::ConstantRate { rate: Rate(64_000), packet: 200 },
    };
    vec![
        Flow {
            name: "tcp".into(),
            copy_of: None,
            route: Route::Tunnel,
            start: half_second,
            start_within: Span::ZERO,
            reverse: false,
            stop: Some(Instant(1_000_000_000)),
            kind: FlowKind::Tcp {
                congestion,
                application: Application::Greedy,
                size: Some(1_500_000),
                host: Box::new(host),
                multipath: None,
            },
        },
        udp("udp-1", Instant::ZERO),
        udp("udp-2", Instant(10_000_000)),
    ]
}

/// In the order of time; `up` on all links of the path, rate and loss on its slowest.
fn events() -> Vec<Change> {
    let down = Change { at: Instant(1_000_000_000), up: Some(false), ..Change::default() };
    let (at, delay) = (Instant(500_000_000), Some(Span::from_millis(3)));
    vec![
        Change { at, delay, directions: Directions::Forward, ..Change::default() },
        down.clone(),
        Change { link: 1, rate: Some(Rate::from_mbit(5)), loss: Some(LossModel::Random(0.02)), ..down },
    ]
}

#[test]
fn a_policer_that_is_slower_than_the_link_gives_the_bandwidth_delay_product() {
    let link = |policer: &str| {
        let queue = "path.wire.queue={ limit = \"1bdp\", discipline = \"drophead\" }";
        experiment(SMALL, &[&format!("path.wire.policer={policer}"), queue]).links.remove(0)
    };
    let slower = link("{ rate = \"2mbit\", burst = \"10kB\" }");
    assert_eq!(slower.forward.policer, Some(PolicerConfig { rate: Rate::from_mbit(2), burst: 10_000 }));
    assert_eq!(slower.reverse, slower.forward);
    let limit = QueueLimit::Bytes(5_000); // 2 Mbit/s times 20 ms
    assert_eq!(slower.forward.queue, QueueConfig { limit, discipline: QueueDiscipline::DropHead, ecn: false });
    assert_eq!(link("{ rate = \"200mbit\", burst = \"10kB\" }").forward.queue.limit, QueueLimit::Bytes(250_000));
}

#[test]
fn a_direction_with_a_rate_of_its_own_has_neither_grants_nor_a_policer_of_the_other() {
    let keys = [
        "path.wire.grants={ period = \"5ms\", request = \"8ms\" }",
        "path.wire.policer={ rate = \"2mbit\", burst = \"10kB\" }",
    ];
    let directions = |set: &[&str]| {
        let link = experiment(SMALL, &[&keys, set].concat()).links.remove(0);
        [link.forward, link.reverse].map(|pipe| (pipe.grants, pipe.policer.is_some()))
    };
    let grants = Some(GrantConfig { period: Span::from_millis(5), request: Span::from_millis(8) });
    assert_eq!(directions(&["path.wire.reverse.delay=1ms"]), [(grants, true); 2]);
    assert_eq!(directions(&["path.wire.reverse.rate=5mbit"]), [(grants, true), (None, false)]);
}

#[test]
fn handovers_and_random_walks_become_events_with_a_seed() {
    let keys = [
        "path.wire.handover={ period = \"4s\", outage = \"80ms\", delay = [\"20ms\", \"40ms\"] }",
        "path.wire.rate_walk={ min = \"50mbit\", max = \"150mbit\", deviation = \"9mbit\", interval = \"100ms\" }",
        "path.wire.reverse.rate=10mbit",
    ];
    let experiment = experiment(SMALL, &keys);
    let link = &experiment.links[0];
    let [period, outage] = [4_000, 80].map(Span::from_millis);
    let delay = Some((Span::from_millis(20), Span::from_millis(40)));
    assert_eq!(link.handover, Some(Handover { period, outage, delay }));
    let [min, max, deviation] = [50, 150, 9].map(Rate::from_mbit);
    assert_eq!(link.rate_walks, [Some(RateWalk { min, max, deviation, interval: Span::from_millis(100) }), None]);
    assert!(experiment.events.is_empty());
    let [first, again, other] = [1, 1, 2].map(|seed| experiment.with_seed(seed).into_owned().events);
    assert!(first == again && first != other && first.is_sorted_by_key(|change| change.at));
    // In 10 s: two hand-overs of two changes each, and 99 rates.
    let of_rate = first.iter().filter(|change| change.rate.is_some());
    assert_eq!((of_rate.clone().count(), first.len()), (99, 103));
    assert!(of_rate.into_iter().all(|change| change.directions == Directions::Forward));
}

#[test]
fn a_trace_takes_the_place_of_a_rate_and_its_mean_gives_the_bandwidth_delay_product() {
    let lte = &experiment(FULL, &[]).links[2];
    // Four opportunities in 10 ms are 4.8 Mbit/s; times 40 ms, times two: 48000 bytes.
    let trace = lte.forward.trace.as_ref().unwrap();
    assert_eq!((&trace.opportunities[..], trace.period_ms), (&[1, 1, 4, 10][..], 10));
    assert_eq!((lte.forward.rate, lte.forward.queue.limit), (None, QueueLimit::Bytes(48_000)));
    let reverse = &lte.reverse;
    assert_eq!(
        (reverse.rate, &reverse.trace, reverse.queue.limit),
        (Some(Rate::from_mbit(5)), &None, QueueLimit::Bytes(65_536))
    );
}

#[test]
fn what_is_not_said_is_linuxs_default() {
    let e = experiment(SMALL, &[]);
    assert_eq!(e.flows[0].route, Route::Path(0), "the only path");
    let congestion = AlgorithmChoice { name: "cubic".into(), parameters: BTreeMap::new() };
    let kind = FlowKind::Tcp {
        congestion,
        application: Application::Greedy,
        size: None,
        host: Box::default(),
        multipath: None,
    };
    assert_eq!(e.flows[0].kind, kind);
    assert_eq!((e.sample, &e.tunnel, e.events.len()), (None, &None, 0));
    assert_eq!(e.links[0].forward, e.links[0].reverse);
    let plain = SMALL.replace("queue = { limit = \"1bdp\" }", "");
    assert_eq!(experiment(&plain, &[]).links[0].forward.queue.limit, QueueLimit::Packets(1000));
    assert_eq!(read(SMALL, &[]).seeds, [1]);
}

#[test]
fn a_profile_is_a_set_of_defaults_that_other_keys_override() {
    let host = |host: &str| {
        let text = format!("{SMALL}\n[host]\ntimestamps = true\n{host}");
        let FlowKind::Tcp { host, .. } = experiment(&text, &[]).flows[0].kind.clone() else { panic!("a TCP flow") };
        *host
    };
    assert_eq!(host("profile = \"linux\""), Host::default());
    let [linux_6_1, linux_6_12, linux_6_18] =
        ["linux-6.1", "linux-6.12", "linux-6.18"].map(|name| host(&format!("profile = \"{name}\"")));
    assert_eq!(linux_6_1, Host { mptcp_send_buffer: SendBufferRule::Largest, ..Host::default() });
    assert_eq!(linux_6_12, Host { release: LinuxRelease::V6_12, ..Host::default() });
    assert_eq!((linux_6_18.release, linux_6_18.receive_buffer.max), (LinuxRelease::V6_18, 32 << 20));
    let ns2 = Host { timestamps: true, window: Some(9000), ..Host::ns2() };
    assert_eq!(host("window = \"9000p\"\nprofile = \"ns-2\""), ns2, "in whatever order they stand");
    assert_eq!((ns2.recovery, ns2.handshake, ns2.initial_window), (LossRecovery::Fack, false, 2));
    let expected = Host { recovery: LossRecovery::Fack, initial_rto: Span::from_secs(3), ..Host::default() };
    assert_eq!(host("recovery = \"fack\"\ninitial_rto = \"3s\""), expected);
}

#[test]
fn a_paths_mtu_makes_room_for_larger_datagrams() {
    let small = SMALL.replace("queue = {", "mtu = \"3540b\"\nqueue = {");
    let udp = format!("{small}\n[[flow]]\nname = \"cbr\"\nkind = \"udp\"\nrate = \"1mbit\"\npacket = \"3500b\"");
    assert_eq!(experiment(&udp, &[]).paths[0].mtu, 3540);
}

#[test]
fn one_bandwidth_delay_product_follows_the_rate_and_the_delay_of_its_cell() {
    let limit = |sets: &[&str]| experiment(SMALL, sets).links[0].forward.queue.limit;
    assert_eq!(limit(&[]), QueueLimit::Bytes(250_000), "100 Mbit/s times 20 ms");
    assert_eq!(limit(&["path.wire.rate=10mbit"]), QueueLimit::Bytes(25_000));
    assert_eq!(limit(&["path.wire.delay=1ms", "path.wire.queue.limit=0.5bdp"]), QueueLimit::Bytes(12_500));
}

#[test]
fn an_application_writes_at_its_rate_or_answers_requests() {
    let application = |lines: &str| match experiment(&format!("{SMALL}{lines}\n"), &[]).flows.remove(0).kind {
        FlowKind::Tcp { application, size, .. } => (application, size),
        kind => panic!("{kind:?}"),
    };
    let rate = Rate::from_mbit(2);
    assert_eq!(application("rate = \"2mbit\""), (Application::Steady { rate, write: None }, None));
    let steady = Application::Steady { rate, write: Some(10_000) };
    assert_eq!(application("rate = \"2mbit\"\nwrite = \"10kB\"\nsize = \"1MB\""), (steady, Some(1_000_000)));
    let requests =
        |size, think, new_connections| (Application::Requests(Requests { size, think, new_connections }), None);
    let plain = requests(Distribution::Fixed(20_000.0), Distribution::Fixed(0.0), false);
    assert_eq!(application("requests = { size = \"20kB\" }"), plain);
    assert_eq!(
        application("requests = { size = { mean = \"20kB\", distribution = \"fixed\" }, connection = \"persistent\" }"),
        plain
    );
    // The mean of a Pareto distribution is its minimum times shape / (shape - 1).
    let drawn = "size = { mean = \"30kB\", distribution = \"pareto\", shape = 1.5 }, \
                 think = { mean = \"100ms\", distribution = \"exponential\" }";
    let pareto = Distribution::Pareto { min: 10_000.0, shape: 1.5 };
    assert_eq!(
        application(&format!("requests = {{ {drawn}, connection = \"new\" }}")),
        requests(pareto, Distribution::Exponential(100e6), true)
    );
}

#[test]
fn a_video_has_the_frames_and_the_player_that_are_asked_for() {
    let video = |keys: &str| match experiment(&format!("{SMALL}video = {{ {keys} }}\n"), &[]).flows.remove(0).kind {
        FlowKind::Tcp { application: Application::Video(video), .. } => *video,
        kind => panic!("{kind:?}"),
    };
    let s = Span::from_secs;
    let plain = Video {
        ladder: vec![Rate::from_mbit(5)],
        fps: 25,
        gop: 50,
        intra: 1.0,
        variation: 0.0,
        group_variation: 0.0,
        playback: Playback::Stored { startup: s(2), resume: s(2), ahead: s(30) },
    };
    assert_eq!(video("rate = \"5mbit\""), plain);
    let playback = Playback::Live { latency: Span::from_millis(500) };
    assert_eq!(video("rate = \"5mbit\", kind = \"live\""), Video { playback, ..plain.clone() });
    let keys = "ladder = [\"1mbit\", \"5mbit\"], fps = 30, intra = 4.5, variation = 0.2, group_variation = 1, \
                startup = \"4s\", resume = \"5s\", ahead = \"7s\"";
    let ladder = [1, 5].map(Rate::from_mbit).to_vec();
    let playback = Playback::Stored { startup: s(4), resume: s(5), ahead: s(7) };
    let expected = Video { ladder, fps: 30, gop: 60, intra: 4.5, variation: 0.2, group_variation: 1.0, playback };
    assert_eq!(video(keys), expected, "a group of two seconds");
    // A buffer that is not said is large enough for the group and the startup that are.
    let playback = Playback::Stored { startup: s(2), resume: s(2), ahead: s(42) };
    assert_eq!(video("rate = \"5mbit\", gop = 1000"), Video { gop: 1000, playback, ..plain });
    let swept =
        format!("{SMALL}video = {{ rate = \"1mbit\" }}\n[sweep]\n\"flow.tcp.video.rate\" = [\"2mbit\", \"5mbit\"]\n");
    assert_eq!(read(&swept, &[]).cells.len(), 2);
}

#[test]
fn queue_disciplines_have_the_defaults_of_tc() {
    let queue = |written: &str| {
        let text = SMALL.replace("queue = { limit = \"1bdp\" }", &format!("queue = {{ {written} }}"));
        experiment(&text, &[]).links[0].forward.queue
    };
    let thousand = QueueLimit::Packets(1000);
    let codel = CoDelConfig { target: Span::from_millis(5), interval: Span::from_millis(100), ce_threshold: None };
    let discipline = QueueDiscipline::CoDel(codel);
    assert_eq!(queue("discipline = \"codel\""), QueueConfig { limit: thousand, discipline, ecn: false });
    let (target, alpha, beta) = (Span::from_millis(15), 0.125, 1.25);
    let discipline = QueueDiscipline::Pie(PieConfig { target, tupdate: target, alpha, beta });
    assert_eq!(queue("discipline = \"pie\""), QueueConfig { limit: thousand, discipline, ecn: false });
    let discipline = QueueDiscipline::FqCodel(FqCodelConfig { flows: 1024, quantum: 1514, codel });
    let limit = QueueLimit::Packets(10_240);
    assert_eq!(queue("discipline = \"fq-codel\""), QueueConfig { limit, discipline, ecn: true });
    let (limit, discipline) =
        (QueueLimit::Bytes(4 << 20), QueueDiscipline::Cake(CakeConfig { rtt: Span::from_millis(100) }));
    assert_eq!(queue("discipline = \"cake\""), QueueConfig { limit, discipline, ecn: true });
    // The keys that are set count.
    let codel = CoDelConfig { ce_threshold: Some(Span::ZERO), ..codel };
    let discipline = QueueDiscipline::FqCodel(FqCodelConfig { flows: 8, quantum: 300, codel });
    let keys = "discipline = \"fq-codel\", flows = 8, quantum = \"300b\", ce_threshold = \"0s\", ecn = false";
    assert_eq!(queue(&format!("{keys}, limit = \"1000p\"")), QueueConfig { limit: thousand, discipline, ecn: false });
}

#[test]
fn a_parameter_called_file_has_the_contents_of_the_file_and_changes_the_hash_with_them() {
    let folder = std::env::temp_dir().join(format!("ropewalk-scenario-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text =
        |keys: &str| format!("name = \"x\"\nduration = \"1s\"\n{keys}[[path]]\nname = \"wire\"\nrate = \"1mbit\"\n");
    let flow = text("[[flow]]\nname = \"tcp\"\ncongestion = { name = \"policy\", file = \"x.onnx\" }\n");
    let tunnel = text(
        "[tunnel]\nmode = \"ropewalk\"\ncongestion = { name = \"policy\", file = \"x.onnx\" }\n[[flow]]\nname = \"tcp\"\n",
    );
    let read = |text: &str, contents: &str| {
        std::fs::write(folder.join("x.onnx"), contents).unwrap();
        ropewalk_scenario::parse("x.toml", text, &folder, &Overrides::default()).unwrap()
    };
    let expected = |contents: &str| ParamValue::File { path: folder.join("x.onnx"), bytes: contents.as_bytes().into() };
    let [first, same, other] = ["one", "one", "two"].map(|contents| read(&flow, contents));
    let FlowKind::Tcp { congestion, .. } = &first.cells[0].experiment.flows[0].kind else { panic!("a TCP flow") };
    assert_eq!(congestion.parameters["file"], expected("one"));
    assert_eq!(first.hash, same.hash);
    assert_ne!(first.hash, other.hash);
    let scenario = read(&tunnel, "three");
    let ropewalk = scenario.cells[0].experiment.tunnel.as_ref().unwrap().ropewalk.as_ref().unwrap();
    assert_eq!(ropewalk.options.congestion.parameters["file"], expected("three"));
    std::fs::remove_dir_all(&folder).unwrap();
}
