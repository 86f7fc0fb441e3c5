//! `GET /v1/history?from=&to=&step=`: the samples of all series between two times, at a step.

use super::recorder::{Recorder, Series};
use super::ring::{MINUTES, Resolution, SECONDS};
use super::sample::Sample;
use super::series::SeriesKey;
use serde::Serialize;
use std::fmt;

/// Maximum number of steps of an answer.
const MAX_STEPS: u64 = 3600;
/// Maximum number of steps of an answer if the query has no step.
const DEFAULT_STEPS: u64 = 720;

/// A range of times and a step, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The first time, since 1970.
    pub from_s: u64,
    /// The time after the last, since 1970.
    pub to_s: u64,
    /// The time between samples; several stored samples are merged into one.
    pub step_s: u64,
}

/// The error of a refused query, which says what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError(String);

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QueryError {}

/// An answer: lists of one value per step, null where nothing was recorded.
#[derive(Clone, Debug, Serialize)]
pub(super) struct History {
    version: u32,
    from_s: u64,
    step_s: u64,
    steps: u64,
    series: Vec<SeriesHistory>,
}

#[derive(Clone, Debug, Serialize)]
struct SeriesHistory {
    #[serde(flatten)]
    key: SeriesKey,
    state: Vec<Option<&'static str>>,
    worked_ratio: Vec<Option<f64>>,
    send_rate_bps: Vec<Option<u64>>,
    receive_rate_bps: Vec<Option<u64>>,
    rtt_ms: Vec<Option<f64>>,
    queue_ms: Vec<Option<f64>>,
    loss_ratio: Vec<Option<f64>>,
}

impl Query {
    /// The query of a URL: `from` and `to` in seconds since 1970 (by default the last hour), `step` in seconds. Beyond
    /// the last hour a step is at least a minute.
    ///
    /// # Errors
    /// An unknown key, a value that is not a number, an empty range, or more than 3600 steps.
    pub fn parse(text: &str, now_s: u64) -> Result<Self, QueryError> {
        let (mut from, mut to, mut step) = (None, None, None);
        for (key, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
            let target = match key {
                "from" => &mut from,
                "to" => &mut to,
                "step" => &mut step,
                _ => return Err(QueryError(format!("unknown key `{key}`: there are from, to and step"))),
            };
            let number = value.parse::<u64>();
            let number = number.ok().filter(|number| *number <= 1 << 40);
            *target = Some(number.ok_or_else(|| QueryError(format!("{key} is a number of seconds, not `{value}`")))?);
        }
        let to_s = to.unwrap_or(now_s + 1).min(now_s + SECONDS.slots);
        let from_s = from.unwrap_or(to_s.saturating_sub(SECONDS.slots));
        if from_s >= to_s {
            return Err(QueryError(format!("from ({from_s}) is not before to ({to_s}): seconds since 1970")));
        }
        // Times older than all stored samples need no steps.
        let from_s = from_s.max(now_s.saturating_sub(MINUTES.slots * MINUTES.step_s)).min(to_s - 1);
        let finest = resolution(from_s, now_s).step_s;
        let chosen = step.unwrap_or_else(|| (to_s - from_s).div_ceil(DEFAULT_STEPS)).clamp(1, to_s - from_s);
        let step_s = if chosen <= finest { finest } else { chosen.next_multiple_of(finest) };
        let from_s = from_s - from_s % step_s;
        if (to_s - from_s).div_ceil(step_s) > MAX_STEPS {
            let least = (to_s - from_s).div_ceil(MAX_STEPS);
            return Err(QueryError(format!("more than {MAX_STEPS} steps: a step of {least} at least")));
        }
        Ok(Self { from_s, to_s, step_s })
    }
}

/// The resolution in which a time is stored.
fn resolution(time_s: u64, now_s: u64) -> Resolution {
    if time_s + SECONDS.slots > now_s { SECONDS } else { MINUTES }
}

