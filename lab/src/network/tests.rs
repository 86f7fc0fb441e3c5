use super::*;
use scenario::Overrides;
use std::path::Path;

const SINGLE: &str = "name = \"x\"\nduration = \"1s\"\n\
    [[path]]\nname = \"w\"\nrate = \"20mbit\"\ndelay = \"2500us\"\nqueue = { limit = \"13p\" }\n\
    [[flow]]\nname = \"t\"\n";
/// The second path has a link that only delays, and one with a rate.
const DOUBLE: &str = "name = \"x\"\nduration = \"1s\"\n\
    [[link]]\nname = \"a\"\nrate = \"20mbit\"\nqueue = { limit = \"13p\" }\n\
    [[link]]\nname = \"far\"\ndelay = \"20ms\"\n\
    [[link]]\nname = \"b\"\nrate = \"20mbit\"\nqueue = { limit = \"13p\" }\n\
    [[path]]\nname = \"one\"\nlinks = [\"a\"]\n[[path]]\nname = \"two\"\nlinks = [\"far\", \"b\"]\n";
const MPTCP: &str = "[[flow]]\nname = \"t\"\nkind = \"mptcp\"\n";
const TUNNEL: &str =
    "[[flow]]\nname = \"t\"\n[tunnel]\nkind = \"mpt-gre\"\nresequence = { window = \"1600p\", timeout = \"300ms\" }\n";

fn experiment(text: &str, sets: &[&str]) -> Experiment {
    let overrides = Overrides { sets: sets.iter().map(|set| (*set).to_owned()).collect(), quick: false };
    let scenario = scenario::parse("test", text, Path::new(""), &overrides);
    scenario.unwrap_or_else(|error| panic!("{error}")).cells[0].experiment.clone()
}

fn environment(netem: bool) -> Environment {
    Environment {
        prefix: String::new(),
        folder: "/run/lab".into(),
        sockets: "/run/ropewalk".into(),
        program: "rw".into(),
        agent: "rw agent".into(),
        netem,
        red: netem,
        burst: 1,
        generator: Generator::Agent,
        capture_program: None,
    }
}

fn setup(text: &str, sets: &[&str], netem: bool) -> Vec<String> {
    Network::new(&experiment(text, sets), &environment(netem)).setup()
}

fn starting<'a>(lines: &'a [String], word: &str) -> Vec<&'a str> {
    lines.iter().map(String::as_str).filter(|line| line.starts_with(word)).collect()
}

#[test]
fn the_queue_stands_one_hop_before_the_delay() {
    let lines = setup(SINGLE, &["path.w.overhead=38b"], true);
    // 38 bytes around the IP packet are 24 around the Ethernet frame; 1538 bytes and some room in the bucket.
    let shaper = "root handle 1: stab overhead 24 tbf rate 20000000bit burst 1602b limit 13";
    let wire = "root netem limit 1000000 delay 2500us rate 20000000bit 24";
    let expected = [
        format!("tc -n l0a qdisc add dev right {shaper}"),
        "tc -n l0a qdisc add dev right parent 1:1 handle 10: pfifo limit 13".to_owned(),
        format!("tc -n l0b qdisc add dev right {wire}"),
        format!("tc -n l0c qdisc add dev left {shaper}"),
        "tc -n l0c qdisc add dev left parent 1:1 handle 10: pfifo limit 13".to_owned(),
        format!("tc -n l0b qdisc add dev left {wire}"),
    ];
    assert_eq!(starting(&lines, "tc "), expected);
}

/// `tc -d qdisc show` of iproute2 6.1 calls the first's weight `ewma 9`, which is 1/512; with a burst of 70 it is 10.
#[test]
fn red_and_cake_are_as_the_simulators() {
    let queue = |words: &str| {
        let lines =
            setup(SINGLE, &[&format!("path.w.queue={{ limit = \"100kB\", {words} }}"), "path.w.overhead=14b"], true);
        starting(&lines, "tc -n l0a qdisc add dev right parent 1:1 handle 10: ")[0]
            .rsplit(": ")
            .next()
            .unwrap()
            .to_owned()
    };
    let red = "red limit 100000 min 5000 max 15000 avpkt 1000 burst 65 probability 0.02 bandwidth 20000000bit";
    assert_eq!(queue("discipline = \"red\", min = \"5kB\", max = \"15kB\", probability = \"2%\", weight = 0.002"), red);
    assert_eq!(queue("discipline = \"drophead\""), "pfifo_head_drop limit 67", "full packets in 100 kB");
    assert_eq!(
        queue("discipline = \"cake\", rtt = \"50ms\""),
        "cake unlimited besteffort flows rtt 50000us memlimit 100000"
    );
}

