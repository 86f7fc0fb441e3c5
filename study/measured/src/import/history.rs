//! The history of a tunnel, as `GET /v1/history` gives it. Its traffic was not made to measure: what it tells are round-trip
//! times while little was sent.

use super::Fault;
use super::value::{list, number, text};
use crate::{IdleRtt, Measured, RttSample, Summary};
use serde_json::Value;

/// A step with less traffic in each direction counts as idle, bit/s.
const IDLE_BPS: f64 = 100_000.0;

pub(super) fn import(history: &Value) -> Result<Measured, Fault> {
    let mut measured = Measured { program: Some("ropewalk".to_owned()), ..Measured::default() };
    let step_s = number(history, "/step_s").unwrap_or(1.0);
    for series in list(history, "/series") {
        let (Some(path), None) = (text(series, "/path"), text(series, "/class")) else { continue };
        let samples = idle_samples(series, step_s);
        measured.path_mut(path).idle_rtt.extend((!samples.is_empty()).then(|| IdleRtt {
            rtt_ms: Summary::of(samples.iter().map(|sample| sample.rtt_ms)),
            samples,
            ..IdleRtt::default()
        }));
    }
    let traffic =
        "rates and losses of a tunnel's history: they are of the traffic that there was, not of what a path carries";
    measured.not_measured.push(traffic.to_owned());
    Ok(measured)
}

fn idle_samples(series: &Value, step_s: f64) -> Vec<RttSample> {
    let is_idle = |key: &str, step: usize| {
        let rate = number(series, &format!("/{key}/{step}"));
        rate.is_none_or(|rate| rate < IDLE_BPS)
    };
    let rtts = list(series, "/rtt_ms").iter().enumerate();
    let idle = rtts.filter(|(step, _)| is_idle("send_rate_bps", *step) && is_idle("receive_rate_bps", *step));
    idle.filter_map(|(step, rtt)| Some(RttSample { at_s: step as f64 * step_s, rtt_ms: rtt.as_f64()? })).collect()
}
