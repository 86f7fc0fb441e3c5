//! An experiment as commands: hosts, routers and links as namespaces and veth pairs, shaped by `tc`.
//!
//! ```text
//! s0 ---.                                          .--- d0
//! s1 --- r1 --(rate, queue)-- r2 --(delay, loss)-- r3 --- d1
//! ```
//!
//! Data goes from left to right: its queue stands in r1, its delay and loss in r2, one hop behind the queue, so that a
//! sender's own stack neither sees the queue nor holds packets back for it. Acknowledgements come back the same way,
//! with their queue in r3 and their delay in r2. Where the scenario says `local`, the queue stands in s0 (d0) instead.
//! Every flow has hosts of its own: settings and counters are a namespace's.
//!
//! The shaper is a token bucket with room for little more than one packet; its queue holds, as the simulator's, the packets
//! that wait. A packet leaves it at the beginning of its transmission; the time that this takes is added to the delay.

use scenario::model::{Change, Directions, Experiment, FlowKind, Host, Limit, Loss, Pipe};
use units::Span;

/// `tc` counts the 14 bytes of a packet's Ethernet header; a scenario's overhead is on top of the IP packet.
const ETHERNET: i64 = 14;
/// A full IP packet, bytes.
const MTU: u32 = 1500;
/// The TCP timestamp option, bytes.
const TIMESTAMPS: u32 = 12;

/// The port every receiver listens on.
pub(crate) const PORT: u16 = 5000;

/// The addresses of flow `k`'s hosts.
pub(crate) fn addresses(k: usize) -> [std::net::Ipv4Addr; 2] {
    [1, 2].map(|side| std::net::Ipv4Addr::new(10, side, k as u8, 1))
}

