//! `cargo xtask bench`: the amount of simulation per CPU second, compared with a calibration loop, other builds of Ropewalk
//! and other simulators.
//!
//! Every run is a separate process. In each round every workload is run by every program in turn, so that all programs
//! meet the same state of the machine; ratios are taken within a round.

mod calibration;
mod history;
pub(crate) mod stacks;
mod workloads;

pub(crate) use calibration::calibrate;

use crate::measure::measure;
use crate::shell;
use history::{Entry, History};
use serde_json::{Value, json};
use std::path::PathBuf;
use workloads::{Row, System, WORKLOADS, Workload};

#[derive(Debug)]
struct Options {
    runs: usize,
    json: bool,
    record: bool,
    /// The names of the workloads; all if empty.
    only: Vec<String>,
    /// A build other than `target/release/ropewalk`.
    program: Option<PathBuf>,
    beside: Vec<System>,
}

/// The results of one round for a workload.
#[derive(Debug)]
struct Round {
    /// Steps of the calibration loop per CPU second.
    steps_per_s: f64,
    own: Row,
    /// Data packets delivered per CPU second, divided by those of each other program, which may not have the workload.
    beside: Vec<Option<f64>>,
}

/// Measures and prints.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let options = parse_options(options)?;
    let workloads: Vec<&Workload> = WORKLOADS
        .iter()
        .filter(|workload| options.only.is_empty() || options.only.iter().any(|name| name == workload.name))
        .collect();
    let folder = shell::release_folder()?;
    let program = options.program.clone().unwrap_or_else(|| folder.join("ropewalk"));
    let own = System { name: "ropewalk".to_owned(), program, is_ropewalk: true };
    let mut rounds: Vec<Vec<Round>> = workloads.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.runs {
        for (workload, rounds) in workloads.iter().zip(&mut rounds) {
            let steps_per_s = calibration_speed()?;
            let own = own.run(workload, &folder)?;
            let beside = options.beside.iter().map(|system| {
                let has_it = system.is_ropewalk || workload.is_common();
                let row = has_it.then(|| system.run(workload, &folder)).transpose()?;
                Ok(row.map(|row| (own.delivered / own.cpu_s) / (row.delivered / row.cpu_s)))
            });
            rounds.push(Round { steps_per_s, own, beside: beside.collect::<Result<_, String>>()? });
        }
    }
    let results: Vec<_> =
        workloads.iter().zip(&rounds).map(|(workload, rounds)| summary(workload, rounds, &options)).collect();
    match options.json {
        true => shell::print(&format!("{:#}\n", json!({ "runs": options.runs, "workloads": results })))?,
        false => {
            let history = History::read();
            results.iter().try_for_each(|result| shell::print(&table(result, &history)))?;
        }
    }
    let entries = workloads.iter().zip(&rounds).map(|(workload, rounds)| entry(workload, rounds));
    if options.record { history::record(&entries.collect::<Vec<_>>()) } else { Ok(()) }
}

fn parse_options(arguments: &[&str]) -> Result<Options, String> {
    let mut options =
        Options { runs: 5, json: false, record: false, only: Vec::new(), program: None, beside: Vec::new() };
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let mut value = |what: &str| arguments.next().copied().ok_or_else(|| format!("{word} needs {what}"));
        match *word {
            "--json" => options.json = true,
            "--record" => options.record = true,
            "--runs" => {
                let count = value("a number")?.parse().ok().filter(|count| *count > 0);
                options.runs = count.ok_or("--runs needs a number above zero")?;
            }
            "--only" => options.only = names(value("workloads: w1,w2")?)?,
            "--program" => options.program = Some(PathBuf::from(value("a build of ropewalk")?)),
            "--build" => options.beside.push(system(value("NAME=FILE, another build of ropewalk")?, true)?),
            "--beside" => options.beside.push(system(value("NAME=FILE, another simulator's program")?, false)?),
            option => return Err(format!("bench has no option `{option}`")),
        }
    }
    Ok(options)
}

fn names(list: &str) -> Result<Vec<String>, String> {
    let known = |name: &str| WORKLOADS.iter().any(|workload| workload.name == name);
    let names: Vec<String> = list.split(',').map(str::to_owned).collect();
    match names.iter().find(|name| !known(name)) {
        Some(unknown) => {
            let all: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
            Err(format!("there is no workload `{unknown}`, but {}", all.join(", ")))
        }
        None => Ok(names),
    }
}

fn system(assignment: &str, is_ropewalk: bool) -> Result<System, String> {
    let (name, program) = assignment.split_once('=').ok_or_else(|| format!("`{assignment}` is not NAME=FILE"))?;
    let program = std::fs::canonicalize(program).map_err(|error| format!("{program}: {error}"))?;
    Ok(System { name: name.to_owned(), program, is_ropewalk })
}

fn calibration_speed() -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(calibration::STEPS as f64 / measure(&[&program.to_string_lossy(), "calibrate"])?.cpu_s)
}

