//! The measurement of a path, made again in the simulator: the same probes, for as long, as flows of a scenario.

use measured::{BulkCall, Direction, IdleRtt, MeasuredPath, Parallel, STREAMS, TcpFlow, UdpStream};
use record::{Flow, Run, Series};

/// Time between two probes, in which queues empty, seconds.
const PAUSE_S: f64 = 0.5;
/// Interval of the samples of a simulated flow, seconds.
const SAMPLE_S: f64 = 0.1;
/// The longest simulated probe, seconds: longer ones tell no more than their time costs.
const MAX_SECONDS: f64 = 15.0;
/// The least packet of a simulated stream, bytes: the headers of IP and UDP take 28 of them. A tunnel's test has smaller payloads.
const LEAST_PACKET: u64 = 36;
/// The congestion control of a flow whose measurement names none: Linux's default.
const DEFAULT_CONGESTION: &str = "cubic";

/// A probe of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Probe {
    /// Requests that wait for their answer.
    Idle { seconds: f64, interval_s: f64 },
    /// Datagrams at a low rate.
    Udp { direction: Direction, seconds: f64, rate_mbps: f64, payload_bytes: u64 },
    /// One TCP flow; goodput by intervals of `interval_s`.
    Tcp { direction: Direction, congestion: String, seconds: f64, interval_s: f64 },
    /// Several TCP flows at a time.
    Parallel { direction: Direction, congestion: String, seconds: f64, streams: u32 },
    /// Small datagrams next to a TCP flow.
    Call { direction: Direction, congestion: String, seconds: f64, interval_s: f64, payload_bytes: u64 },
}

/// The probes of a path that the simulator can make, and the reasons why it leaves others out.
pub(crate) fn plan(path: &MeasuredPath) -> (Vec<Probe>, Vec<String>) {
    let (mut probes, mut notes) = (Vec::new(), Vec::new());
    if !path.idle_rtt.is_empty() {
        let interval_s = path.idle_rtt.iter().find_map(|idle| idle.interval_s).unwrap_or(0.1).clamp(0.02, 1.0);
        let longest = path.idle_rtt.iter().filter_map(|idle| idle.sent).max().unwrap_or(50);
        probes.push(Probe::Idle { seconds: bounded(Some(interval_s * longest as f64), 5.0), interval_s });
    }
    path.udp.iter().for_each(|stream| add(&mut probes, udp(stream)));
    for flow in &path.tcp {
        add_known(&mut probes, &mut notes, &path.name, flow.congestion.as_deref(), |congestion| Probe::Tcp {
            direction: flow.direction,
            congestion,
            seconds: bounded(flow.seconds, 8.0),
            interval_s: flow.interval_s.filter(|interval| *interval >= SAMPLE_S).unwrap_or(1.0),
        });
    }
    for Parallel { streams, flow } in &path.parallel {
        add_known(&mut probes, &mut notes, &path.name, flow.congestion.as_deref(), |congestion| Probe::Parallel {
            direction: flow.direction,
            congestion,
            seconds: bounded(flow.seconds, 8.0),
            streams: *streams,
        });
    }
    for call in &path.calls {
        let seconds = call.sent.zip(call.interval_s).map(|(sent, interval)| sent as f64 * interval);
        add_known(&mut probes, &mut notes, &path.name, call.congestion.as_deref(), |congestion| Probe::Call {
            direction: call.direction,
            congestion,
            seconds: bounded(seconds, 5.0),
            interval_s: call.interval_s.unwrap_or(0.02).clamp(0.005, 1.0),
            payload_bytes: call.payload_bytes.unwrap_or(160).clamp(LEAST_PACKET, 1400),
        });
    }
    (probes, notes)
}