#[test]
fn a_policer_filters_what_the_first_router_sends() {
    let policer = "path.w.policer={ rate = \"2mbit\", burst = \"10kB\" }";
    let filters = |sets: &[&str]| {
        let lines = setup(SINGLE, &[&[policer], sets].concat(), true);
        lines.iter().filter(|line| line.contains("clsact") || line.contains(" filter ")).cloned().collect::<Vec<_>>()
    };
    let police = "egress matchall action police rate 2000000bit burst 10000b";
    let expected = [
        "tc -n l0a qdisc add dev right clsact".to_owned(),
        format!("tc -n l0a filter add dev right {police} overhead 24 conform-exceed drop/ok"),
        "tc -n l0c qdisc add dev left clsact".to_owned(),
        format!("tc -n l0c filter add dev left {police} overhead 24 conform-exceed drop/ok"),
    ];
    assert_eq!(filters(&["path.w.overhead=38b"]), expected);
    assert!(filters(&[]).iter().all(|line| !line.contains("overhead")), "Ethernet's header cannot be left out");
}

#[test]
fn impairments_of_the_wire_are_netems_or_the_emulators() {
    let shares = ["path.w.duplicate=1%", "path.w.corrupt=0.5%", "path.w.reorder=25%", "path.w.overhead=14b"];
    let wire = "tc -n l0b qdisc add dev right root netem limit 1000000 delay 2500us duplicate 1% corrupt 0.5% reorder 25% \
                rate 20000000bit 0";
    assert!(setup(SINGLE, &shares, true).iter().any(|line| line == wire), "{:#?}", setup(SINGLE, &shares, true));
    let emulated = setup(SINGLE, &shares, false);
    let words = " delay=2500000ns jitter=0ns loss=0% duplicate=1% corrupt=0.5% reorder=25% ";
    assert!(emulated.iter().any(|line| line.contains(words)), "{emulated:#?}");
    let all = [
        "path.w.reorder={ share = \"25%\", correlation = \"50%\", gap = 5 }",
        "path.w.slot={ min = \"800us\", max = \"1ms\", packets = 32, bytes = \"42kB\" }",
        "path.w.overhead=14b",
    ];
    let has = |lines: &[String], words: &str| assert!(lines.iter().any(|line| line.contains(words)), "{lines:#?}");
    has(&setup(SINGLE, &all, true), " reorder 25% 50% gap 5 slot 800us 1000us packets 32 bytes 42000 rate");
    has(&setup(SINGLE, &all, false), " reorder=25%:0.5:5 slot=800000ns:1000000ns:32:42000 ");
}

#[test]
fn an_event_states_the_whole_discipline_anew() {
    let event = "[[event]]\nat = \"500ms\"\npath = \"w\"\nrate = \"1mbit\"\nloss = \"1%\"\ndirection = \"forward\"\n\
                 [[event]]\nat = \"600ms\"\npath = \"w\"\nup = false\ndirection = \"forward\"\n";
    let text = format!("{SINGLE}{event}");
    let experiment = experiment(&text, &["path.w.overhead=14b"]);
    let environment = environment(true);
    let shaper = "tc -n l0a qdisc change dev right root handle 1: tbf rate 1000000bit burst 1578b limit 13";
    let wire = |loss: &str| {
        format!(
            "tc -n l0b qdisc change dev right root netem limit 1000000 delay 2500us loss random {loss} rate 1000000bit 0"
        )
    };
    let [first, second] = [500, 600].map(Span::from_millis);
    let expected = [(first, shaper.to_owned()), (first, wire("1%")), (second, wire("100%"))];
    assert_eq!(Network::new(&experiment, &environment).events(), expected);
}

