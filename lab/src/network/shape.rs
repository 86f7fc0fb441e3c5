//! The shaping of links: token bucket filters with their queues, delays, losses.
//!
//! The bucket holds little more than one packet; its queue holds, as the simulator's, the waiting packets. A packet
//! leaves it at the beginning of its transmission, whose duration is added to the delay. Where the kernel has no
//! `netem`, an emulator (`agent link`) delays and loses packets, and takes changes through a named pipe.

use super::topology::{Hop, Interface};
use super::{Environment, MTU, Network, uplink};
use crate::emulator::DISTRIBUTIONS;
use link::{
    CakeConfig, CoDelConfig, FqCodelConfig, Jitter, JitterDistribution, LossModel, PieConfig, PipeConfig,
    PolicerConfig, QueueDiscipline, QueueLimit, RedConfig, Reordering, SlotConfig,
};
use scenario::model::{Change, Directions, Link};
use std::fmt::Write;
use units::{Rate, Span};

/// `tc` counts the 14 bytes of a packet's Ethernet header; a scenario's overhead is on top of the IP packet.
const ETHERNET: i64 = 14;
/// The longest delay that is not emulated, because the emulator is less exact.
const MAX_IGNORED_DELAY: Span = Span::from_micros(250);
/// netem's rate that keeps packets in order and takes no time.
const IN_ORDER: &str = "1tbit";
/// RED's `avpkt`, bytes.
const AVERAGE_PACKET_BYTES: u64 = 1000;
/// Upper limit of RED's `burst`, packets.
const MAX_BURST: u32 = 1 << 20;
/// The loss of a link that is down.
const TOTAL_LOSS: LossModel = LossModel::Random(1.0);