/// The probes of `ropewalk probe`: idle, datagrams, and downloads by CUBIC and BBR, and a call next to a download.
pub(crate) fn usual() -> Vec<Probe> {
    let (direction, seconds) = (Direction::Down, 9.0);
    let tcp = |name: &str| Probe::Tcp { direction, congestion: name.to_owned(), seconds, interval_s: 0.5 };
    let congestion = DEFAULT_CONGESTION.to_owned();
    vec![
        Probe::Idle { seconds: 5.0, interval_s: 0.1 },
        Probe::Udp { direction, seconds: 4.0, rate_mbps: 2.0, payload_bytes: 1200 },
        tcp(DEFAULT_CONGESTION),
        tcp("bbr"),
        Probe::Parallel { direction, congestion: congestion.clone(), seconds: 6.0, streams: STREAMS },
        Probe::Call { direction, congestion, seconds: 6.0, interval_s: 0.02, payload_bytes: 160 },
    ]
}

fn udp(stream: &UdpStream) -> Probe {
    let (bytes, seconds) =
        (stream.payload_bytes.unwrap_or(1200).clamp(LEAST_PACKET, 1400), bounded(stream.seconds, 4.0));
    let sent = stream.sent.map(|sent| sent as f64 * bytes as f64 * 8e-6 / stream.seconds.unwrap_or(seconds).max(0.1));
    let rate_mbps = stream.rate_mbps.or(sent).unwrap_or(1.0).max(0.01);
    Probe::Udp { direction: stream.direction, seconds, rate_mbps, payload_bytes: bytes }
}

fn bounded(seconds: Option<f64>, default: f64) -> f64 {
    seconds.unwrap_or(default).clamp(1.0, MAX_SECONDS)
}

/// Adds a probe unless it is there already, perhaps with another length: repetitions are one probe.
fn add(probes: &mut Vec<Probe>, probe: Probe) {
    if !probes.iter().any(|other| other.is_repetition_of(&probe)) {
        probes.push(probe);
    }
}

fn add_known(
    probes: &mut Vec<Probe>,
    notes: &mut Vec<String>,
    path: &str,
    congestion: Option<&str>,
    probe: impl FnOnce(String) -> Probe,
) {
    let name = congestion.unwrap_or(DEFAULT_CONGESTION);
    match control::registry::find(name).is_some() {
        true => add(probes, probe(name.to_owned())),
        false => {
            notes.push(format!("{path}: the simulator has no congestion control `{name}`, so its flows are not used"));
        }
    }
}

impl Probe {
    fn is_repetition_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Udp { direction, .. }, Self::Udp { direction: other, .. }) => direction == other,
            (
                Self::Parallel { direction, congestion, streams, .. },
                Self::Parallel { direction: other, congestion: name, streams: count, .. },
            ) => (direction, congestion, streams) == (other, name, count),
            (Self::Tcp { direction, congestion, .. }, Self::Tcp { direction: other, congestion: name, .. })
            | (Self::Call { direction, congestion, .. }, Self::Call { direction: other, congestion: name, .. }) => {
                (direction, congestion) == (other, name)
            }
            _ => false,
        }
    }

    /// How the names of its observables begin.
    pub(crate) fn prefix(&self) -> String {
        match self {
            Self::Idle { .. } => "idle".to_owned(),
            Self::Udp { direction, .. } => format!("udp.{}", direction.name()),
            Self::Parallel { direction, congestion, .. } => format!("parallel.{congestion}.{}", direction.name()),
            Self::Tcp { direction, congestion, .. } => format!("tcp.{congestion}.{}", direction.name()),
            Self::Call { direction, congestion, .. } => format!("call.{congestion}.{}", direction.name()),
        }
    }

    fn seconds(&self) -> f64 {
        match self {
            Self::Idle { seconds, .. }
            | Self::Udp { seconds, .. }
            | Self::Tcp { seconds, .. }
            | Self::Parallel { seconds, .. }
            | Self::Call { seconds, .. } => *seconds,
        }
    }
}

