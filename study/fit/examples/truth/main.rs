//! Fits hidden links that have parts which no fitted model has, and compares what is predicted over them with the truth.
//!
//! Pairs of links are drawn by seed as in the prototype of `ropewalk fit`: rate, walk, delay, jitter, queue, losses in bursts; in
//! two of three pairs with web traffic on one path, and in one of three with a trace of rates on the other. Each is measured by
//! repetitions of the usual probes, and fitted. Then 8 congestion controls with 5 schedulers run over the hidden links, the
//! ensemble, and the naive links.
//!
//! `cargo run --release -p ropewalk-fit --example truth -- FROM..TO [REPETITIONS] [MEMBERS] [EVALUATIONS]`, or `FROM..TO luck`: how far the
//! measurements themselves are from what the hidden links carry on average; or `FROM..TO kernel`: hidden links of the lab, on Linux
//! in virtual time (see [`kernel`]).

#![allow(clippy::print_stdout, reason = "it prints a table")]

mod judge;
mod kernel;

use fit::{Candidate, median, simulated_measurement};
use judge::{PATHS, Predicted, Score, Truth, candidates, draw, median_size, seeds};
use std::fmt::Write;
use std::ops::Range;

const ALGORITHMS: [&str; 8] = ["cubic", "reno", "bbr", "lia", "olia", "balia", "wvegas", "coupled-bbr"];
/// Repetitions of the measurement.
const REPETITIONS: usize = 6;
/// Runs over which the truth of the simulator is a mean.
const RUNS: u64 = 24;
const SCHEDULERS: [&str; 5] = ["minrtt", "blest", "roundrobin", "linger", "redundant"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| arguments.get(index).map_or(Ok(default), |text| text.parse());
    let range = arguments
        .first()
        .and_then(|text| text.split_once(".."))
        .ok_or("arguments: FROM..TO [REPETITIONS] [MEMBERS] [EVALUATIONS]")?;
    let seeds: Range<u64> = range.0.parse()?..range.1.parse()?;
    match arguments.get(1).map(String::as_str) {
        Some("luck") => return print_luck(seeds),
        Some("kernel") => return kernel::print(seeds),
        _ => (),
    }
    let (repetitions, members, evaluations) = (number(1, REPETITIONS)?, number(2, 8)?, number(3, 960)?);
    let candidates = candidates(&ALGORITHMS, &SCHEDULERS);
    let (truth, mut scores) = (Truth::simulated(repetitions as u64, RUNS), Vec::new());
    println!("{HEADING}");
    for seed in seeds {
        let score = Score::of(&truth, seed, members, evaluations, &candidates)?;
        println!("{}", line(&score, seed, &candidates));
        scores.push(score);
    }
    print!("{}", summary(&scores));
    Ok(())
}

const HEADING: &str = "pair  tau goodput: ceiling fit naive  error goodput: fit naive  tau delay: ceiling fit naive  error delay: fit naive  within 90 %";

/// What the measurement of each pair has of downloads, next to what its hidden links carry on average.
fn print_luck(seeds: Range<u64>) -> Result<(), Box<dyn std::error::Error>> {
    for seed in seeds {
        for (download, [measured, hidden]) in luck(seed)? {
            println!("{seed:4}  {download}: measured {measured:.2} Mbit/s, on average {hidden:.2}");
        }
    }
    Ok(())
}

/// The mean goodput of each kind of download of a pair, Mbit/s: in the measurement that is fitted, and over the hidden links with
/// many other seeds. Where they differ, the measurement was unlucky, and no fit can know it.
fn luck(seed: u64) -> Result<Vec<(String, [f64; 2])>, fit::Error> {
    let hidden = draw(seed).links;
    let measured = Truth::simulated(REPETITIONS as u64, RUNS).measurement(seed, &hidden)?;
    let again = simulated_measurement(&hidden, &PATHS, &seeds(seed, 3, RUNS))?;
    let mut found = Vec::new();
    for (path, again) in measured.paths.iter().zip(&again.paths) {
        for congestion in ["cubic", "bbr"] {
            let mean = |flows: &[measured::TcpFlow]| {
                let flows = flows.iter().filter(|flow| flow.congestion.as_deref() == Some(congestion));
                let rates: Vec<f64> = flows.filter_map(|flow| flow.goodput_mbps).collect();
                rates.iter().sum::<f64>() / rates.len().max(1) as f64
            };
            found.push((format!("{} {congestion}", path.name), [mean(&path.tcp), mean(&again.tcp)]));
        }
    }
    Ok(found)
}

