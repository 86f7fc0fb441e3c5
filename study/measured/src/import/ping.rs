//! The output of `ping`: of iputils, of busybox, of BSD and macOS.

use super::{Fault, Source};
use crate::{IdleRtt, Measured, RttSample, Summary};

/// The interval of a ping without `-i`, seconds.
const INTERVAL_S: f64 = 1.0;

pub(super) fn is_ping(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("PING ") || line.contains("icmp_seq=") || line.starts_with("--- "))
}

pub(super) fn import(text: &str, source: &Source<'_>) -> Result<Measured, Fault> {
    let mut measured = Measured { program: Some("ping".to_owned()), ..Measured::default() };
    let answers: Vec<Answer> = text.lines().filter_map(answer).collect();
    let counts = text.lines().find_map(counts);
    let summary = text.lines().find_map(summary);
    if answers.is_empty() && counts.is_none() {
        return Err((None, "ping has neither answers nor a summary".to_owned()));
    }
    let interval_s = interval(&answers, text, counts);
    if interval_s.is_none() && !answers.is_empty() {
        measured.not_measured.push(format!("{}: the interval between requests: 1 s is assumed", source.path));
    }
    if counts.is_none() {
        measured.not_measured.push(format!("{}: losses: ping has no summary", source.path));
    }
    let samples = samples(&answers, interval_s.unwrap_or(INTERVAL_S));
    measured.path_mut(source.path).idle_rtt.push(IdleRtt {
        interval_s,
        payload_bytes: text.lines().find_map(payload),
        sent: counts.map(|(sent, _)| sent),
        lost: counts.map(|(sent, received)| sent.saturating_sub(received)),
        rtt_ms: Summary::of(samples.iter().map(|sample| sample.rtt_ms)).or(summary),
        samples,
        ..IdleRtt::default()
    });
    Ok(measured)
}

struct Answer {
    number: f64,
    /// With `-D`: the time at which it came, seconds.
    stamp: Option<f64>,
    rtt_ms: f64,
}

/// The value after a word, up to a space: `time=` of `time=0.049 ms`.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.split_once(word)?.1.split_whitespace().next()
}

fn answer(line: &str) -> Option<Answer> {
    if line.contains("(DUP!)") {
        return None;
    }
    let stamp = line.strip_prefix('[').and_then(|rest| rest.split(']').next()?.parse().ok());
    let number = after(line, "seq=")?.parse().ok()?;
    Some(Answer { number, stamp, rtt_ms: after(line, "time=")?.parse().ok()? })
}

/// Requests sent and answers received: `5 packets transmitted, 5 received`, or `5 packets received`.
fn counts(line: &str) -> Option<(u64, u64)> {
    let (sent, rest) = line.split_once(" packets transmitted, ")?;
    Some((sent.trim().parse().ok()?, rest.split_whitespace().next()?.parse().ok()?))
}

/// `rtt min/avg/max/mdev = 0.048/0.057/0.083/0.013 ms`; busybox has three of them.
fn summary(line: &str) -> Option<Summary> {
    let (head, values) = line.split_once(" = ")?;
    let values: Vec<f64> =
        values.split_whitespace().next()?.split('/').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [min, mean, max, ..] = values[..] else { return None };
    let deviation = values.get(3).copied();
    let found = Summary { min: Some(min), mean: Some(mean), max: Some(max), deviation, ..Summary::default() };
    head.contains("min/avg/max").then_some(found)
}

/// `56(84) bytes of data`, or `56 data bytes`.
fn payload(line: &str) -> Option<u64> {
    let words: Vec<&str> =
        line.strip_prefix("PING ")?.split([' ', '(', ')', ':']).filter(|word| !word.is_empty()).collect();
    words.iter().skip(1).find_map(|word| word.parse().ok())
}

/// The interval between requests: by the stamps, or by the time of the summary of iputils.
fn interval(answers: &[Answer], text: &str, counts: Option<(u64, u64)>) -> Option<f64> {
    let (first, last) = (answers.first()?, answers.last()?);
    let apart = last.number - first.number;
    if let (Some(from), Some(to), true) = (first.stamp, last.stamp, apart > 0.0) {
        return Some((to - from) / apart);
    }
    let time = text
        .lines()
        .find_map(|line| line.split_once("packet loss, time ")?.1.strip_suffix("ms")?.parse::<f64>().ok())?;
    let (sent, _) = counts.filter(|(sent, _)| *sent > 1)?;
    Some(time / 1e3 / (sent - 1) as f64)
}

fn samples(answers: &[Answer], interval_s: f64) -> Vec<RttSample> {
    let Some(first) = answers.first() else { return Vec::new() };
    let sent = |answer: &Answer| match (first.stamp, answer.stamp) {
        (Some(start), Some(stamp)) => stamp - start + (first.rtt_ms - answer.rtt_ms) / 1e3,
        _ => (answer.number - first.number) * interval_s,
    };
    answers.iter().map(|answer| RttSample { at_s: sent(answer).max(0.0), rtt_ms: answer.rtt_ms }).collect()
}