/// The flows of all probes on `path`, one after another, and the time that they take, seconds. `prefix` begins the names
/// of the flows.
pub(crate) fn flows(probes: &[Probe], path: &str, prefix: &str) -> (String, f64) {
    let (mut text, mut at) = (String::new(), 0.0);
    for (index, probe) in probes.iter().enumerate() {
        text += &flow(probe, path, &format!("{prefix}{index}"), at);
        at += probe.seconds() + PAUSE_S;
    }
    (text, at)
}

fn flow(probe: &Probe, path: &str, name: &str, at: f64) -> String {
    let head = |suffix: &str, direction: Direction| {
        let (start, stop) = (ms(at), ms(at + probe.seconds()));
        format!(
            "[[flow]]\nname = \"{name}{suffix}\"\npath = {path}\nstart = \"{start}ms\"\nstop = \"{stop}ms\"\n{}",
            reversed(direction),
            path = toml_text(path)
        )
    };
    let tcp = |direction, congestion: &str| format!("{}congestion = \"{congestion}\"\n", head("", direction));
    match probe {
        Probe::Idle { interval_s, .. } => {
            // The first answer would wait for the handshake, and few are enough for it to be the 95th percentile.
            let think = format!(
                "requests = {{ size = \"64b\", think = \"{}ms\" }}\nhost = {{ handshake = false }}\n",
                ms(*interval_s)
            );
            head("", Direction::Down) + &think
        }
        Probe::Udp { direction, rate_mbps, payload_bytes, .. } => {
            head("", *direction) + &datagrams(*rate_mbps, *payload_bytes)
        }
        Probe::Tcp { direction, congestion, .. } => tcp(*direction, congestion),
        Probe::Parallel { direction, congestion, streams, .. } => {
            format!("{}count = {streams}\n", tcp(*direction, congestion))
        }
        Probe::Call { direction, congestion, interval_s, payload_bytes, .. } => {
            let rate_mbps = *payload_bytes as f64 * 8e-6 / interval_s;
            let other = if *direction == Direction::Down { Direction::Up } else { Direction::Down };
            let call = |suffix, direction| head(suffix, direction) + &datagrams(rate_mbps, *payload_bytes);
            tcp(*direction, congestion) + &call("-there", *direction) + &call("-back", other)
        }
    }
}

fn datagrams(rate_mbps: f64, payload_bytes: u64) -> String {
    format!(
        "kind = \"udp\"\nrate = \"{}kbit\"\npacket = \"{payload_bytes}b\"\n",
        (rate_mbps * 1e3).round().max(1.0) as u64
    )
}

fn ms(seconds: f64) -> u64 {
    (seconds * 1e3).round() as u64
}

fn reversed(direction: Direction) -> &'static str {
    if direction == Direction::Up { "direction = \"reverse\"\n" } else { "" }
}

/// A text as a TOML string.
pub(crate) fn toml_text(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default() // TOML's basic strings have JSON's escapes
}

/// The keys of a scenario for probes: its length and the interval of samples.
pub(crate) fn sets(seconds: f64) -> [String; 2] {
    [format!("duration={}ms", ms(seconds.max(1.0))), format!("sample={}ms", ms(SAMPLE_S))]
}