fn summary(workload: &Workload, rounds: &[Round], options: &Options) -> Value {
    let quartiles_of = |value: &dyn Fn(&Round) -> f64| quartiles(rounds.iter().map(value).collect());
    let beside = options.beside.iter().enumerate().filter_map(|(index, system)| {
        let ratios: Option<Vec<f64>> = rounds.iter().map(|round| round.beside[index]).collect();
        Some((system.name.clone(), json!(quartiles(ratios?))))
    });
    json!({
        "workload": workload.name,
        "data_packet_hops_per_cpu_s": quartiles_of(&|round| round.own.hops / round.own.cpu_s),
        "delivered_data_packets_per_cpu_s": quartiles_of(&|round| round.own.delivered / round.own.cpu_s),
        "data_packet_hops_per_calibration_step": quartiles_of(&|round| hops_per_step(round)),
        "cpu_s": quartiles_of(&|round| round.own.cpu_s),
        "peak_bytes": quartiles_of(&|round| round.own.peak_bytes),
        "flows": workload.flows,
        "ratio_to": beside.collect::<serde_json::Map<_, _>>(),
    })
}

fn hops_per_step(round: &Round) -> f64 {
    round.own.hops / round.own.cpu_s / round.steps_per_s
}

fn entry(workload: &Workload, rounds: &[Round]) -> Entry {
    let sorted = |value: &dyn Fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (hops, last) = (sorted(&hops_per_step), rounds.len() - 1);
    Entry {
        workload: workload.name.to_owned(),
        hops_per_step: [quantile(&hops, 0.5), hops[0], hops[last]],
        calibration: quantile(&sorted(&|round| round.steps_per_s), 0.5) / 1e6,
        peak_mib: quantile(&sorted(&|round| round.own.peak_bytes), 0.5) / 1_048_576.0,
        runs: rounds.len(),
    }
}

fn table(result: &Value, history: &History) -> String {
    let name = result["workload"].as_str().unwrap_or_default();
    let mut lines = format!("\n{name:<40}{:>14}{:>14}{:>14}\n", "median", "1st quartile", "3rd quartile");
    let mut line = |label: &str, value: &Value, scale: f64, digits: usize| {
        let [low, median, high] = [0, 1, 2].map(|index| value[index].as_f64().unwrap_or(f64::NAN) * scale);
        lines += &format!("  {label:<38}{median:>14.digits$}{low:>14.digits$}{high:>14.digits$}\n");
    };
    line("data packet-hops per CPU second", &result["data_packet_hops_per_cpu_s"], 1.0, 0);
    line("delivered data packets per CPU second", &result["delivered_data_packets_per_cpu_s"], 1.0, 0);
    let steps = &result["data_packet_hops_per_calibration_step"];
    line("data packet-hops per calibration step", steps, 1.0, 4);
    if let Some((commit, recorded)) = history.last(name) {
        line(&format!("  over those of commit {commit}"), steps, 1.0 / recorded, 2);
    }
    line("CPU seconds", &result["cpu_s"], 1.0, 3);
    line("peak memory, MiB", &result["peak_bytes"], 1.0 / 1_048_576.0, 1);
    if let Some(flows) = result["flows"].as_f64() {
        line("  kB per flow", &result["peak_bytes"], 1e-3 / flows, 1);
    }
    for (other, ratios) in result["ratio_to"].as_object().into_iter().flatten() {
        line(&format!("delivered packets, times those of {other}"), ratios, 1.0, 2);
    }
    lines
}

/// First quartile, median and third quartile of `values`, of which there is at least one.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|share| quantile(&values, share))
}

/// A quantile of ascending values, on the straight line between two of them.
fn quantile(values: &[f64], share: f64) -> f64 {
    let position = share * (values.len() - 1) as f64;
    let (low, high) = (position.floor() as usize, position.ceil() as usize);
    values[low] + (values[high] - values[low]) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_on_straight_lines_between_the_values() {
        assert_eq!(quartiles(vec![4.0, 1.0, 3.0, 2.0]), [1.75, 2.5, 3.25]);
        assert_eq!(quartiles(vec![7.0]), [7.0; 3]);
    }

    #[test]
    fn options_are_checked() {
        let own = std::env::current_exe().unwrap();
        let peer = format!("htsim={}", own.display());
        let options = parse_options(&["--runs", "3", "--json", "--only", "w1,flows-1000", "--beside", &peer]).unwrap();
        assert_eq!((options.runs, options.only.len(), &*options.beside[0].name), (3, 2, "htsim"));
        for wrong in
            [&["--runs", "0"][..], &["--fast"], &["--only", "w9"], &["--beside", "htsim"], &["--build", "a=/no"]]
        {
            assert!(parse_options(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_ratio_beside_a_program_is_missing_where_that_has_not_the_workload() {
        let own = Row { delivered: 100.0, hops: 300.0, cpu_s: 2.0, peak_bytes: 1e6 };
        let round = |beside| Round { steps_per_s: 75.0, own, beside: vec![beside] };
        let peer = System { name: "htsim".to_owned(), program: PathBuf::new(), is_ropewalk: false };
        let options = Options { beside: vec![peer], ..parse_options(&[]).unwrap() };
        let with = summary(&WORKLOADS[0], &[round(Some(1.5))], &options);
        assert_eq!(with["ratio_to"]["htsim"], json!([1.5, 1.5, 1.5]));
        assert_eq!(with["data_packet_hops_per_calibration_step"][1], 2.0);
        assert_eq!(summary(&WORKLOADS[2], &[round(None)], &options)["ratio_to"], json!({}));
    }
}
