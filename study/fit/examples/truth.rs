//! Fits hidden links that have parts which no fitted model has, and compares what is predicted over them with the truth.
//!
//! Pairs of links are drawn by seed as in the prototype of `ropewalk fit`: rate, walk, delay, jitter, queue, losses in bursts; in
//! two of three pairs with web traffic on one path, and in one of three with a trace of rates on the other. Each is measured by
//! three repetitions of the usual probes, and fitted. Then 8 congestion controls with 5 schedulers run over the hidden links, the
//! ensemble, and the naive links.
//!
//! `cargo run --release -p ropewalk-fit --example truth -- FROM..TO [STARTS] [EVALUATIONS]`

#![allow(clippy::print_stdout, reason = "it prints a table")]

use fit::{
    Candidate, Fit, Goal, Links, Mode, Model, Options, Outcome, interval, median, outcomes, simulated_measurement,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use units::RngStream;

const ALGORITHMS: [&str; 8] = ["cubic", "reno", "bbr", "lia", "olia", "balia", "wvegas", "coupled-bbr"];
const SCHEDULERS: [&str; 5] = ["minrtt", "blest", "roundrobin", "linger", "redundant"];
const PATHS: [&str; 2] = ["p1", "p2"];
const SECONDS: f64 = 15.0;
/// Seeds of the hidden links, of the ceiling, and of the predictions.
const SEEDS: [&[u64]; 3] = [&[1, 2, 3, 4, 5, 6, 7, 8], &[51, 52, 53], &[1, 2, 3]];
const THREADS: usize = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| arguments.get(index).map_or(Ok(default), |text| text.parse());
    let range =
        arguments.first().and_then(|text| text.split_once("..")).ok_or("arguments: FROM..TO [STARTS] [EVALUATIONS]")?;
    let (starts, evaluations) = (number(1, 8)?, number(2, 200)?);
    let mut scores = Vec::new();
    println!(
        "pair  tau goodput: ceiling fit naive  error goodput: fit naive  tau delay: ceiling fit naive  error delay: fit naive  within 90 %"
    );
    for seed in range.0.parse::<u64>()?..range.1.parse()? {
        let score = Score::of(seed, starts, evaluations)?;
        println!("{}", score.line(seed));
        scores.push(score);
    }
    print!("{}", summary(&scores));
    Ok(())
}

/// What the fit of a pair predicts of 40 candidates, for goodput and for delay.
struct Score {
    values: [Predicted; 2],
    fit: Fit,
}

/// The predictions of one value.
struct Predicted {
    /// Kendall's tau with the truth: of the hidden links with other seeds, of the ensemble, of the naive links.
    tau: [f64; 3],
    /// Relative errors of the ensemble's median and of the naive links, of each candidate.
    errors: [Vec<f64>; 2],
    /// How many of the candidates lie within the interval.
    within: usize,
}

impl Score {
    fn of(seed: u64, starts: usize, evaluations: usize) -> Result<Self, fit::Error> {
        let hidden = draw(seed);
        let measured = simulated_measurement(&hidden, &PATHS, &[901, 902, 903])?;
        let model = Model::of_measurement(&measured, &[])?;
        let options = Options { starts, hold: vec!["call".to_owned()], threads: THREADS, seed };
        let fit = fit::fit(&model, &measured, &options, &mut |progress| progress.evaluations < evaluations)?;
        let run = |links: &[&Links], seeds: &[u64]| {
            outcomes(links, &PATHS.map(str::to_owned), &candidates(), Goal::Throughput, SECONDS, seeds, THREADS)
        };
        let (truth, again) = (run(&[&hidden], SEEDS[0])?, run(&[&hidden], SEEDS[1])?);
        let members: Vec<&Links> = fit.members.iter().map(|member| &member.links).collect();
        let (ensemble, naive) = (run(&members, SEEDS[2])?, run(&[&fit.naive_links], SEEDS[2])?);
        let values: [fn(&Outcome) -> f64; 2] = [|outcome| outcome.goodput_mbps, |outcome| outcome.delay_p95_ms];
        let values = values.map(|value| {
            let first = |all: &[Vec<Outcome>]| all.iter().map(|of| value(&of[0])).collect::<Vec<f64>>();
            let all: Vec<Vec<f64>> = ensemble.iter().map(|of| of.iter().map(value).collect()).collect();
            Predicted::new(&first(&truth), &first(&again), &all, &first(&naive), fit.model_error())
        });
        Ok(Self { values, fit })
    }

    fn line(&self, seed: u64) -> String {
        let mut line = format!("{seed:4}");
        for Predicted { tau, errors, .. } in &self.values {
            let [ceiling, fit, naive] = tau;
            let [fit_error, naive_error] = errors.each_ref().map(|errors| 100.0 * median(errors));
            let _ = write!(line, "  {ceiling:.2} {fit:.2} {naive:.2}  {fit_error:3.0} % {naive_error:3.0} %");
        }
        let [goodput, delay] = self.values.each_ref().map(|value| value.within);
        line + &format!("  {goodput} {delay} of 40 each; {}", self.fit.headline())
    }
}

