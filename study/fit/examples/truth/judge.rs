//! Hidden links drawn by seed, and what a fit of them predicts of candidates, compared with the truth. The example `truth` and a
//! test share it.

use fit::{Candidate, Fit, Goal, Links, Mode, Model, Options, Outcome, Trial, interval, measurement, median, outcomes};
use measured::Measured;
use runner::{Driver, Simulator};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use units::RngStream;

pub(crate) const PATHS: [&str; 2] = ["p1", "p2"];
const SECONDS: f64 = 15.0;
/// Seeds of the predictions.
const SEEDS: &[u64] = &[1, 2, 3];
pub(crate) const THREADS: usize = 2;

/// Where the truth comes from.
pub(crate) struct Truth<'a> {
    /// The hidden links of a seed.
    pub(crate) draw: fn(u64) -> Hidden,
    /// What carries candidates, and the probes of the measurement, over them.
    pub(crate) driver: &'a dyn Driver,
    /// Repetitions of the measurement.
    pub(crate) repetitions: u64,
    /// How many runs the truth is a mean over, and the ceiling: the truth again.
    pub(crate) runs: [u64; 2],
    /// The probes that the driver cannot make.
    pub(crate) without: Vec<String>,
    /// What is held out from the fit.
    pub(crate) hold: Vec<String>,
    /// What is known of the hosts, as keys of a scenario.
    pub(crate) hosts: Vec<String>,
    /// The delay that the driver tells of every candidate.
    pub(crate) delay: fn(&Outcome) -> f64,
}

impl Truth<'_> {
    /// The simulator, with parts that no fitted model has; the truth is a mean over so many runs.
    pub(crate) fn simulated(repetitions: u64, runs: u64) -> Self {
        Self {
            draw,
            driver: &Simulator,
            repetitions,
            runs: [runs, 3],
            without: Vec::new(),
            hold: vec!["call".to_owned()],
            hosts: Vec::new(),
            delay: |outcome| outcome.delay_p95_ms,
        }
    }

    /// What candidates achieve over the hidden links.
    pub(crate) fn outcomes(
        &self,
        hidden: &Links,
        candidates: &[Candidate],
        seeds: &[u64],
    ) -> Result<Vec<Outcome>, fit::Error> {
        Ok(run(self.driver, &[hidden], candidates, seeds)?.into_iter().map(|of| of[0]).collect())
    }

    /// The measurement of a pair.
    pub(crate) fn measurement(&self, pair: u64, hidden: &Links) -> Result<Measured, fit::Error> {
        measurement(self.driver, hidden, &PATHS, &self.without, &seeds(pair, 0, self.repetitions), THREADS)
    }
}

/// Seeds of one purpose, which no other pair and purpose has: links of one name and seed lose the same packets.
pub(crate) fn seeds(pair: u64, purpose: u64, count: u64) -> Vec<u64> {
    let first = 10_000 + 1000 * pair + 100 * purpose;
    (first..first + count).collect()
}

fn run(
    driver: &dyn Driver,
    links: &[&Links],
    candidates: &[Candidate],
    seeds: &[u64],
) -> Result<Vec<Vec<Outcome>>, fit::Error> {
    let (paths, goal) = (&PATHS.map(str::to_owned), Goal::Throughput);
    outcomes(links, candidates, &Trial { paths, goal, seconds: SECONDS, seeds, driver, threads: THREADS })
}

/// What the fit of a pair predicts of candidates, for goodput and for delay.
pub(crate) struct Score {
    /// Goodput and p95 delay.
    pub(crate) values: [Predicted; 2],
    /// The fit.
    pub(crate) fit: Fit,
    /// How many of the hidden values of unknowns lie within the interval of 90 %, and of how many: on paths as the model has them,
    /// and on those with other traffic or a trace.
    pub(crate) unknowns: [(usize, usize); 2],
}

/// Hidden links.
pub(crate) struct Hidden {
    pub(crate) links: Links,
    /// The values of the model's unknowns, by their keys.
    pub(crate) values: BTreeMap<String, f64>,
    /// The paths that have what no model has: other traffic, or a trace of rates.
    pub(crate) beyond_model: Vec<&'static str>,
}

/// The predictions of one value.
pub(crate) struct Predicted {
    /// Kendall's tau with the truth: of the hidden links with other seeds, of the ensemble, of the naive links.
    pub(crate) tau: [f64; 3],
    /// Relative errors of the ensemble's median, of the naive links and of the ceiling, of each candidate; with their signs.
    pub(crate) errors: [Vec<f64>; 3],
    /// How many of the candidates lie within the interval.
    pub(crate) within: usize,
    /// The median of the widths of the intervals, half of them, as a share of the value.
    pub(crate) half_width: f64,
}

