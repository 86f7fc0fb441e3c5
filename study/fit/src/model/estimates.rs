//! The unknowns of measured paths, which start at direct estimates.

use crate::observe::Observables;
use crate::{Error, Unknown};
use measured::{Direction, MeasuredPath};

/// Bits of a full-size packet.
const PACKET_BITS: f64 = 12_000.0;
/// Bits on the wire per bit of TCP's payload: 1500 bytes of 1448.
const HEADERS: f64 = 1500.0 / 1448.0;
/// How much faster than its policer a link may be.
const FASTEST: f64 = 20.0;

/// What a measurement tells directly. Rates in bit/s, times in seconds.
pub(super) struct Seen {
    pub(super) cubic: Option<f64>,
    /// Of any algorithm.
    pub(super) best: Option<f64>,
    pub(super) upload: Option<f64>,
    pub(super) rtt: Option<f64>,
    rtt_under_load: Option<f64>,
    variation: Option<f64>,
    pub(super) loss_percent: Option<f64>,
    upload_loss_percent: Option<f64>,
    /// The least of any algorithm.
    retransmitted_percent: Option<f64>,
}

impl Seen {
    pub(super) fn of(path: &MeasuredPath) -> Self {
        let all = Observables::of(path);
        let greatest = |direction: Direction| {
            let suffix = format!(".{}.goodput", direction.name());
            let is_of_flows = |name: &&str| name.starts_with("tcp.") || name.starts_with("parallel.");
            let rates = all.names().filter(is_of_flows).filter(|name| name.ends_with(&suffix));
            rates.filter_map(|name| all.mean(name)).reduce(f64::max).map(|mbps| (mbps * 1e6).max(1e3))
        };
        let ms = |name: &str| all.mean(name).map(|ms| ms / 1e3);
        let of_flows = path.tcp.iter().filter_map(|flow| flow.rtt_ms?.min).reduce(f64::min).map(|ms| ms / 1e3);
        Self {
            cubic: all.mean("tcp.cubic.down.goodput").map(|mbps| (mbps * 1e6).max(1e3)),
            best: greatest(Direction::Down),
            upload: greatest(Direction::Up),
            rtt: ms("idle.rtt min").or(of_flows),
            rtt_under_load: ms("parallel.cubic.down.rtt p95")
                .or(ms("tcp.cubic.down.rtt p95"))
                .or(ms("tcp.cubic.down.rtt mean")),
            variation: ms("udp.down.delay above min, mean"),
            loss_percent: all.mean("udp.down.loss"),
            upload_loss_percent: all.mean("udp.up.loss"),
            retransmitted_percent: all
                .names()
                .filter(|name| name.ends_with(".down.retransmitted"))
                .filter_map(|name| all.mean(name))
                .reduce(f64::min),
        }
    }
}

fn unknown(prefix: &str, key: &str, unit: &str, [low, high]: [f64; 2], start: f64) -> Unknown {
    Unknown { key: format!("{prefix}.{key}"), unit: unit.to_owned(), low, high, start: start.clamp(low, high) }
}

fn lacking(path: &MeasuredPath, what: &str) -> Error {
    Error::Input(format!("the measurement of `{}` lacks {what}, without which nothing can be fitted", path.name))
}

/// The unknowns of the link that these paths share, or of one path: its rate, its queue, its policer, and the same of the
/// reverse direction. The path with the fastest download tells most of it.
pub(super) fn capacity_unknowns(prefix: &str, paths: &[&MeasuredPath]) -> Result<Vec<Unknown>, Error> {
    let mut all: Vec<(f64, Seen, &MeasuredPath)> = Vec::new();
    for path in paths {
        let seen = Seen::of(path);
        all.push((seen.best.ok_or_else(|| lacking(path, "the goodput of a download"))?, seen, path));
    }
    let fastest = all.iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let Some((best, seen, path)) = fastest else { return Ok(Vec::new()) };
    let of = |key: &str, unit: &str, range: [f64; 2], start: f64| unknown(prefix, key, unit, range, start);
    let rate = best * 1.08;
    let rtt = seen.rtt.unwrap_or(0.02);
    let waiting = (seen.rtt_under_load.unwrap_or(2.0 * rtt) - rtt).max(0.002);
    let policer =
        path.policers.iter().find(|policer| policer.direction == Direction::Down && policer.found == Some(true));
    let mut unknowns = match policer.and_then(|policer| Some((policer.rate_mbps?, policer.burst_bytes?))) {
        Some((mbps, burst)) => {
            let (policed, burst) = (mbps * 1e6 * HEADERS, burst.max(3000) as f64);
            vec![
                of("rate", "bit/s", [policed, FASTEST * policed], 4.0 * policed),
                of("policer.rate", "bit/s", [0.8 * policed, 1.25 * policed], policed),
                of("policer.burst", "B", [burst / 4.0, burst * 4.0], burst),
            ]
        }
        None => vec![of("rate", "bit/s", [0.6 * rate, 3.0 * rate], rate)],
    };
    unknowns.push(of("walk_width", "", [1.03, 3.0], 1.3));
    unknowns.push(of("walk_deviation", "", [0.01, 0.6], 0.1));
    unknowns.push(of("queue.limit", "packets", [4.0, 4000.0], (waiting * rate / PACKET_BITS).max(12.0)));
    if let Some(upload) = all.iter().filter_map(|(_, seen, _)| seen.upload).reduce(f64::max) {
        unknowns.push(of("reverse.rate", "bit/s", [0.6 * upload, 4.0 * upload], 1.08 * upload));
        unknowns.push(of("reverse.queue.limit", "packets", [4.0, 4000.0], 100.0));
    }
    Ok(unknowns)
}

/// The unknowns of a path itself: its delay, jitter and losses.
pub(super) fn wire_unknowns(path: &MeasuredPath) -> Result<Vec<Unknown>, Error> {
    let seen = Seen::of(path);
    let rtt = seen.rtt.ok_or_else(|| lacking(path, "a round-trip time"))?;
    let prefix = format!("path.{}", path.name);
    let of = |key: &str, unit: &str, range: [f64; 2], start: f64| unknown(&prefix, key, unit, range, start);
    let losses = [seen.loss_percent, seen.retransmitted_percent].into_iter().flatten().map(|share| share.max(0.01));
    let loss = losses.reduce(|one, other| (one * other).sqrt()).unwrap_or(0.1);
    let delays = [(0.4 * rtt / 2.0).max(2e-5), (1.05 * rtt / 2.0).max(4e-5)];
    let mut unknowns = vec![
        of("delay", "s", delays, (rtt / 2.0 - 5e-4).max(0.45 * rtt)),
        of("jitter", "s", [5e-5, 0.03], 2.0 * seen.variation.unwrap_or(5e-4)),
        of("loss.share", "%", [0.003, 10.0], loss),
        of("loss.burst", "packets", [1.05, 20.0], 3.0),
    ];
    if seen.upload.is_some() || seen.upload_loss_percent.is_some() {
        unknowns.push(of("reverse.loss", "%", [0.001, 5.0], seen.upload_loss_percent.unwrap_or(0.1).max(0.01)));
    }
    Ok(unknowns)
}
