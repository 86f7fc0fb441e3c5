//! Whether advice came true: what it promised, and what was measured afterwards.

use crate::{Failure, output};
use ::fit::{Advice, Goal};
use measured::{Direction, Measured};
use std::path::{Path, PathBuf};

/// The greatest length of kept advice, bytes.
const MAX_LEN: u64 = 16 << 20;

/// The file in a fit's folder that keeps the advice for a goal.
fn file(folder: &Path, goal: Goal) -> PathBuf {
    let name = serde_json::to_value(goal).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    folder.join(format!("advice-{name}.json"))
}

/// Keeps advice in a fit's folder.
pub(super) fn keep(folder: &Path, advice: &Advice) -> Result<(), Failure> {
    let path = file(folder, advice.goal);
    let text = serde_json::to_string_pretty(advice).expect("text, numbers and lists");
    std::fs::write(&path, text).map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))
}

/// Compares the promise of the advice in `folder` with a measurement through the connection that it advised.
pub(super) fn check(folder: &Path, goal: Goal, measurement: &Path) -> Result<(), Failure> {
    let path = file(folder, goal);
    let missing =
        |error| Failure::Usage(format!("{}: {error}; `ropewalk advise` of a fit's folder makes it", path.display()));
    let text = filesystem::read_text_of_any(&path, MAX_LEN).map_err(missing)?;
    let damaged = |error| Failure::Script(format!("{}: {error}", path.display()));
    let advice: Advice = serde_json::from_str(&text).map_err(damaged)?;
    let measured = super::read_all(&[measurement.to_owned()])?;
    output::print(&verdict(&advice, &measured).map_err(Failure::Script)?)
}

/// The verdict in a sentence; an error says what the measurement lacks.
fn verdict(advice: &Advice, measured: &Measured) -> Result<String, String> {
    let first = advice.ranked.first().ok_or("the advice names nothing")?;
    if measured.paths.len() > 1 {
        return Err("the measurement has several paths: measure through the connection, which is one".to_owned());
    }
    let flows = measured.paths.iter().flat_map(|path| &path.tcp).filter(|flow| flow.direction == Direction::Down);
    let rates: Vec<f64> = flows.filter_map(|flow| flow.goodput_mbps).collect();
    if rates.is_empty() {
        return Err("the measurement has no TCP download, whose goodput could be compared".to_owned());
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let promised = first.goodput_mbps;
    let verdict = match mean {
        mean if mean < promised.low => "it did not come true: less than promised",
        mean if mean > promised.high => "more than promised",
        _ => "it came true",
    };
    Ok(format!(
        "{}: promised {:.1} ({:.1} to {:.1}) Mbit/s, measured {mean:.1} Mbit/s in {} downloads: {verdict}.\n",
        first.candidate,
        promised.median,
        promised.low,
        promised.high,
        rates.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::fit::{Candidate, Interval, Ranked};

    fn advice() -> Advice {
        let goodput_mbps = Interval { median: 31.0, low: 28.0, high: 34.0 };
        let none = Interval::default();
        let ranked = Ranked {
            candidate: Candidate::default_of_linux(),
            goodput_mbps,
            delay_p95_ms: none,
            response_ms: none,
            rival_mbps: none,
            share_of_best: 1.0,
            near_best: 8,
        };
        Advice {
            goal: Goal::Throughput,
            fits: 8,
            ranked: vec![ranked],
            default: None,
            is_decided: true,
            measure: Vec::new(),
            left_out: Vec::new(),
        }
    }

    fn download(mbps: &str) -> Measured {
        let flow = format!(r#"{{"direction":"down","goodput_mbps":{mbps}}}"#);
        measured::parse(&format!(r#"{{"version":1,"paths":[{{"name":"rw0","tcp":[{flow}]}}]}}"#), "test").unwrap()
    }

    #[test]
    fn a_promise_comes_true_within_its_interval() {
        for (mbps, words) in [("30.0", "it came true"), ("20.0", "did not come true"), ("40.0", "more than promised")] {
            assert!(verdict(&advice(), &download(mbps)).unwrap().contains(words), "{mbps}");
        }
        assert!(verdict(&advice(), &Measured::default()).is_err());
    }
}
