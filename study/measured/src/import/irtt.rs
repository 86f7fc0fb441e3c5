//! The JSON of `irtt client -o`: requests at an even interval, with the delays of each direction.

use super::value::{count, list, number, text};
use super::{Fault, Source};
use crate::{Direction, IdleRtt, Measured, RttSample, Summary, UdpStream};
use serde_json::Value;

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

pub(super) fn import(report: &Value, source: &Source<'_>) -> Result<Measured, Fault> {
    let version = text(report, "/version/irtt").unwrap_or("of an unknown version");
    let mut measured = Measured { program: Some(format!("irtt {version}")), ..Measured::default() };
    let interval_s = number(report, "/config/params/interval").or_else(|| number(report, "/config/interval"));
    let interval_s = interval_s.map(|interval| interval / NS_PER_S);
    let trips = list(report, "/round_trips");
    let samples: Vec<RttSample> = trips.iter().filter_map(|trip| sample(trip, interval_s)).collect();
    let sent = count(report, "/stats/packets_sent");
    let lost = sent.map(|sent| sent.saturating_sub(samples.len() as u64));
    let payload_bytes = count(report, "/config/params/length").or_else(|| count(report, "/config/length"));
    if samples.is_empty() && sent.is_none() {
        return Err((None, "irtt reports no round trips".to_owned()));
    }
    let path = measured.path_mut(source.path);
    let streams = Direction::ALL.map(|direction| stream(report, direction, trips));
    path.udp.extend(streams.into_iter().map(|stream| UdpStream { payload_bytes, ..stream }));
    path.idle_rtt.push(IdleRtt {
        interval_s,
        payload_bytes,
        sent,
        lost,
        rtt_ms: Summary::of(samples.iter().map(|sample| sample.rtt_ms)),
        samples,
        ..IdleRtt::default()
    });
    if path.udp.iter().all(|udp| udp.lost.is_none()) {
        let line = format!("{}: in which direction losses were: irtt's server was started without counts", source.path);
        measured.not_measured.push(line);
    }
    Ok(measured)
}

fn sample(trip: &Value, interval_s: Option<f64>) -> Option<RttSample> {
    let rtt_ms = number(trip, "/delay/rtt")? / NS_PER_MS;
    Some(RttSample { at_s: number(trip, "/seqno")? * interval_s?, rtt_ms })
}

fn stream(report: &Value, direction: Direction, trips: &[Value]) -> UdpStream {
    let (delay, other) = match direction {
        Direction::Up => ("/delay/send", "true_up"),
        Direction::Down => ("/delay/receive", "true_down"),
    };
    let delays: Vec<f64> = trips.iter().filter_map(|trip| Some(number(trip, delay)? / NS_PER_MS)).collect();
    let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
    // `lost` is "true" where the server does not tell the direction.
    let has_direction = trips.iter().all(|trip| text(trip, "/lost") != Some("true"));
    let lost = trips.iter().filter(|trip| text(trip, "/lost") == Some(other)).count() as u64;
    let sent = match direction {
        Direction::Up => count(report, "/stats/packets_sent"),
        Direction::Down => count(report, "/stats/server_packets_received"),
    };
    let lost = has_direction.then_some(lost);
    UdpStream {
        sent,
        lost,
        received: sent.zip(lost).and_then(|(sent, lost)| sent.checked_sub(lost)),
        delay_variation_ms: Summary::of(delays.iter().map(|delay| delay - least)),
        ..UdpStream::new(direction)
    }
}