#[test]
fn handovers_and_random_walks_are_events() {
    let keys = [
        "path.w.handover={ period = \"600ms\", outage = \"50ms\" }",
        "path.w.rate_walk={ min = \"1mbit\", max = \"20mbit\", deviation = \"5mbit\", interval = \"500ms\" }",
        "path.w.reverse.rate=5mbit",
    ];
    let (experiment, environment) = (experiment(SINGLE, &keys), environment(true));
    let experiment = experiment.with_seed(1);
    let rate = experiment.events[0].rate.unwrap().as_bits();
    let lines = Network::new(&experiment, &environment).events();
    let times: Vec<u64> = lines.iter().map(|(at, _)| at.as_millis()).collect();
    assert_eq!(times, [500, 500, 600, 600, 650, 650], "tbf and netem; netem there and back, twice");
    assert!(lines[0].1.contains(&format!("tbf rate {rate}bit")) && lines[1].1.contains(&format!(" rate {rate}bit ")));
    assert!(lines[2..4].iter().all(|(_, line)| line.contains("loss random 100%")), "{lines:#?}");
    assert!(lines[4..].iter().all(|(_, line)| !line.contains("loss")), "{lines:#?}");
}

#[test]
fn a_local_queue_stands_in_the_sending_host() {
    let lines = setup(SINGLE, &["path.w.local=true"], true);
    assert_eq!(starting(&lines, "tc -n s0 qdisc add dev p0 root handle 1: stab overhead -14").len(), 1);
}