impl Network<'_> {
    /// The commands that add every token bucket filter and netem.
    pub(super) fn shapers(&self) -> Vec<String> {
        let links: Vec<usize> = self.used_links().collect();
        let directions = links.iter().flat_map(|i| [(*i, true), (*i, false)]);
        directions
            .flat_map(|(i, forward)| {
                let pipe = pipe(&self.experiment.links[i], forward);
                let mut lines = self.policer(i, forward, pipe);
                lines.extend(self.shaper(i, forward, pipe, "add"));
                if self.environment.netem {
                    lines.push(self.netem(i, forward, pipe, "add"));
                }
                lines
            })
            .collect()
    }

    /// The commands of an event, which is applied to `link` too.
    pub(super) fn change(&self, link: &mut Link, event: &Change) -> Vec<String> {
        let mut lines = Vec::new();
        for forward in [true, false] {
            let excluded = if forward { Directions::Reverse } else { Directions::Forward };
            if event.directions == excluded {
                continue;
            }
            let changed = if forward { &mut link.forward } else { &mut link.reverse };
            if let Some(rate) = event.rate {
                changed.rate = Some(rate);
                lines.extend(self.shaper(event.link, forward, changed, "change"));
            }
            changed.delay = event.delay.unwrap_or(changed.delay);
            changed.loss = event.loss.unwrap_or(changed.loss);
            lines.push(if self.environment.netem {
                let loss = if event.up == Some(false) { TOTAL_LOSS } else { changed.loss };
                self.netem(event.link, forward, &PipeConfig { loss, ..changed.clone() }, "change")
            } else {
                self.emulator_line(event, forward, changed)
            });
        }
        lines
    }

    /// Commands that print the counters of a path's data direction: for each used link its queue's, then netem's.
    pub(crate) fn link_counters(&self, p: usize) -> Vec<String> {
        let show = |(netns, device): Interface| format!("tc -s -j -n {netns} qdisc show dev {device}");
        let commands = |i: &usize| [self.queue_at(*i, true), self.netem_at(*i, true)].map(show);
        self.experiment.paths[p].links.iter().filter(|i| self.is_used(**i)).flat_map(commands).collect()
    }

    /// The transmitter with its queue. `limit` stands twice because a change of the bucket changes its queue's limit
    /// too. A sending host may pass several packets as one, which the bucket splits without regard to a size table
    /// (`stab`): there the bucket counts the overhead.
    fn shaper(&self, i: usize, forward: bool, pipe: &PipeConfig, verb: &str) -> Vec<String> {
        let Some(rate) = pipe.rate.filter(|_| !self.emulates_queue(pipe)) else { return Vec::new() };
        let (netns, device) = self.queue_at(i, forward);
        let (fifo, limit) = match pipe.queue.limit {
            QueueLimit::Packets(packets) => ("pfifo", packets),
            QueueLimit::Bytes(bytes) => ("bfifo", bytes),
            QueueLimit::Time(span) => ("bfifo", rate.bytes_in(span)),
        };
        let queue = aqm_arguments(pipe, limit).unwrap_or_else(|| format!("{fifo} limit {limit}"));
        let overhead = i64::from(pipe.overhead) - ETHERNET;
        let by_bucket = overhead > 0 && fifo == "pfifo" && self.local(i, forward).is_some();
        let size = if overhead == 0 || by_bucket { String::new() } else { format!(" stab overhead {overhead}") };
        let overhead_option = if by_bucket { format!(" overhead {overhead}") } else { String::new() };
        // Room for rounding: a packet that is larger than the bucket would be dropped.
        let bucket = (MTU + pipe.overhead) * self.environment.burst + 64;
        let bits = rate.as_bits();
        let mut lines = vec![format!(
            "tc -n {netns} qdisc {verb} dev {device} root handle 1:{size} tbf rate {bits}bit burst {bucket}b{overhead_option} limit {limit}"
        )];
        if verb == "add" {
            lines.push(format!("tc -n {netns} qdisc add dev {device} parent 1:1 handle 10: {queue}"));
        }
        lines
    }

    /// The policer, at the first router of the direction: `clsact` sees packets before the queue, and counts the drops.
    fn policer(&self, i: usize, forward: bool, pipe: &PipeConfig) -> Vec<String> {
        let Some(PolicerConfig { rate, burst }) = pipe.policer else { return Vec::new() };
        let (netns, device) = self.first_router_port(i, forward);
        let overhead = match i64::from(pipe.overhead) - ETHERNET {
            overhead @ 1.. => format!(" overhead {overhead}"),
            _ => String::new(),
        };
        let bits = rate.as_bits();
        vec![
            format!("tc -n {netns} qdisc add dev {device} clsact"),
            format!(
                "tc -n {netns} filter add dev {device} egress matchall action police rate {bits}bit burst {burst}b\
                 {overhead} conform-exceed drop/ok"
            ),
        ]
    }

    /// Delay and loss. tbf passes a packet on when its transmission would begin; netem's rate adds the time that it
    /// takes.
    fn netem(&self, i: usize, forward: bool, pipe: &PipeConfig, verb: &str) -> String {
        let (netns, device) = self.netem_at(i, forward);
        let limit = pipe.wire_limit.unwrap_or(1_000_000);
        let (delay, jitter) = netem_delay(pipe);
        let loss = match pipe.loss {
            LossModel::Random(share) => format!(" loss random {}%", share * 100.0),
            // netem names the states' exits first, then what the bad one loses, then what the good one keeps.
            LossModel::GilbertElliott { to_bad, to_good, loss_bad, loss_good } => {
                let [p, r, h, k] = [to_bad, to_good, loss_bad, loss_good].map(|share| share * 100.0);
                format!(" loss gemodel {p}% {r}% {h}% {k}%")
            }
            LossModel::None => String::new(),
        };
        let argument = |(name, share): &(&str, f64)| format!(" {name} {}%", share * 100.0);
        let impairments: String = impairments(pipe).iter().map(argument).collect();
        let impairments = impairments + &netem_reorder_and_slot(pipe);
        let overhead = i64::from(pipe.overhead) - ETHERNET;
        // With a rate, even an ineffective one, netem keeps packets in order.
        let rate = match pipe.rate {
            _ if pipe.jitter.reorders => String::new(),
            Some(rate) => format!(" rate {}bit {overhead}", rate.as_bits()),
            None if jitter.is_empty() => String::new(),
            None => format!(" rate {IN_ORDER}"),
        };
        format!(
            "tc -n {netns} qdisc {verb} dev {device} root netem limit {limit} delay {delay}us{jitter}{loss}{impairments}{rate}"
        )
    }

    /// Namespace and device that hold the queue of a link's direction.
    fn queue_at(&self, i: usize, forward: bool) -> Interface {
        if let Some((k, p)) = self.local(i, forward) {
            return (self.host(forward, k), uplink(p));
        }
        self.first_router_port(i, forward)
    }

    /// Namespace and device with which the first router of a link's direction sends.
    fn first_router_port(&self, i: usize, forward: bool) -> Interface {
        let routers = self.routers(i);
        self.port(i, if forward { &routers[0] } else { &routers[routers.len() - 1] }, forward)
    }

    /// Namespace and device of a direction's delay and loss, which all packets of that direction cross.
    fn netem_at(&self, i: usize, forward: bool) -> Interface {
        let routers = self.routers(i);
        let netem = routers.iter().position(|name| name.ends_with('b')).unwrap_or(0);
        let is_first_of_two = !forward && netem == 0 && routers.len() > 1;
        self.port(i, &routers[netem + usize::from(is_first_of_two && self.users(i).count() > 1)], forward)
    }

    /// Pair and path of the host that has a local queue.
    pub(super) fn local(&self, i: usize, forward: bool) -> Option<(usize, usize)> {
        let first = |(_, p): &(usize, usize)| {
            let links = &self.experiment.paths[*p].links;
            links.get(if forward { 0 } else { links.len() - 1 }) == Some(&i)
        };
        let holds_back = self.experiment.tunnel.as_ref().is_some_and(|tunnel| tunnel.device.is_some());
        let is_local = pipe(&self.experiment.links[i], forward).local || holds_back;
        self.host_paths().into_iter().find(first).filter(|_| is_local)
    }

    /// Whether link `i` is emulated: it has delay or loss, and the kernel has no netem.
    pub(super) fn is_emulated(&self, i: usize) -> bool {
        let link = &self.experiment.links[i];
        let needs_emulation = |pipe: &PipeConfig| {
            let is_impaired = !impairments(pipe).is_empty() || pipe.slot.is_some();
            let is_lossy = pipe.loss != LossModel::None || is_impaired;
            pipe.delay > MAX_IGNORED_DELAY || pipe.jitter.span > Span::ZERO || is_lossy || self.emulates_queue(pipe)
        };
        let changes = self.experiment.events.iter().any(|event| event.link == i);
        !self.environment.netem && (needs_emulation(&link.forward) || needs_emulation(&link.reverse) || changes)
    }

    /// Whether the emulator has the queue of a direction, and so its rate: the kernel has neither RED nor netem.
    fn emulates_queue(&self, pipe: &PipeConfig) -> bool {
        let Environment { netem, red, .. } = self.environment;
        !netem && !red && matches!(pipe.queue.discipline, QueueDiscipline::Red(_))
    }

    /// The commands that start the emulator of link `i` and wait for it.
    pub(super) fn emulator(&self, i: usize, hop: &Hop) -> Vec<String> {
        let link = &self.experiment.links[i];
        let [(a, a_device), (b, b_device)] = &hop.ports;
        let arguments = [&link.forward, &link.reverse].map(|pipe| self.emulator_arguments(pipe)).join(" / ");
        let (fifo, log) = (self.control(i), self.environment.file(&format!("link{i}.log")));
        vec![
            format!("mkfifo {fifo}"),
            format!("{} link {a} {a_device} {b} {b_device} {arguments} <>{fifo} >{log} 2>&1 &", self.environment.agent),
            format!("timeout 10 sh -c 'until grep -qs ready {log}; do sleep 0.05; done'"),
        ]
    }

    /// The arguments of `agent link` for delay, loss and other impairments; rate and queue are the token bucket filter's,
    /// unless the kernel lacks the queue's discipline.
    fn emulator_arguments(&self, pipe: &PipeConfig) -> String {
        let word = |(name, share): &(&str, f64)| format!(" {name}={}%", share * 100.0);
        let impairments: String = impairments(pipe).iter().map(word).collect();
        let impairments = impairments + &emulated_reorder_and_slot(pipe);
        let (delay, jitter, loss) = (time(pipe.delay), emulated_jitter(pipe.jitter), percent(pipe.loss));
        let QueueDiscipline::Red(RedConfig { min, max, probability, weight, .. }) = pipe.queue.discipline else {
            return format!("delay={delay} jitter={jitter} loss={loss}{impairments}");
        };
        let limit = match pipe.queue.limit {
            QueueLimit::Packets(packets) => format!("{packets}p"),
            QueueLimit::Bytes(bytes) => format!("{bytes}b"),
            QueueLimit::Time(span) => time(span),
        };
        let (bits, overhead) = (pipe.rate.map_or(0, Rate::as_bits), pipe.overhead);
        let queue = format!("queue={limit} red={min}:{max}:{probability}:{weight}");
        let rate = if self.emulates_queue(pipe) && bits > 0 {
            format!(" rate={bits}bit overhead={overhead}b {queue}")
        } else {
            String::new()
        };
        format!("delay={delay} jitter={jitter} loss={loss}{impairments}{rate}")
    }

    /// An event as a line to an emulator.
    fn emulator_line(&self, event: &Change, forward: bool, pipe: &PipeConfig) -> String {
        let direction = if forward { "forward" } else { "reverse" };
        let up = event.up.map_or("", |up| if up { "up " } else { "down " });
        let (delay, loss) = (time(pipe.delay), percent(pipe.loss));
        let rate = event.rate.filter(|_| self.emulates_queue(pipe));
        let rate = rate.map_or(String::new(), |rate| format!(" rate={}bit", rate.as_bits()));
        format!("echo {direction} {up}delay={delay} loss={loss}{rate} >{}", self.control(event.link))
    }

    /// The named pipe that an emulator reads.
    fn control(&self, i: usize) -> String {
        self.environment.file(&format!("link{i}"))
    }

    /// Time for packets in flight at the end of the run to arrive, before losses are counted.
    pub(crate) fn drain(&self) -> Span {
        let link_drain = |i: &usize| {
            let pipe = &self.experiment.links[*i].forward;
            let bytes = match pipe.queue.limit {
                QueueLimit::Packets(packets) => packets * u64::from(MTU + pipe.overhead),
                QueueLimit::Bytes(bytes) => bytes,
                QueueLimit::Time(span) => pipe.rate.map_or(0, |rate| rate.bytes_in(span)),
            };
            pipe.delay + pipe.jitter.max() + pipe.rate.map_or(Span::ZERO, |rate| rate.time_for(bytes))
        };
        let path_drain =
            |p: usize| self.experiment.paths[p].links.iter().map(link_drain).fold(Span::ZERO, |a, b| a + b);
        let longest = self.host_paths().into_iter().map(|(_, p)| path_drain(p)).max().unwrap_or(Span::ZERO);
        longest + Span::from_millis(200)
    }
}