impl Score {
    /// The fit of a pair with so many members by so many evaluations, and its predictions of `candidates`.
    pub(crate) fn of(
        truth: &Truth<'_>,
        seed: u64,
        members: usize,
        evaluations: usize,
        candidates: &[Candidate],
    ) -> Result<Self, fit::Error> {
        let drawn = (truth.draw)(seed);
        let hidden = &drawn.links;
        let measured = truth.measurement(seed, hidden)?;
        let model = Model::of_measurement(&measured, &[])?;
        let options = Options { members, hold: truth.hold.clone(), threads: THREADS, seed };
        let mut fit = fit::fit(&model, &measured, &options, &mut |progress| {
            1.0 - progress.evaluations as f64 / evaluations as f64
        })?;
        let links = fit.members.iter_mut().map(|member| &mut member.links).chain([&mut fit.naive_links]);
        links.for_each(|links| links.sets.extend(truth.hosts.iter().cloned()));
        let run_again = |purpose: u64, runs: u64| truth.outcomes(hidden, candidates, &seeds(seed, purpose, runs));
        let (once, again) = (run_again(1, truth.runs[0])?, run_again(2, truth.runs[1])?);
        let members: Vec<&Links> = fit.members.iter().map(|member| &member.links).collect();
        let predict = |links: &[&Links]| run(&Simulator, links, candidates, SEEDS);
        let (ensemble, naive) = (predict(&members)?, predict(&[&fit.naive_links])?.concat());
        let values: [fn(&Outcome) -> f64; 2] = [|outcome| outcome.goodput_mbps, truth.delay];
        let values = values.map(|value| {
            let of = |outcomes: &[Outcome]| outcomes.iter().map(value).collect::<Vec<f64>>();
            let all: Vec<Vec<f64>> = ensemble.iter().map(|outcomes| of(outcomes)).collect();
            (of(&once), of(&again), all, of(&naive))
        });
        let errors = [fit.model_error.goodput, fit.model_error.delay];
        let mut errors = errors.into_iter();
        let values = values.map(|(truth, again, all, naive)| {
            Predicted::new(&truth, &again, &all, &naive, errors.next().unwrap_or_default())
        });
        Ok(Self { values, unknowns: drawn.found(&fit), fit })
    }
}

impl Hidden {
    fn found(&self, fit: &Fit) -> [(usize, usize); 2] {
        let mut counts = [(0, 0); 2];
        for parameter in &fit.parameters {
            let key = &parameter.unknown.key;
            if let Some(hidden) = self.values.get(key) {
                let is_beyond = self.beyond_model.iter().any(|path| key.starts_with(&format!("path.{path}.")));
                let (within, all) = &mut counts[usize::from(is_beyond)];
                *within += usize::from((parameter.interval.low..=parameter.interval.high).contains(hidden));
                *all += 1;
            }
        }
        counts
    }
}

impl Predicted {
    fn new(truth: &[f64], again: &[f64], ensemble: &[Vec<f64>], naive: &[f64], error: f64) -> Self {
        let intervals: Vec<_> = ensemble.iter().map(|values| interval(values, error)).collect();
        let medians: Vec<f64> = intervals.iter().map(|interval| interval.median).collect();
        let errors = |predicted: &[f64]| predicted.iter().zip(truth).map(|(a, b)| a / b - 1.0).collect();
        let within =
            intervals.iter().zip(truth).filter(|(interval, truth)| (interval.low..=interval.high).contains(truth));
        Self {
            tau: [kendall(truth, again), kendall(truth, &medians), kendall(truth, naive)],
            errors: [errors(&medians), errors(naive), errors(again)],
            within: within.count(),
            half_width: median(&intervals.iter().map(fit::Interval::half_width).collect::<Vec<_>>()),
        }
    }
}

/// The median of the sizes of errors.
pub(crate) fn median_size(errors: &[f64]) -> f64 {
    median(&errors.iter().map(|error| error.abs()).collect::<Vec<_>>())
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

/// All algorithms with all schedulers, by MPTCP.
pub(crate) fn candidates(algorithms: &[&str], schedulers: &[&str]) -> Vec<Candidate> {
    let of = |congestion: &&str, scheduler: &&str| Candidate {
        mode: Mode::Mptcp,
        congestion: (*congestion).to_owned(),
        scheduler: Some((*scheduler).to_owned()),
    };
    algorithms.iter().flat_map(|name| schedulers.iter().map(move |scheduler| of(name, scheduler))).collect()
}

/// The hidden links of a seed.
pub(crate) fn draw(seed: u64) -> Hidden {
    let mut rng = RngStream::named(seed, "hidden links");
    let mut log = |low: f64, high: f64| low * (high / low).powf(rng.unit());
    let mut text = "name = \"hidden\"\nduration = \"10s\"\n".to_owned();
    let (mut values, mut beyond_model) = (BTreeMap::new(), Vec::new());
    for name in PATHS {
        let (rate, width, deviation) = (1e3 * log(6.0, 30.0), log(1.1, 2.0), log(0.03, 0.3));
        let (delay, jitter, queue) = (1e3 * log(6.0, 45.0), 1e3 * log(0.3, 8.0), log(25.0, 400.0));
        let (to_bad, burst) = (log(0.02, 0.6), log(1.2, 10.0));
        let has_trace = name == "p1" && seed.is_multiple_of(3);
        let bad_percent = 100.0 * to_bad / (to_bad + 100.0 / burst);
        let of_wire = [("delay", delay / 1e6), ("jitter", jitter / 1e6), ("queue.limit", queue)];
        let of_losses = [("loss.share", 0.6 * bad_percent), ("loss.burst", burst)];
        let of_rate = [("rate", 1e3 * rate), ("walk_width", width), ("walk_deviation", deviation)];
        let of_rate = if has_trace { &[][..] } else { &of_rate };
        let known = of_wire.iter().chain(&of_losses).chain(of_rate);
        values.extend(known.map(|(key, value)| (format!("path.{name}.{key}"), *value)));
        beyond_model.extend(has_trace.then_some(name));
        let rate_keys = match has_trace {
            true => "trace = \"lte-a-made.trace\"\ntrace_offset = \"random\"".to_owned(),
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
        beyond_model.push("p2");
        text += "[[flow]]\nname = \"web\"\npath = \"p2\"\ncongestion = \"cubic\"\nrequests = { size = { mean = \"300kB\", distribution = \
                 \"pareto\", shape = 1.4 }, think = { mean = \"800ms\", distribution = \"exponential\" } }\n";
    }
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces");
    let links = Links { text, sets: Vec::new(), folder, origin: "hidden".to_owned() };
    Hidden { links, values, beyond_model }
}