#[test]
fn a_router_without_work_is_left_out() {
    let namespaces = |sets: &[&str]| {
        let lines = setup(SINGLE, sets, true);
        starting(&lines, "ip netns add")
            .iter()
            .map(|line| line.rsplit(' ').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(namespaces(&[]), ["s0", "d0", "l0a", "l0b", "l0c"]);
    assert_eq!(namespaces(&["path.w.local=true"]), ["s0", "d0", "l0b"]);
    let lines = setup(SINGLE, &["path.w.local=true"], true);
    let wires = ["tc -n l0b qdisc add dev d0p0 root netem", "tc -n l0b qdisc add dev s0p0 root netem"];
    assert!(wires.iter().all(|wire| starting(&lines, wire).len() == 1), "{lines:#?}");
}

#[test]
fn every_path_of_an_mptcp_connection_leads_to_an_address_of_its_own() {
    let lines = setup(&format!("{DOUBLE}{MPTCP}"), &[], true);
    let routes = starting(&lines, "ip -n s0 route add");
    assert_eq!(
        routes,
        [
            "ip -n s0 route add 10.2.0.0/24 via 10.1.0.2 dev p0 initcwnd 10",
            "ip -n s0 route add 10.4.0.0/24 via 10.3.0.2 dev p1 initcwnd 10"
        ]
    );
    assert_eq!(starting(&lines, "ip -n d0 mptcp endpoint"), ["ip -n d0 mptcp endpoint add 10.4.0.1 dev p1 signal"]);
    // The second path: a router that delays, joined to three that shape.
    assert_eq!(
        starting(&lines, "ip -n l1b route replace 10.4"),
        ["ip -n l1b route replace 10.4.0.0/24 via 10.255.0.2"]
    );
    assert_eq!(
        starting(&lines, "ip -n l2a route replace 10.3"),
        ["ip -n l2a route replace 10.3.0.0/24 via 10.255.0.1"]
    );
}

#[test]
fn without_netem_a_wire_that_does_something_is_a_process() {
    let lines = setup(&format!("{DOUBLE}{MPTCP}"), &[], false);
    let processes = starting(&lines, "rw agent link");
    let shape = "delay=20000000ns jitter=0ns loss=0%";
    assert_eq!(
        processes,
        [format!("rw agent link l1a right l1c left {shape} / {shape} <>/run/lab/link1 >/run/lab/link1.log 2>&1 &")]
    );
    assert!(starting(&lines, "tc -n l0a qdisc add dev right root").len() == 1 && !lines.join("").contains("netem"));
}

#[test]
fn both_ends_of_a_tunnel_are_configured_and_started() {
    let device = "tunnel.device={ ring = \"1500p\", socket = \"92p\" }";
    let lines = setup(&format!("{DOUBLE}{TUNNEL}"), &[device], true);
    assert!(lines.iter().any(|line| line == "ip -n d0 link set dev rwfar txqueuelen 1500"), "{lines:#?}");
    let files = starting(&lines, "cat >");
    let paths = "[[path]]\nname = \"one\"\ninterface = \"p0\"\nsource = \"10.1.0.1\"\nendpoint = \"10.2.0.1\"\nweight = 1\n\n\
                 [[path]]\nname = \"two\"\ninterface = \"p1\"\nsource = \"10.3.0.1\"\nendpoint = \"10.4.0.1\"\nweight = 1\n";
    assert!(files[0].starts_with("cat >/run/lab/rwnear.toml") && files[0].contains(paths), "{}", files[0]);
    assert!(files[0].contains("offload = false"), "the scenario's device holds packets back: {}", files[0]);
    assert!(
        files[0].contains("reorder-window = 1600") && files[0].contains("max-reorder-timeout = \"300000us\""),
        "{}",
        files[0]
    );
    assert!(
        files[1].contains("address = \"10.77.0.2/24\"") && files[1].contains("source = \"10.4.0.1\""),
        "{}",
        files[1]
    );
    assert_eq!(starting(&lines, "ROPEWALK_RUN=").len(), 2);
}

#[test]
fn both_ends_of_a_tunnel_relay_and_the_far_one_by_the_default_of_its_host() {
    let text = format!("{DOUBLE}[[flow]]\nname = \"t\"\n[tunnel]\nmode = \"ropewalk\"\n");
    let far_default = "ip netns exec d0 sysctl -qw net.ipv4.tcp_congestion_control=reno";
    for (sets, relays) in [(vec![], false), (vec!["tunnel.relay=tcp", "tunnel.relay_congestion=reno"], true)] {
        let lines = setup(&text, &sets, true);
        let files = starting(&lines, "cat >");
        assert_eq!(
            [0, 1].map(|end: usize| files[end].contains("[tunnel]\nrelay = \"tcp\"\n")),
            [relays; 2],
            "{files:?}"
        );
        assert_eq!(lines.iter().any(|line| line == far_default), relays, "{lines:#?}");
    }
}

#[test]
fn flows_of_a_tunnel_share_its_hosts_at_ports_of_their_own() {
    let rival = "[[flow]]\nname = \"u\"\nstop = \"500ms\"\n";
    let experiment = experiment(&format!("{DOUBLE}{TUNNEL}{rival}"), &["host.initial_window=20"]);
    let environment = environment(true);
    let network = Network::new(&experiment, &environment);
    let lines = network.setup();
    let sinks = [0, 1].map(|k| network.flow_ends(k)[1].clone()).map(|side| format!("{} {}", side.netns, side.address));
    assert_eq!(sinks, ["d0 10.77.0.2:5000", "d0 10.77.0.2:5001"]);
    assert_eq!(
        [network.has_host_counters(0), network.has_host_counters(1), network.host_paths().len() == 2],
        [true, false, true]
    );
    assert_eq!((starting(&lines, "ROPEWALK_RUN=").len(), starting(&lines, "ip netns add s").len()), (2, 1));
    let near = "ip -n s0 route replace 10.77.0.2 dev rwnear initcwnd 20";
    assert_eq!(lines.iter().filter(|line| *line == near).count(), 1, "what routes say holds inside: {lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.contains("notsent_lowat")).count(), 2, "one of the flows stops");
}

/// TCP's super-segments are cut for a device that takes one segment at a time.
#[test]
fn hosts_without_super_segments_have_devices_for_single_ones() {
    let devices = |text: &str, sets: &[&str]| {
        let lines = setup(text, sets, true);
        lines.into_iter().filter(|line| line.ends_with(" gso_max_segs 1")).collect::<Vec<_>>()
    };
    assert_eq!(devices(SINGLE, &[]), [""; 0]);
    assert_eq!(devices(SINGLE, &["host.tso=false"]), ["ip -n s0 link set dev p0 gso_max_segs 1"]);
    let inner = devices(&format!("{DOUBLE}{TUNNEL}"), &["host.tso=false"]);
    assert_eq!(inner, ["ip -n s0 link set dev rwnear gso_max_segs 1"], "and not its paths");
}

#[test]
fn the_picture_has_a_line_for_every_path() {
    let text = format!("{DOUBLE}{MPTCP}");
    let experiment = experiment(&text, &[]);
    let drawn = draw_topology(&Network::new(&experiment, &environment(true)));
    let expected = "  s0 --+-- [a: 20 Mbit/s, queue 13 packets] ------------------+-- d0\n     \
                    --+-- [far: 20 ms] -- [b: 20 Mbit/s, queue 13 packets] --+--\n";
    assert_eq!(drawn, expected);
}

#[test]
fn on_demand_each_host_records_all_its_devices() {
    let text = format!("{DOUBLE}{TUNNEL}");
    let (experiment, mut environment) = (experiment(&text, &[]), environment(true));
    assert!(Network::new(&experiment, &environment).end_captures().is_empty());
    environment.capture_program = Some(CaptureProgram::Dumpcap);
    let network = Network::new(&experiment, &environment);
    let lines = network.setup();
    let program = "dumpcap -q -N 500000 -C 100000000 -i p0 -s 128 -i p1 -s 128 -i rwfar -s 128";
    let expected = format!("ip netns exec d0 {program} -w /run/lab/d0.pcapng >/run/lab/d0.pcapng.log 2>&1 & ");
    assert!(starting(&lines, &expected).len() == 1 && network.end_captures().len() == 2, "{lines:#?}");
}

/// Endpoints are announced by the host that listens: with FTP the source.
#[test]
fn a_file_by_ftp_is_fetched_from_all_addresses_of_the_source() {
    let text = format!("{DOUBLE}[[flow]]\nname = \"t\"\nkind = \"mptcp\"\nsize = \"1MB\"\ncongestion = \"reno\"\n");
    let (experiment, mut environment) = (experiment(&text, &[]), environment(true));
    environment.generator = Generator::Ftp;
    let network = Network::new(&experiment, &environment);
    let (lines, programs) = (network.setup(), network.programs(0, Instant::ZERO).unwrap());
    let endpoints = starting(&lines, "ip -n s0 mptcp endpoint");
    assert_eq!(endpoints, ["ip -n s0 mptcp endpoint add 10.3.0.1 dev p1 signal"]);
    assert!(starting(&lines, "ip -n d0 mptcp endpoint").is_empty());
    assert!(starting(&lines, "ip netns exec s0 sysctl").join("").contains("net.ipv4.tcp_congestion_control=reno"));
    let files = lines[lines.len() - 2..].join("\n");
    assert!(
        files.contains("truncate -s 1000000 /run/ropewalk/vsftpd-0.ftp/data") && files.contains("pasv_min_port=5000")
    );
    assert_eq!([programs.server.netns.as_str(), &programs.client.netns], ["s0", "d0"]);
    assert_eq!(programs.server.line, "mptcpize run vsftpd /run/ropewalk/vsftpd-0.conf");
    assert!(
        programs.client.line.starts_with("mptcpize run wget ")
            && programs.client.line.ends_with(" ftp://10.1.0.1/data")
    );
}

#[test]
fn iperf3_is_told_what_the_flow_is() {
    let mut environment = environment(true);
    environment.generator = Generator::Iperf3;
    let client = |sets: &[&str], start: Instant| {
        let experiment = experiment(SINGLE, sets);
        Network::new(&experiment, &environment).programs(0, start).unwrap().client.line
    };
    let common = "--congestion cubic --time";
    let line = client(&["duration=20s", "sample=500ms"], Instant::ZERO + Span::from_millis(4));
    let expected = format!(
        "--client 10.2.0.1 --port 5000 --version4 --bind 10.1.0.1 --cport 5000 {common} 20 --interval 0.5 --json"
    );
    assert_eq!(line, format!("iperf3 {expected}"));
    assert!(
        client(&["duration=20s", "flow.t.stop=10s"], Instant::ZERO).contains(&format!("{common} 10 --interval 1 "))
    );
    let sized = client(&["flow.t.size=1MB", "host.ip=6"], Instant::ZERO);
    assert!(
        sized.contains("--client fd00:2::1 ") && sized.contains("--version6") && sized.contains("--bytes 1000000 "),
        "{sized}"
    );
}

#[test]
fn a_path_that_no_flow_takes_is_not_built() {
    let event = "[[event]]\nat = \"500ms\"\npath = \"two\"\nup = false\n";
    let experiment = experiment(&format!("{DOUBLE}[[flow]]\nname = \"t\"\npath = \"one\"\n{event}"), &[]);
    let environment = environment(true);
    let network = Network::new(&experiment, &environment);
    assert!(network.setup().iter().all(|line| !line.contains("l1") && !line.contains("l2")));
    assert_eq!((network.link_counters(0).len(), network.link_counters(1).len(), network.events().len()), (2, 0, 0));
}

#[test]
fn a_queue_that_the_kernel_lacks_is_the_emulators() {
    let red = "path.w.queue={ limit = \"300p\", discipline = \"red\", min = \"25kB\", max = \"75kB\", weight = 0.002 }";
    let lines = setup(SINGLE, &[red], false);
    let queue = "rate=20000000bit overhead=0b queue=300p red=25000:75000:0.02:0.002";
    let emulators: Vec<&String> = lines.iter().filter(|line| line.contains(" link ")).collect();
    assert!(emulators.iter().any(|line| line.contains(queue)), "{emulators:?}");
    assert!(!lines.iter().any(|line| line.contains("tbf")), "the rate is the emulator's: {lines:?}");
}