/// The arguments of `tc` for a queue other than drop-tail. Its limit is in packets, for some in bytes.
fn aqm_arguments(pipe: &PipeConfig, limit: u64) -> Option<String> {
    let full_packet_bytes = u64::from(MTU + pipe.overhead);
    let (packets, bytes) = match pipe.queue.limit {
        QueueLimit::Packets(packets) => (packets, packets * full_packet_bytes),
        QueueLimit::Bytes(_) | QueueLimit::Time(_) => (limit.div_ceil(full_packet_bytes), limit),
    };
    let us = |span: Span| span.as_nanos() / 1000;
    let codel = |codel: &CoDelConfig| {
        let threshold = codel.ce_threshold.map_or(String::new(), |time| format!(" ce_threshold {}us", us(time)));
        format!("target {}us interval {}us{threshold}", us(codel.target), us(codel.interval))
    };
    let arguments = match &pipe.queue.discipline {
        // `check` refuses DualPI2.
        QueueDiscipline::DropTail | QueueDiscipline::DualPi2(_) => return None,
        QueueDiscipline::DropHead => return Some(format!("pfifo_head_drop limit {packets}")),
        QueueDiscipline::Red(RedConfig { min, max, probability, weight, hard_drop }) => {
            let avpkt = (*min).min(AVERAGE_PACKET_BYTES);
            let ecn = match (pipe.queue.ecn, hard_drop) {
                (false, _) => "",
                (true, true) => " ecn harddrop",
                (true, false) => " ecn",
            };
            let (burst, bits) = (burst(*weight, *min as f64 / avpkt as f64), pipe.rate.map_or(0, Rate::as_bits));
            return Some(format!(
                "red limit {bytes} min {min} max {max} avpkt {avpkt} burst {burst} probability {probability} \
                 bandwidth {bits}bit{ecn}"
            ));
        }
        // As in the simulator: no tins, and queues per flow, not per host. ECN is always on.
        QueueDiscipline::Cake(CakeConfig { rtt }) => {
            return Some(format!("cake unlimited besteffort flows rtt {}us memlimit {bytes}", us(*rtt)));
        }
        QueueDiscipline::CoDel(config) => format!("codel limit {packets} {}", codel(config)),
        QueueDiscipline::FqCodel(FqCodelConfig { flows, quantum, codel: config }) => {
            format!("fq_codel limit {packets} flows {flows} quantum {quantum} {}", codel(config))
        }
        // `tc` counts alpha and beta in sixteenths of 1/s (man tc-pie).
        QueueDiscipline::Pie(PieConfig { target, tupdate, alpha, beta }) => {
            let [alpha, beta] = [alpha, beta].map(|gain| (gain * 16.0).round());
            format!("pie limit {packets} target {}us tupdate {}us alpha {alpha} beta {beta}", us(*target), us(*tupdate))
        }
    };
    Some(format!("{arguments} {}", if pipe.queue.ecn { "ecn" } else { "noecn" }))
}

