//! Whether advice came true: what it promised, and what was measured afterwards.

use crate::study::probe::read_all;
use crate::{Failure, output};
use ::fit::{Advice, Candidate, Goal, Interval, Mode};
use measured::{Direction, Measured, MeasuredPath, TcpFlow};
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
    let measured = read_all(&[measurement.to_owned()])?;
    output::print(&verdict(&advice, &measured).map_err(Failure::Script)?)
}

/// The verdict in a sentence per value that was promised and measured; an error says what the measurement lacks.
fn verdict(advice: &Advice, measured: &Measured) -> Result<String, String> {
    let first = advice.ranked.first().ok_or("the advice names nothing")?;
    let promise = || format!("promised was, for {}: {}", first.candidate, first.promise(advice.goal));
    match advice.goal {
        Goal::Throughput | Goal::Calls => {}
        Goal::Web => return Err(format!("a measurement has no answers of 200 kB to compare; {}", promise())),
        Goal::Fair => {
            return Err(format!("a measurement has no downloads next to the connection to compare; {}", promise()));
        }
    }
    let [path] = &measured.paths[..] else {
        return Err("the measurement has several paths: measure through the connection, which is one".to_owned());
    };
    let flows = downloads(path, &first.candidate);
    let rates: Vec<f64> = flows.iter().filter_map(|flow| flow.goodput_mbps).collect();
    if rates.is_empty() {
        let algorithm = of_flows(&first.candidate);
        return Err(format!("the measurement has no TCP download by {algorithm}, whose goodput could be compared"));
    }
    let mut text = compared(&first.candidate.to_string(), "Mbit/s", first.goodput_mbps, &rates, true);
    if advice.goal == Goal::Calls {
        let delays: Vec<f64> = flows.iter().filter_map(|flow| flow.rtt_ms?.p95).collect();
        text += &match first.candidate.mode {
            Mode::Single(_) | Mode::Tunnel if !delays.is_empty() => {
                compared("its RTT, 95th percentile", "ms", first.delay_p95_ms, &delays, false)
            }
            _ => format!("its delay is not compared: the measurement does not tell it. {}.\n", promise()),
        };
    }
    Ok(text)
}

/// The downloads by the algorithm of the advice; flows whose algorithm is not told count, too.
fn downloads<'a>(path: &'a MeasuredPath, candidate: &Candidate) -> Vec<&'a TcpFlow> {
    let is_wanted = |flow: &&TcpFlow| {
        let name = flow.congestion.as_deref().map(super::registry_name);
        flow.direction == Direction::Down && name.is_none_or(|name| name == of_flows(candidate))
    };
    path.tcp.iter().filter(is_wanted).collect()
}

/// The congestion control of the flows that the advice is about: those in a tunnel are the kernel's.
fn of_flows(candidate: &Candidate) -> &str {
    match candidate.mode {
        Mode::Single(_) | Mode::Mptcp => &candidate.congestion,
        Mode::Tunnel | Mode::Relay => "cubic",
    }
}

/// What was promised next to the mean of what was measured; whether more is better.
fn compared(what: &str, unit: &str, promised: Interval, values: &[f64], more_is_better: bool) -> String {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let Interval { median, low, high } = promised;
    let verdict = match (mean < low, mean > high) {
        (false, false) => "it came true",
        (is_less, _) if is_less == more_is_better => "it did not come true",
        _ => "better than promised",
    };
    let count = values.len();
    format!(
        "{what}: promised {median:.1} ({low:.1} to {high:.1}) {unit}, measured {mean:.1} {unit} in {count} downloads: {verdict}.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::fit::Ranked;

    fn advice(goal: Goal, mode: Mode) -> Advice {
        let none = Interval::default();
        let ranked = Ranked {
            candidate: Candidate { mode, ..Candidate::of_tunnel(None, None, false) },
            goodput_mbps: Interval { median: 31.0, low: 28.0, high: 34.0 },
            delay_p95_ms: Interval { median: 60.0, low: 50.0, high: 70.0 },
            response_ms: none,
            rival_mbps: none,
            share_of_best: 1.0,
            near_best: 8,
        };
        Advice {
            goal,
            fits: 8,
            ranked: vec![ranked],
            default: None,
            is_decided: true,
            measure: vec![],
            left_out: vec![],
        }
    }

    fn download(algorithm: &str, mbps: &str, rtt: &str) -> Measured {
        let flow = format!(
            r#"{{"direction":"down","congestion":"{algorithm}","goodput_mbps":{mbps},"rtt_ms":{{"p95":{rtt}}}}}"#
        );
        measured::parse(&format!(r#"{{"version":1,"paths":[{{"name":"rw0","tcp":[{flow}]}}]}}"#), "test").unwrap()
    }

    #[test]
    fn a_promise_comes_true_within_its_interval() {
        let advice = advice(Goal::Throughput, Mode::Tunnel);
        for (mbps, words) in [("30.0", "it came true"), ("20.0", "did not come true"), ("40.0", "better than promised")]
        {
            assert!(verdict(&advice, &download("cubic", mbps, "1.0")).unwrap().contains(words), "{mbps}");
        }
        assert!(verdict(&advice, &Measured::default()).is_err());
        let error = verdict(&advice, &download("bbr", "30.0", "1.0")).unwrap_err();
        assert!(error.contains("no TCP download by cubic"), "{error}");
    }

    #[test]
    fn of_calls_the_delay_is_compared_where_a_measurement_tells_it() {
        for (rtt, words) in [("60.0", "ms in 1 downloads: it came true"), ("90.0", "did not come"), ("20.0", "better")]
        {
            let text = verdict(&advice(Goal::Calls, Mode::Tunnel), &download("cubic", "30.0", rtt)).unwrap();
            assert!(text.lines().nth(1).unwrap().contains(words), "{text}");
        }
        let text = verdict(&advice(Goal::Calls, Mode::Relay), &download("cubic", "30.0", "60.0")).unwrap();
        assert!(text.contains("its delay is not compared"), "{text}");
    }

    #[test]
    fn what_no_measurement_tells_is_refused_with_what_was_promised() {
        for goal in [Goal::Web, Goal::Fair] {
            let error = verdict(&advice(goal, Mode::Tunnel), &download("cubic", "30.0", "60.0")).unwrap_err();
            assert!(error.contains("promised was, for the tunnel by "), "{error}");
        }
    }
}