/// What the probes of [`flows`] have measured in a run.
pub(crate) fn results(probes: &[Probe], path: &str, prefix: &str, run: &Run, repeat: u32) -> MeasuredPath {
    let mut measured = MeasuredPath { name: path.to_owned(), ..MeasuredPath::default() };
    let mut at = 0.0;
    for (index, probe) in probes.iter().enumerate() {
        let (name, start) = (format!("{prefix}{index}"), at);
        at += probe.seconds() + PAUSE_S;
        let found = |suffix: &str| run.flows.iter().find(|flow| flow.name == format!("{name}{suffix}"));
        let series = run.series.iter().find(|series| series.subject == format!("flow {name}"));
        match (probe, found("")) {
            (Probe::Parallel { streams, .. }, _) => {
                let flow = together(probe, run, &name, start);
                let flow = flow.map(|flow| Parallel { streams: *streams, flow: TcpFlow { repeat, ..flow } });
                measured.parallel.extend(flow);
            }
            (Probe::Idle { interval_s, .. }, Some(flow)) => measured.idle_rtt.extend(idle(flow, *interval_s, repeat)),
            (Probe::Udp { .. }, Some(flow)) => measured.udp.push(stream(probe, flow, repeat)),
            (Probe::Tcp { .. }, Some(flow)) => measured.tcp.push(tcp(probe, flow, series, start, repeat)),
            (Probe::Call { .. }, Some(flow)) => {
                let ends = found("-there").zip(found("-back"));
                measured.calls.extend(ends.map(|ends| call(probe, flow, ends, repeat)));
            }
            (_, None) => (),
        }
    }
    measured
}

fn idle(flow: &Flow, interval_s: f64, repeat: u32) -> Option<IdleRtt> {
    let requests = flow.requests.filter(|requests| requests.requests > 0)?;
    Some(IdleRtt {
        repeat,
        interval_s: Some(interval_s),
        payload_bytes: Some(64),
        sent: Some(requests.requests),
        lost: Some(0),
        samples: Vec::new(),
        rtt_ms: Some(summary(&requests.response_time_ms)),
    })
}

fn summary(of: &record::Summary) -> measured::Summary {
    let record::Summary { mean, p50, p95, p99, min, max } = *of;
    measured::Summary {
        count: None,
        min: Some(min),
        mean: Some(mean),
        p50: Some(p50),
        p95: Some(p95),
        p99: Some(p99),
        max: Some(max),
        deviation: None,
    }
}

fn stream(probe: &Probe, flow: &Flow, repeat: u32) -> UdpStream {
    let Probe::Udp { direction, seconds, rate_mbps, payload_bytes } = *probe else { unreachable!("a probe by UDP") };
    let delays = flow.one_way_delay_ms.unwrap_or_default();
    let above = |delay: f64| delay - delays.min;
    let record::Summary { mean, p50, p95, p99, min, max } = delays;
    let variation = record::Summary {
        mean: above(mean),
        p50: above(p50),
        p95: above(p95),
        p99: above(p99),
        min: above(min),
        max: above(max),
    };
    let lost = flow.dropped_packets.min(flow.sent_packets);
    UdpStream {
        repeat,
        direction,
        seconds: Some(seconds),
        rate_mbps: Some(rate_mbps),
        payload_bytes: Some(payload_bytes),
        sent: Some(flow.sent_packets),
        received: Some(flow.sent_packets - lost),
        lost: Some(lost),
        reordered: None,
        duplicates: None,
        loss_runs: None,
        delay_variation_ms: (flow.sent_packets > lost).then(|| summary(&variation)),
        jitter_rfc3550_ms: None,
    }
}

fn tcp(probe: &Probe, flow: &Flow, series: Option<&Series>, start: f64, repeat: u32) -> TcpFlow {
    let Probe::Tcp { direction, ref congestion, seconds, interval_s } = *probe else { unreachable!("a probe by TCP") };
    let column = |name: &str| series.map_or(Vec::new(), |series| window(series, name, start, start + seconds));
    TcpFlow {
        repeat,
        direction,
        congestion: Some(congestion.clone()),
        seconds: Some(seconds),
        bytes: Some(flow.delivered_bytes),
        goodput_mbps: Some(flow.goodput_mbps),
        interval_s: Some(interval_s),
        goodput_intervals_mbps: intervals(&column("goodput_mbps"), seconds, interval_s),
        rtt_ms: measured::Summary::of(column("srtt_ms").into_iter().filter(|rtt| *rtt > 0.0)),
        rtt_samples: Vec::new(),
        sent_segments: Some(flow.sent_packets),
        retransmitted_segments: Some(flow.retransmitted_packets.min(flow.sent_packets)),
        mss_bytes: None,
    }
}