/// `tc red` has no weight: it takes the maximum 1/2^n with which a burst of this many packets at an empty queue leaves the
/// average below `min_packets` packets (Floyd and Jacobson 1993, equation 3). The result is the longest burst for which it
/// takes the power of two nearest to `weight`.
fn burst(weight: f64, min_packets: f64) -> u32 {
    let exponent = -weight.log2().round();
    let weight = 2f64.powf(-exponent);
    let is_accepted =
        |burst: u32| f64::from(burst) + 1.0 + ((1.0 - weight).powf(burst.into()) - 1.0) / weight <= min_packets;
    (1..MAX_BURST).take_while(|burst| is_accepted(*burst)).last().unwrap_or(1)
}

/// The kernel's name of a queue discipline that not every kernel has.
pub(crate) fn discipline(queue_discipline: &QueueDiscipline) -> Option<&'static str> {
    match queue_discipline {
        QueueDiscipline::DropTail | QueueDiscipline::DropHead => None,
        QueueDiscipline::CoDel(_) => Some("codel"),
        QueueDiscipline::Red(_) => Some("red"),
        QueueDiscipline::Pie(_) => Some("pie"),
        QueueDiscipline::DualPi2(_) => Some("dualpi2"),
        QueueDiscipline::FqCodel(_) => Some("fq_codel"),
        QueueDiscipline::Cake(_) => Some("cake"),
    }
}