/// The scores of a pair.
fn line(score: &Score, seed: u64, candidates: &[Candidate]) -> String {
    let mut line = format!("{seed:4}");
    for Predicted { tau, errors, .. } in &score.values {
        let [ceiling, fit, naive] = tau;
        let [fit_error, naive_error, _] = errors.each_ref().map(|errors| 100.0 * median_size(errors));
        let _ = write!(line, "  {ceiling:.2} {fit:.2} {naive:.2}  {fit_error:3.0} % {naive_error:3.0} %");
    }
    let [goodput, delay] = score
        .values
        .each_ref()
        .map(|value| format!("{} of {} within +-{:.0} %", value.within, candidates.len(), 100.0 * value.half_width));
    let error = score.fit.model_error;
    let errors = candidates.iter().zip(&score.values[0].errors[0]);
    let of_algorithm = |name: &&str| {
        let of: Vec<f64> = errors.clone().filter(|(of, _)| of.congestion == *name).map(|(_, error)| *error).collect();
        (!of.is_empty()).then(|| format!(" {name} {:+.0}", 100.0 * median(&of)))
    };
    let by_algorithm: String = ALGORITHMS.iter().filter_map(of_algorithm).collect();
    line + &format!(
        "  {goodput}, {delay}; model {:.3} {:.3};{by_algorithm} %; {}",
        error.goodput,
        error.delay,
        score.fit.headline()
    )
}

fn summary(scores: &[Score]) -> String {
    let mut text = String::new();
    for (index, name) in ["goodput", "p95 delay"].into_iter().enumerate() {
        let values: Vec<&Predicted> = scores.iter().map(|score| &score.values[index]).collect();
        let ratio: Vec<f64> = values.iter().map(|value| value.tau[1] / value.tau[0]).collect();
        let naive: Vec<f64> = values.iter().map(|value| value.tau[2] / value.tau[0]).collect();
        let within: usize = values.iter().map(|value| value.within).sum();
        let [fit, other, floor] = [0, 1, 2].map(|whose| errors(&values, whose));
        let all: usize = values.iter().map(|value| value.errors[0].len()).sum();
        let _ = writeln!(
            text,
            "{name}: tau / ceiling {:.2} (naive {:.2}) in the median; error {:.0} % in the median and {:.0} % at the 90th percentile \
             (naive {:.0} and {:.0} %, ceiling {:.0} and {:.0} %); {:.0} of 100 within their interval",
            median(&ratio),
            median(&naive),
            100.0 * fit[0],
            100.0 * fit[1],
            100.0 * other[0],
            100.0 * other[1],
            100.0 * floor[0],
            100.0 * floor[1],
            100.0 * within as f64 / all.max(1) as f64,
        );
    }
    for (which, place) in ["as the model has them", "with other traffic or a trace"].iter().zip(0..) {
        let sum =
            |part: fn((usize, usize)) -> usize| scores.iter().map(|score| part(score.unknowns[place])).sum::<usize>();
        let _ =
            writeln!(text, "unknowns of paths {which}: {} of {} within their interval", sum(|of| of.0), sum(|of| of.1));
    }
    text
}

/// The median and the 90th percentile of the errors of all candidates of all pairs.
fn errors(values: &[&Predicted], whose: usize) -> [f64; 2] {
    let mut all: Vec<f64> =
        values.iter().flat_map(|value| value.errors[whose].iter().map(|error| error.abs())).collect();
    all.sort_by(f64::total_cmp);
    [0.5, 0.9].map(|share| all[((all.len() as f64 * share) as usize).min(all.len() - 1)])
}