/// One direction of the path: its description, where its queue and where its delay stand (namespace and device).
#[derive(Clone, Debug)]
struct Way {
    pipe: Pipe,
    queue: [&'static str; 2],
    delay: [&'static str; 2],
}

/// Every command that lays out `experiment`, in order; then those of its events, each with its instant. `burst` is the
/// room in the token bucket, packets.
pub(crate) fn commands(experiment: &Experiment, burst: u32) -> (Vec<String>, Vec<(Span, String)>) {
    let mut ways = ways(experiment);
    let mut setup = routers();
    for (k, flow) in experiment.flows.iter().enumerate() {
        setup.extend(hosts(k));
        if let FlowKind::Tcp { congestion, host, .. } = &flow.kind {
            setup.extend(settings(k, &congestion.name, host));
            // What the source has written is sent, even after it has stopped: let it write little ahead.
            setup.extend(flow.stop.map(|_| format!("ip netns exec s{k} sysctl -qw net.ipv4.tcp_notsent_lowat=16384")));
        }
    }
    for way in &ways {
        setup.extend(shaper(way, "add", burst));
        setup.push(wire(way, "add"));
    }
    let events = experiment.events.iter().flat_map(|event| {
        let at = event.at.since(units::Instant::ZERO);
        change(&mut ways, event, burst).into_iter().map(move |line| (at, line))
    });
    (setup, events.collect())
}

/// Commands that print the counters of the data direction: of its queue, then of its wire.
pub(crate) fn counters(experiment: &Experiment) -> Vec<String> {
    let [forward, _] = ways(experiment);
    [forward.queue, forward.delay]
        .map(|[space, device]| format!("tc -s -j -n {space} qdisc show dev {device}"))
        .to_vec()
}

/// Commands after which no host sends any more.
pub(crate) fn silence(experiment: &Experiment) -> Vec<String> {
    (0..experiment.flows.len()).map(|k| format!("ip -n s{k} link set dev eth0 down")).collect()
}

/// Commands that print the counters of each flow's source, then of its sink.
pub(crate) fn totals(experiment: &Experiment) -> Vec<String> {
    let hosts = (0..experiment.flows.len()).flat_map(|k| [format!("s{k}"), format!("d{k}")]);
    hosts.map(|name| format!("ip -s -j -n {name} link show dev eth0")).collect()
}

/// Time for what is under way when the run ends to arrive, before what never did is counted.
pub(crate) fn drain(experiment: &Experiment) -> Span {
    let forward = &experiment.links[0].forward;
    let bytes = match forward.queue.limit {
        Limit::Packets(packets) => packets * u64::from(MTU + forward.overhead),
        Limit::Bytes(bytes) => bytes,
        Limit::Time(_) => 0,
    };
    forward.delay + forward.rate.map_or(Span::ZERO, |rate| rate.time_for(bytes)) + Span::from_millis(200)
}

fn ways(experiment: &Experiment) -> [Way; 2] {
    let link = &experiment.links[0];
    let queue = |pipe: &Pipe, local, router| if pipe.local { local } else { router };
    [
        Way {
            pipe: link.forward.clone(),
            queue: queue(&link.forward, ["s0", "eth0"], ["r1", "right"]),
            delay: ["r2", "right"],
        },
        Way {
            pipe: link.reverse.clone(),
            queue: queue(&link.reverse, ["d0", "eth0"], ["r3", "left"]),
            delay: ["r2", "left"],
        },
    ]
}

/// The three routers in their chain.
fn routers() -> Vec<String> {
    let mut lines: Vec<String> = ["r1", "r2", "r3"].iter().flat_map(|name| namespace(name)).collect();
    lines.extend(["r1", "r2", "r3"].map(|name| format!("ip netns exec {name} sysctl -qw net.ipv4.ip_forward=1")));
    lines.extend(cable(["r1", "right"], ["r2", "left"], "10.0.1", "00:01"));
    lines.extend(cable(["r2", "right"], ["r3", "left"], "10.0.2", "00:02"));
    lines.extend(
        [
            "ip -n r1 route add 10.2.0.0/16 via 10.0.1.2",
            "ip -n r2 route add 10.2.0.0/16 via 10.0.2.2",
            "ip -n r2 route add 10.1.0.0/16 via 10.0.1.1",
            "ip -n r3 route add 10.1.0.0/16 via 10.0.2.1",
        ]
        .map(str::to_owned),
    );
    lines
}

/// The two hosts of flow `k`, each on a cable to its router.
fn hosts(k: usize) -> Vec<String> {
    let (source, sink) = (format!("s{k}"), format!("d{k}"));
    let mut lines = [namespace(&source), namespace(&sink)].concat();
    lines.extend(cable([&source, "eth0"], ["r1", &source], &format!("10.1.{k}"), &format!("01:{k:02x}")));
    lines.extend(cable([&sink, "eth0"], ["r3", &sink], &format!("10.2.{k}"), &format!("02:{k:02x}")));
    lines
}

fn namespace(name: &str) -> [String; 2] {
    [format!("ip netns add {name}"), format!("ip -n {name} link set lo up")]
}

/// A veth pair. Offloads are off, so that packets have the MTU's size; neighbours are known, so that none is asked for.
fn cable(a: [&str; 2], b: [&str; 2], net: &str, mac: &str) -> Vec<String> {
    let mac = |end| format!("02:00:00:{mac}:{end:02x}");
    let [[a_space, a_name], [b_space, b_name]] = [a, b];
    let mut lines = vec![format!(
        "ip link add {a_name} netns {a_space} address {} type veth peer name {b_name} netns {b_space} address {}",
        mac(1),
        mac(2)
    )];
    for (end, [space, name]) in [(1, a), (2, b)] {
        let other = 3 - end;
        lines.push(format!("ip netns exec {space} ethtool -K {name} tso off gso off gro off"));
        lines.push(format!("ip -n {space} address add {net}.{end}/24 dev {name}"));
        lines.push(format!("ip -n {space} link set dev {name} up"));
        lines.push(format!(
            "ip -n {space} neighbour replace {net}.{other} lladdr {} dev {name} nud permanent",
            mac(other)
        ));
    }
    lines
}

/// TCP on both hosts of flow `k`.
fn settings(k: usize, congestion: &str, host: &Host) -> Vec<String> {
    let flag = u8::from;
    let [least, initial, most] = host.receive_buffer;
    // ECN, 2, Linux's default: ECN if the other side asks for it, as DCTCP does by itself.
    let ecn = if host.ecn { 1 } else { 2 };
    let mut sysctls = vec![
        format!("tcp_congestion_control={congestion}"),
        "tcp_no_metrics_save=1".to_owned(),
        format!("tcp_timestamps={}", flag(host.timestamps)),
        format!("tcp_sack={}", flag(host.sack)),
        format!("tcp_ecn={ecn}"),
        format!("tcp_rmem={least} {initial} {most}"),
        format!("tcp_wmem=4096 16384 {}", host.send_buffer),
        format!("tcp_reordering={}", host.reordering),
        format!("tcp_max_reordering={}", host.max_reordering),
    ];
    sysctls.iter_mut().for_each(|line| *line = format!("\"net.ipv4.{line}\""));
    let mut route = format!("initcwnd {}", host.initial_window);
    if host.quick_ack {
        route += " quickack 1";
    }
    if let Some(mss) = host.mss {
        route += &format!(" advmss {}", mss + if host.timestamps { TIMESTAMPS } else { 0 });
    }
    let mut lines = Vec::new();
    for (name, side) in [(format!("s{k}"), 1), (format!("d{k}"), 2)] {
        lines.extend(sysctls.iter().map(|sysctl| format!("ip netns exec {name} sysctl -qw {sysctl}")));
        lines.push(format!("ip -n {name} route add default via 10.{side}.{k}.2 {route}"));
    }
    if host.pacing {
        lines.push(format!("tc -n s{k} qdisc add dev eth0 root fq limit 1000000 flow_limit 1000000"));
    }
    lines
}

/// The transmitter with its queue. `limit` stands twice because a change of the bucket changes its queue's limit too.
fn shaper(way: &Way, verb: &str, burst: u32) -> Vec<String> {
    let Some(rate) = way.pipe.rate else { return Vec::new() };
    let [space, device] = way.queue;
    let (fifo, limit) = match way.pipe.queue.limit {
        Limit::Packets(packets) => ("pfifo", packets),
        Limit::Bytes(bytes) => ("bfifo", bytes),
        Limit::Time(_) => unreachable!("refused by `check`"),
    };
    let overhead = i64::from(way.pipe.overhead) - ETHERNET;
    let size = if overhead == 0 { String::new() } else { format!(" stab overhead {overhead}") };
    // Room for rounding: a packet that is larger than the bucket would be dropped.
    let bucket = (MTU + way.pipe.overhead) * burst + 64;
    let bits = rate.as_bits();
    let mut lines = vec![format!(
        "tc -n {space} qdisc {verb} dev {device} root handle 1:{size} tbf rate {bits}bit burst {bucket}b limit {limit}"
    )];
    if verb == "add" {
        lines.push(format!("tc -n {space} qdisc add dev {device} parent 1:1 handle 10: {fifo} limit {limit}"));
    }
    lines
}

/// Delay and loss. tbf hands a packet on when its transmission would begin; netem's rate adds the time that it takes.
fn wire(way: &Way, verb: &str) -> String {
    let [space, device] = way.delay;
    let limit = way.pipe.wire_limit.unwrap_or(1_000_000);
    let delay = way.pipe.delay.as_nanos() as f64 / 1e3;
    let loss = match way.pipe.loss {
        Loss::Random(share) => format!(" loss random {}%", share * 100.0),
        Loss::None | Loss::GilbertElliott { .. } => String::new(),
    };
    let overhead = i64::from(way.pipe.overhead) - ETHERNET;
    let rate = way.pipe.rate.map_or(String::new(), |rate| format!(" rate {}bit {overhead}", rate.as_bits()));
    format!("tc -n {space} qdisc {verb} dev {device} root netem limit {limit} delay {delay}us{loss}{rate}")
}

/// An event's commands; `ways` keeps what they come to.
fn change(ways: &mut [Way; 2], event: &Change, burst: u32) -> Vec<String> {
    let touched = match event.directions {
        Directions::Forward => &mut ways[..1],
        Directions::Reverse => &mut ways[1..],
        Directions::Both => &mut ways[..],
    };
    let mut lines = Vec::new();
    for way in touched {
        if let Some(rate) = event.rate {
            way.pipe.rate = Some(rate);
            lines.extend(shaper(way, "change", burst));
        }
        way.pipe.delay = event.delay.unwrap_or(way.pipe.delay);
        way.pipe.loss = event.loss.unwrap_or(way.pipe.loss);
        lines.push(wire(way, "change"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(sets: &[&str]) -> (Vec<String>, Vec<(Span, String)>) {
        let text = "name = \"x\"\nduration = \"1s\"\n\
                    [[path]]\nname = \"w\"\nrate = \"20mbit\"\ndelay = \"2500us\"\nqueue = { limit = \"13p\" }\n\
                    [[flow]]\nname = \"t\"\n\
                    [[event]]\nat = \"500ms\"\npath = \"w\"\nrate = \"1mbit\"\nloss = \"1%\"\ndirection = \"forward\"\n";
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario =
            scenario::parse("test", text, std::path::Path::new(""), &scenario::Overrides { sets, quick: false })
                .expect("a good scenario");
        commands(&scenario.cells[0].experiment, 1)
    }

    #[test]
    fn the_queue_stands_one_hop_before_the_delay() {
        let (setup, _) = lines(&["path.w.overhead=38b"]);
        let tc: Vec<&str> = setup.iter().map(String::as_str).filter(|line| line.starts_with("tc ")).collect();
        // 38 bytes around the IP packet are 24 around the Ethernet frame; 1538 bytes and some room in the bucket.
        let shaper = "root handle 1: stab overhead 24 tbf rate 20000000bit burst 1602b limit 13";
        let wire = "root netem limit 1000000 delay 2500us rate 20000000bit 24";
        let expected = [
            format!("tc -n r1 qdisc add dev right {shaper}"),
            "tc -n r1 qdisc add dev right parent 1:1 handle 10: pfifo limit 13".to_owned(),
            format!("tc -n r2 qdisc add dev right {wire}"),
            format!("tc -n r3 qdisc add dev left {shaper}"),
            "tc -n r3 qdisc add dev left parent 1:1 handle 10: pfifo limit 13".to_owned(),
            format!("tc -n r2 qdisc add dev left {wire}"),
        ];
        assert_eq!(tc, expected);
    }

    #[test]
    fn an_event_states_the_whole_discipline_anew() {
        let (_, events) = lines(&["path.w.overhead=14b"]);
        let shaper = "tc -n r1 qdisc change dev right root handle 1: tbf rate 1000000bit burst 1578b limit 13";
        let wire =
            "tc -n r2 qdisc change dev right root netem limit 1000000 delay 2500us loss random 1% rate 1000000bit 0";
        let at = Span::from_millis(500);
        assert_eq!(events, [(at, shaper.to_owned()), (at, wire.to_owned())]);
    }

    #[test]
    fn a_local_queue_stands_in_the_sending_host() {
        let (setup, _) = lines(&["path.w.local=true"]);
        assert!(
            setup.iter().any(|line| line.starts_with("tc -n s0 qdisc add dev eth0 root handle 1: stab overhead -14"))
        );
    }
}