fn pipe(link: &Link, forward: bool) -> &PipeConfig {
    if forward { &link.forward } else { &link.reverse }
}

/// The impairments that a pipe has other than delay and loss, by netem's names.
fn impairments(pipe: &PipeConfig) -> Vec<(&'static str, f64)> {
    let all = [("duplicate", pipe.duplicate), ("corrupt", pipe.corrupt), ("reorder", pipe.reorder.share)];
    all.into_iter().filter(|(_, share)| *share > 0.0).collect()
}

/// netem's words for what follows the share of reordered packets, and for slots.
fn netem_reorder_and_slot(pipe: &PipeConfig) -> String {
    let Reordering { share, correlation, gap } = pipe.reorder;
    let mut words = String::new();
    if share > 0.0 && correlation > 0.0 {
        let _ = write!(words, " {}%", correlation * 100.0);
    }
    if share > 0.0 && gap > 1 {
        let _ = write!(words, " gap {gap}");
    }
    if let Some(SlotConfig { min, max, packets, bytes }) = pipe.slot {
        let [min, max] = [min, max].map(|span| span.as_nanos() as f64 / 1e3);
        let _ = write!(words, " slot {min}us {max}us");
        words += &packets.map_or(String::new(), |packets| format!(" packets {packets}"));
        words += &bytes.map_or(String::new(), |bytes| format!(" bytes {bytes}"));
    }
    words
}