impl Recorder {
    /// The samples that a query asks for.
    pub(super) fn history(&self, query: Query, now_s: u64) -> History {
        let Query { from_s, to_s, step_s } = query;
        let steps = (to_s - from_s).div_ceil(step_s);
        let samples = |series: &Series| -> Vec<Step> {
            (0..steps).map(|step| Step::of(series, from_s + step * step_s, step_s, now_s)).collect()
        };
        let all = self.series.iter().map(|series| (&series.key, samples(series)));
        let recorded = all.filter(|(_, samples)| samples.iter().any(|step| step.sample.is_present()));
        let series = recorded.map(|(key, samples)| SeriesHistory::new(key, &samples)).collect();
        History { version: 1, from_s, step_s, steps, series }
    }
}

/// A step of an answer.
struct Step {
    sample: Sample,
    /// Share of the recorded time in which it worked, finer than a sample has it.
    worked_ratio: Option<f64>,
}

impl Step {
    /// A step of seconds while they are stored, otherwise of minutes.
    fn of(series: &Series, start_s: u64, step_s: u64, now_s: u64) -> Self {
        let finest = resolution(start_s, now_s).step_s;
        let ring = if finest == 1 { &series.seconds } else { &series.minutes };
        let samples: Vec<_> =
            (start_s..start_s + step_s).step_by(finest as usize).map(|time_s| ring.get(time_s)).collect();
        let shares: Vec<f64> = samples.iter().filter_map(Sample::worked_ratio).collect();
        let worked_ratio = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
        Self { sample: Sample::merge(samples), worked_ratio }
    }
}

impl SeriesHistory {
    fn new(key: &SeriesKey, steps: &[Step]) -> Self {
        let samples: Vec<Sample> = steps.iter().map(|step| step.sample).collect();
        let present = |value: fn(&Sample) -> u64| -> Vec<Option<u64>> {
            samples.iter().map(|sample| sample.is_present().then(|| value(sample))).collect()
        };
        Self {
            key: key.clone(),
            state: samples.iter().map(|sample| sample.state.name()).collect(),
            worked_ratio: steps.iter().map(|step| step.worked_ratio.map(round)).collect(),
            send_rate_bps: present(|sample| sample.send_bps as u64),
            receive_rate_bps: present(|sample| sample.receive_bps as u64),
            rtt_ms: samples.iter().map(Sample::rtt_ms).collect(),
            queue_ms: samples.iter().map(Sample::queue_ms).collect(),
            loss_ratio: samples.iter().map(|sample| sample.loss_ratio().map(round)).collect(),
        }
    }
}

/// Rounds to about the precision with which the loss is stored.
fn round(ratio: f64) -> f64 {
    (ratio * 1e5).round() / 1e5
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000_000;

    #[test]
    fn a_query_without_a_step_gets_one_that_its_range_can_be_drawn_with() {
        let step = |range: u64| Query::parse(&format!("from={}&to={NOW}", NOW - range), NOW).unwrap().step_s;
        assert_eq!([300, 3599, 86_400, 604_800].map(step), [1, 5, 120, 840]);
        assert_eq!(Query::parse("", NOW).unwrap().step_s, 5);
    }

    #[test]
    fn a_bad_query_is_told_what_would_be_right() {
        let message = |text: &str| Query::parse(text, NOW).unwrap_err().to_string();
        assert_eq!(message("step=1s"), "step is a number of seconds, not `1s`");
        assert_eq!(message("since=1"), "unknown key `since`: there are from, to and step");
        assert!(message("from=5&to=4").starts_with("from (5) is not before to (4)"));
        let text = format!("from={}&to={}&step=1", NOW - 3599, NOW + 3600);
        assert_eq!(message(&text), "more than 3600 steps: a step of 2 at least");
        let step = Query::parse(&format!("from={}&step={}", NOW - 60, 1_u64 << 40), NOW).unwrap().step_s;
        assert_eq!(step, 61, "no longer than the range");
        assert!(Query::parse("from=99999999999999999999", NOW).is_err());
        assert!(Query::parse("from=0&to=1", NOW).is_ok(), "what is not held is empty, not an error");
    }
}