/// Parallel flows as one.
fn together(probe: &Probe, run: &Run, name: &str, start: f64) -> Option<TcpFlow> {
    let Probe::Parallel { direction, congestion, seconds, streams } = probe else { unreachable!("several flows") };
    let names: Vec<String> = (1..=*streams).map(|number| format!("{name}-{number}")).collect();
    let flows: Vec<&Flow> = run.flows.iter().filter(|flow| names.contains(&flow.name)).collect();
    let of = |name: &str| run.series.iter().find(move |series| series.subject == format!("flow {name}"));
    let rtts = flows
        .iter()
        .filter_map(|flow| of(&flow.name))
        .flat_map(|series| window(series, "srtt_ms", start, start + seconds));
    let sum = |value: fn(&Flow) -> u64| flows.iter().map(|flow| value(flow)).sum();
    (!flows.is_empty()).then(|| TcpFlow {
        congestion: Some(congestion.clone()),
        seconds: Some(*seconds),
        bytes: Some(sum(|flow| flow.delivered_bytes)),
        goodput_mbps: Some(flows.iter().map(|flow| flow.goodput_mbps).sum()),
        rtt_ms: measured::Summary::of(rtts.filter(|rtt| *rtt > 0.0)),
        sent_segments: Some(sum(|flow| flow.sent_packets)),
        retransmitted_segments: Some(sum(|flow| flow.retransmitted_packets.min(flow.sent_packets))),
        ..TcpFlow::new(*direction)
    })
}

/// The finite values of a column at the samples from after `start` until `end`, seconds.
fn window(series: &Series, column: &str, start: f64, end: f64) -> Vec<f64> {
    let Some(index) = series.columns.iter().position(|name| name == column) else { return Vec::new() };
    let half = SAMPLE_S / 2.0;
    let samples = series.time_s.iter().zip(&series.values[index]);
    let inside = samples.filter(|(at, _)| (start + half..=end + half).contains(*at));
    inside.map(|(_, value)| *value).filter(|value| value.is_finite()).collect()
}

/// The means of whole intervals of the samples.
fn intervals(samples: &[f64], seconds: f64, interval_s: f64) -> Vec<f64> {
    let length = ((interval_s / SAMPLE_S).round() as usize).max(1);
    let whole = ((seconds / interval_s) as usize).min(samples.len() / length);
    samples.chunks(length).take(whole).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect()
}

/// A call's datagrams go and return; the record has the delays of each way, so that quantiles of their sum are those of
/// the loaded way and the median of the other one.
fn call(probe: &Probe, bulk: &Flow, (there, back): (&Flow, &Flow), repeat: u32) -> BulkCall {
    let Probe::Call { direction, ref congestion, interval_s, payload_bytes, .. } = *probe else {
        unreachable!("a call")
    };
    let (loaded, idle) = (there.one_way_delay_ms.unwrap_or_default(), back.one_way_delay_ms.unwrap_or_default());
    let rtt = record::Summary {
        mean: loaded.mean + idle.mean,
        p50: loaded.p50 + idle.p50,
        p95: loaded.p95 + idle.p50,
        p99: loaded.p99 + idle.p50,
        min: loaded.min + idle.min,
        max: loaded.max + idle.max,
    };
    let lost = (there.dropped_packets + back.dropped_packets).min(there.sent_packets);
    BulkCall {
        repeat,
        direction,
        congestion: Some(congestion.clone()),
        interval_s: Some(interval_s),
        payload_bytes: Some(payload_bytes),
        sent: Some(there.sent_packets),
        lost: Some(lost),
        rtt_ms: (there.sent_packets > lost).then(|| summary(&rtt)),
        rtt_samples: Vec::new(),
        goodput_mbps: Some(bulk.goodput_mbps),
    }
}