/// Reordering and slots in the words of the emulator.
fn emulated_reorder_and_slot(pipe: &PipeConfig) -> String {
    let Reordering { share, correlation, gap } = pipe.reorder;
    let mut words = String::new();
    if share > 0.0 && (correlation, gap) != (0.0, 1) {
        let _ = write!(words, ":{correlation}:{gap}");
    }
    if let Some(SlotConfig { min, max, packets, bytes }) = pipe.slot {
        let [packets, bytes] = [packets.map(u64::from), bytes].map(|most| most.unwrap_or(0));
        let _ = write!(words, " slot={}:{}:{packets}:{bytes}", time(min), time(max));
    }
    words
}

/// netem's delay, microseconds, and the words for its jitter.
fn netem_delay(pipe: &PipeConfig) -> (f64, String) {
    let Jitter { span, distribution, correlation, reorders } = pipe.jitter;
    let us = |span: Span| span.as_nanos() as f64 / 1e3;
    // netem's jitter goes both ways from the delay; a jitter that only adds is half as long, around its middle.
    let is_added = distribution == JitterDistribution::Added;
    let (middle, span) = if is_added { (us(span) / 2.0, us(span) / 2.0) } else { (0.0, us(span)) };
    // Without netem's rate, which keeps the order, the time of a full packet's transmission is a part of the delay.
    let transmission =
        pipe.rate.filter(|_| reorders).map_or(0.0, |rate| us(rate.time_for(u64::from(MTU + pipe.overhead))));
    let delay = us(pipe.delay) + middle + transmission;
    if span == 0.0 {
        return (delay, String::new());
    }
    let correlation = if correlation > 0.0 { format!(" {}%", correlation * 100.0) } else { String::new() };
    let table = match distribution {
        JitterDistribution::Added | JitterDistribution::Uniform => String::new(),
        _ => format!(" distribution {}", distribution_name(distribution)),
    };
    (delay, format!(" {span}us{correlation}{table}"))
}

fn distribution_name(distribution: JitterDistribution) -> &'static str {
    DISTRIBUTIONS.iter().find(|(known, _)| *known == distribution).map_or("", |(_, name)| name)
}

/// Jitter in the words of the emulator.
fn emulated_jitter(jitter: Jitter) -> String {
    if jitter == Jitter::from(jitter.span) {
        return time(jitter.span);
    }
    let order = if jitter.reorders { ":reorder" } else { "" };
    format!("{}:{}:{}{order}", time(jitter.span), distribution_name(jitter.distribution), jitter.correlation)
}

fn time(span: Span) -> String {
    format!("{}ns", span.as_nanos())
}

fn percent(loss: LossModel) -> String {
    match loss {
        LossModel::Random(share) => format!("{}%", share * 100.0),
        LossModel::None | LossModel::GilbertElliott { .. } => "0%".into(),
    }
}