impl Predicted {
    fn new(truth: &[f64], again: &[f64], ensemble: &[Vec<f64>], naive: &[f64], error: f64) -> Self {
        let intervals: Vec<_> = ensemble.iter().map(|values| interval(values, error)).collect();
        let medians: Vec<f64> = intervals.iter().map(|interval| interval.median).collect();
        let errors = |predicted: &[f64]| predicted.iter().zip(truth).map(|(a, b)| (a / b - 1.0).abs()).collect();
        let within =
            intervals.iter().zip(truth).filter(|(interval, truth)| (interval.low..=interval.high).contains(truth));
        Self {
            tau: [kendall(truth, again), kendall(truth, &medians), kendall(truth, naive)],
            errors: [errors(&medians), errors(naive)],
            within: within.count(),
        }
    }
}

/// Kendall's tau: concordant less discordant pairs, as a share of all pairs.
fn kendall(a: &[f64], b: &[f64]) -> f64 {
    let pairs = (0..a.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let (mut sum, mut count) = (0.0, 0.0);
    for (i, j) in pairs {
        let product = (a[i] - a[j]) * (b[i] - b[j]);
        sum += if product == 0.0 { 0.0 } else { product.signum() };
        count += 1.0;
    }
    sum / count
}

fn summary(scores: &[Score]) -> String {
    let mut text = String::new();
    for (index, name) in ["goodput", "p95 delay"].into_iter().enumerate() {
        let values: Vec<&Predicted> = scores.iter().map(|score| &score.values[index]).collect();
        let ratio: Vec<f64> = values.iter().map(|value| value.tau[1] / value.tau[0]).collect();
        let naive: Vec<f64> = values.iter().map(|value| value.tau[2] / value.tau[0]).collect();
        let within: usize = values.iter().map(|value| value.within).sum();
        let (fit, other) = (errors(&values, 0), errors(&values, 1));
        let _ = writeln!(
            text,
            "{name}: tau / ceiling {:.2} (naive {:.2}) in the median; error {:.0} % in the median and {:.0} % at the 90th percentile \
             (naive {:.0} and {:.0} %); {:.0} of 100 within their interval",
            median(&ratio),
            median(&naive),
            100.0 * fit[0],
            100.0 * fit[1],
            100.0 * other[0],
            100.0 * other[1],
            100.0 * within as f64 / (40 * values.len().max(1)) as f64,
        );
    }
    text
}

/// The median and the 90th percentile of the errors of all candidates of all pairs.
fn errors(values: &[&Predicted], whose: usize) -> [f64; 2] {
    let mut all: Vec<f64> = values.iter().flat_map(|value| value.errors[whose].iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    [0.5, 0.9].map(|share| all[((all.len() as f64 * share) as usize).min(all.len() - 1)])
}

fn candidates() -> Vec<Candidate> {
    let of = |congestion: &'static str| {
        SCHEDULERS.map(|scheduler| Candidate {
            mode: Mode::Mptcp,
            congestion: congestion.to_owned(),
            scheduler: Some(scheduler.to_owned()),
        })
    };
    ALGORITHMS.into_iter().flat_map(of).collect()
}

/// The hidden links of a seed.
fn draw(seed: u64) -> Links {
    let mut rng = RngStream::named(seed, "hidden links");
    let mut log = |low: f64, high: f64| low * (high / low).powf(rng.unit());
    let mut text = "name = \"hidden\"\nduration = \"10s\"\n".to_owned();
    for name in PATHS {
        let (rate, width, deviation) = (1e3 * log(6.0, 30.0), log(1.1, 2.0), log(0.03, 0.3));
        let (delay, jitter, queue) = (1e3 * log(6.0, 45.0), 1e3 * log(0.3, 8.0), log(25.0, 400.0));
        let (to_bad, burst) = (log(0.02, 0.6), log(1.2, 10.0));
        let rate_keys = match name == "p1" && seed % 3 == 0 {
            true => "trace = \"lte-a-made.trace\"".to_owned(),
            false => format!(
                "rate = \"{rate:.0}kbit\"\nrate_walk = {{ min = \"{:.0}kbit\", max = \"{:.0}kbit\", deviation = \"{:.0}kbit\", interval = \
                 \"100ms\" }}",
                rate / width,
                rate * width,
                rate * deviation
            ),
        };
        let _ = write!(
            text,
            "[[path]]\nname = \"{name}\"\n{rate_keys}\ndelay = \"{delay:.0}us\"\njitter = \"{jitter:.0}us\"\n\
             loss = {{ to_bad = \"{to_bad:.4}%\", to_good = \"{:.3}%\", bad = \"60%\" }}\nqueue = {{ limit = \"{queue:.0}p\" }}\n\
             reverse = {{ rate = \"5mbit\", loss = \"0%\" }}\n",
            100.0 / burst
        );
    }
    if seed % 3 != 1 {
        text += "[[flow]]\nname = \"web\"\npath = \"p2\"\ncongestion = \"cubic\"\nrequests = { size = { mean = \"300kB\", distribution = \
                 \"pareto\", shape = 1.4 }, think = { mean = \"800ms\", distribution = \"exponential\" } }\n";
    }
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces");
    Links { text, sets: Vec::new(), folder, origin: "hidden".to_owned() }
}
