//! What a document has to keep to beyond its types.

use crate::{
    BulkCall, IdleRtt, Measured, MeasuredPath, Parallel, Policer, RttSample, Summary, TcpFlow, Together, UdpStream,
};
use std::collections::BTreeSet;

/// The most parallel flows: iperf3's limit.
const MAX_STREAMS: u32 = 128;

/// The first value that contradicts the meaning of its key, as `key: fault`.
pub(crate) fn check(measured: &Measured) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for (index, path) in measured.paths.iter().enumerate() {
        let key = format!("paths[{index}]");
        if !names.insert(path.name.as_str()) {
            return Err(format!("{key}.name: another path is called `{}`, too", path.name));
        }
        check_path(path).map_err(|fault| format!("{key}.{fault}"))?;
    }
    each("together", &measured.together, |together| check_together(together, &names))?;
    each("stages", &measured.stages, |stage| {
        stage.paths.iter().try_for_each(|path| known(path, &names))?;
        positive("start_s", Some(stage.start_s))?;
        positive("seconds", Some(stage.seconds))
    })
}

fn check_path(path: &MeasuredPath) -> Result<(), String> {
    each("idle_rtt", &path.idle_rtt, check_idle)?;
    each("udp", &path.udp, check_udp)?;
    each("tcp", &path.tcp, check_tcp)?;
    each("parallel", &path.parallel, |parallel: &Parallel| {
        if !(2..=MAX_STREAMS).contains(&parallel.streams) {
            return Err(format!(
                "streams: {} are not 2 to {MAX_STREAMS}; a single flow belongs to `tcp`",
                parallel.streams
            ));
        }
        check_tcp(&parallel.flow).map_err(|fault| format!("flow.{fault}"))
    })?;
    each("calls", &path.calls, check_call)?;
    each("policers", &path.policers, |policer: &Policer| positive("rate_mbps", policer.rate_mbps))
}

fn check_idle(idle: &IdleRtt) -> Result<(), String> {
    positive("interval_s", idle.interval_s)?;
    within("lost", idle.lost, "sent", idle.sent)?;
    check_samples("samples", &idle.samples)?;
    check_summary("rtt_ms", idle.rtt_ms.as_ref())
}

fn check_udp(udp: &UdpStream) -> Result<(), String> {
    positive("seconds", udp.seconds)?;
    positive("rate_mbps", udp.rate_mbps)?;
    positive("jitter_rfc3550_ms", udp.jitter_rfc3550_ms)?;
    within("received", udp.received, "sent", udp.sent)?;
    within("lost", udp.lost, "sent", udp.sent)?;
    within("reordered", udp.reordered, "received", udp.received)?;
    if let Some(runs) = &udp.loss_runs {
        check_runs(runs, udp.sent).map_err(|fault| format!("loss_runs: {fault}"))?;
    }
    check_summary("delay_variation_ms", udp.delay_variation_ms.as_ref())
}

fn check_runs(runs: &[u64], sent: Option<u64>) -> Result<(), String> {
    if runs.iter().skip(1).any(|run| *run == 0) {
        return Err("only the first run may be 0".to_owned());
    }
    let sum = runs.iter().try_fold(0u64, |sum, run| sum.checked_add(*run));
    match (sum, sent) {
        (Some(sum), Some(sent)) if sum != sent => Err(format!("the runs have {sum} datagrams, but {sent} were sent")),
        (None, _) => Err("the sum of the runs exceeds 64 bits".to_owned()),
        _ => Ok(()),
    }
}

fn check_tcp(tcp: &TcpFlow) -> Result<(), String> {
    positive("seconds", tcp.seconds)?;
    positive("goodput_mbps", tcp.goodput_mbps)?;
    positive("interval_s", tcp.interval_s)?;
    if !tcp.goodput_intervals_mbps.is_empty() && tcp.interval_s.is_none_or(|interval| interval <= 0.0) {
        return Err("interval_s: `goodput_intervals_mbps` needs the length of an interval".to_owned());
    }
    each("goodput_intervals_mbps", &tcp.goodput_intervals_mbps, |rate| not_negative(*rate))?;
    check_summary("rtt_ms", tcp.rtt_ms.as_ref())?;
    check_samples("rtt_samples", &tcp.rtt_samples)?;
    within("retransmitted_segments", tcp.retransmitted_segments, "sent_segments", tcp.sent_segments)
}

fn check_call(call: &BulkCall) -> Result<(), String> {
    positive("interval_s", call.interval_s)?;
    within("lost", call.lost, "sent", call.sent)?;
    positive("goodput_mbps", call.goodput_mbps)?;
    check_samples("rtt_samples", &call.rtt_samples)?;
    check_summary("rtt_ms", call.rtt_ms.as_ref())
}

fn check_together(together: &Together, names: &BTreeSet<&str>) -> Result<(), String> {
    positive("seconds", together.seconds)?;
    each("flows", &together.flows, |flow| {
        known(&flow.path, names)?;
        positive("goodput_mbps", flow.goodput_mbps)?;
        positive("alone_mbps", flow.alone_mbps)
    })
}

/// Checks each element, and puts its key before the fault.
fn each<T>(key: &str, elements: &[T], check: impl Fn(&T) -> Result<(), String>) -> Result<(), String> {
    let place = |(index, element)| {
        check(element).map_err(|fault| {
            let separator = if fault.starts_with(": ") { "" } else { "." };
            format!("{key}[{index}]{separator}{fault}")
        })
    };
    elements.iter().enumerate().try_for_each(place)
}

fn check_samples(key: &str, samples: &[RttSample]) -> Result<(), String> {
    each(key, samples, |sample| {
        positive("at_s", Some(sample.at_s))?;
        positive("rtt_ms", Some(sample.rtt_ms))
    })
}

fn check_summary(key: &str, summary: Option<&Summary>) -> Result<(), String> {
    let values = summary.map(Summary::values).into_iter().flatten();
    values.into_iter().try_for_each(|(name, value)| positive(name, value)).map_err(|fault| format!("{key}.{fault}"))
}

fn positive(key: &str, value: Option<f64>) -> Result<(), String> {
    value.map_or(Ok(()), not_negative).map_err(|fault| format!("{key}{fault}"))
}

fn not_negative(value: f64) -> Result<(), String> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(format!(": {value} is not a number from 0")) }
}

fn within(key: &str, part: Option<u64>, of: &str, whole: Option<u64>) -> Result<(), String> {
    match (part, whole) {
        (Some(part), Some(whole)) if part > whole => Err(format!("{key}: {part} are more than the {whole} of `{of}`")),
        _ => Ok(()),
    }
}

fn known(path: &str, names: &BTreeSet<&str>) -> Result<(), String> {
    if names.contains(path) { Ok(()) } else { Err(format!("path: no path is called `{path}`")) }
}
