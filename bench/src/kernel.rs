//! `cargo xtask bench kernel`: the cost of the eBPF programs on the running kernel, compared with its own Reno and CUBIC.
//!
//! An MPTCP connection sends over two subflows, or another number, between network namespaces, without a rate limit: the
//! processor is the bottleneck. Slow start ends at ten packets, so that each acknowledgement passes through the growth of
//! the window. In each round every algorithm sends once, one after another, beginning with a different one each time. CPU
//! time is that of this process, which runs both ends and the kernel's work for them. Work in interrupts and in other kernel
//! threads is missing for all algorithms alike. Time per acknowledgement is the kernel's own measurement
//! (`kernel.bpf_stats_enabled`) in a further transfer: the time of all functions of a program per call of its most frequent
//! one.

use crate::shell;
use ::kernel::Program;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};
use std::fs;
use std::time::Instant;
use stress::observe::{Runs, Stats};
use stress::trial::Paths;

const ROUNDS: u64 = 10;
const MEGABYTES: u64 = 500;
const SUBFLOWS: usize = 2;
const MAX_SUBFLOWS: usize = 8;
/// The reference, and the kernel's default.
const OWN: [&str; 2] = ["reno", "cubic"];
const PROGRAMS: [&str; 6] = ["lia", "olia", "balia", "wvegas", "coupled-bbr", "highspeed"];
const LOAD: &str = "/proc/loadavg";

/// The command line.
#[derive(Debug, PartialEq)]
struct Options {
    rounds: u64,
    megabytes: u64,
    subflows: usize,
    names: Vec<String>,
    is_json: bool,
}

/// One transfer.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// CPU seconds per gigabyte.
    cpu_s: f64,
    /// Gigabits per second.
    gbps: f64,
}

/// A program that stays loaded as long as this value exists, if it was not loaded before.
struct Guest {
    program: &'static Program,
    is_ours: bool,
}

impl Guest {
    fn load(name: &str) -> Result<Self, String> {
        let program = ::kernel::program(name).ok_or_else(|| format!("no program `{name}`: ropewalk kernel list"))?;
        let is_ours = !::kernel::registered().contains(program.kernel_name);
        if is_ours {
            ::kernel::load(program).map_err(|error| error.to_string())?;
        }
        Ok(Self { program, is_ours })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = ::kernel::unload(self.program);
        }
    }
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let options = parse(options)?;
    // A program that somebody else has loaded is measured too, such as an earlier version by `bpftool struct_ops register`.
    let registered = ::kernel::registered();
    let (others, ours): (Vec<&String>, Vec<_>) = options.names.iter().partition(|name| registered.contains(*name));
    let guests = ours.into_iter().map(|name| Guest::load(name)).collect::<Result<Vec<_>, _>>()?;
    let mut names = OWN.to_vec();
    names.extend(others.into_iter().map(String::as_str));
    names.extend(guests.iter().map(|guest| guest.program.kernel_name));
    let load_before = load();
    let mut paths = Paths::new(options.subflows)?;
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        rounds.push(measure_all(&mut paths, &names, round, options.megabytes)?);
    }
    let acks = acknowledgements(&mut paths, &names, options.megabytes)?;
    let rows: Vec<Value> =
        names.iter().enumerate().map(|(index, name)| row(name, index, &rounds, acks[index])).collect();
    let load = format!("{load_before} before, {} after", self::load());
    if options.is_json {
        return shell::print(&format!("{:#}\n", json!({ "load": load, "rows": rows })));
    }
    print(&rows, &options, &load)
}

fn parse(words: &[&str]) -> Result<Options, String> {
    let mut options =
        Options { rounds: ROUNDS, megabytes: MEGABYTES, subflows: SUBFLOWS, names: Vec::new(), is_json: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().and_then(|text| text.parse().ok()).filter(|value| *value > 0);
            value.ok_or_else(|| format!("`{word}` needs a whole number above 0"))
        };
        match *word {
            "--json" => options.is_json = true,
            "--rounds" => options.rounds = number()?,
            "--megabytes" => options.megabytes = number()?,
            "--subflows" => {
                options.subflows =
                    usize::try_from(number()?).ok().filter(|subflows| *subflows <= MAX_SUBFLOWS).ok_or_else(|| {
                        format!("`--subflows` is at most {MAX_SUBFLOWS}, as a connection of Linux has no more")
                    })?;
            }
            unknown if unknown.starts_with('-') => {
                return Err(format!(
                    "no option `{unknown}`; bench kernel has --rounds N, --megabytes N, --subflows N, --json"
                ));
            }
            name => options.names.push(name.to_owned()),
        }
    }
    if options.names.is_empty() {
        options.names = PROGRAMS.map(str::to_owned).to_vec();
    }
    Ok(options)
}

/// One transfer per algorithm, beginning with a different one each round.
fn measure_all(paths: &mut Paths, names: &[&str], round: u64, megabytes: u64) -> Result<Vec<Cost>, String> {
    let mut costs = vec![Cost { cpu_s: 0.0, gbps: 0.0 }; names.len()];
    for step in 0..names.len() {
        let index = (step + usize::try_from(round).unwrap_or(0)) % names.len();
        costs[index] = transfer(paths, names[index], megabytes)?;
    }
    Ok(costs)
}

fn transfer(paths: &mut Paths, name: &str, megabytes: u64) -> Result<Cost, String> {
    let mut connection = paths.open(name)?;
    let (cpu, start) = (cpu_s()?, Instant::now());
    paths.send(&mut connection, megabytes * 1_000_000)?;
    let gigabytes = megabytes as f64 / 1e3;
    Ok(Cost { cpu_s: (cpu_s()? - cpu) / gigabytes, gbps: 8.0 * gigabytes / start.elapsed().as_secs_f64() })
}

/// CPU time of this process, seconds.
fn cpu_s() -> Result<f64, String> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|error| error.to_string())?;
    let times = [usage.user_time(), usage.system_time()];
    Ok(times.iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum())
}

/// Number of acknowledgements, and nanoseconds per acknowledgement, for the algorithms that are programs.
fn acknowledgements(paths: &mut Paths, names: &[&str], megabytes: u64) -> Result<Vec<Option<(u64, f64)>>, String> {
    let _stats = Stats::enable()?;
    let measure = |name: &&str| {
        if OWN.contains(name) {
            return Ok(None);
        }
        let earlier = Runs::until_now();
        transfer(paths, name, megabytes)?;
        let [calls, ns] = Runs::until_now().since(&earlier);
        Ok(Some((calls, ns as f64 / calls.max(1) as f64)))
    };
    names.iter().map(measure).collect()
}

fn row(name: &str, index: usize, rounds: &[Vec<Cost>], acks: Option<(u64, f64)>) -> Value {
    let ratios = quartiles(rounds.iter().map(|round| round[index].cpu_s / round[0].cpu_s));
    json!({
        "algorithm": name,
        "cpu_ratio_quartiles": ratios,
        "cpu_s_per_gb": quartiles(rounds.iter().map(|round| round[index].cpu_s))[1],
        "gbps": quartiles(rounds.iter().map(|round| round[index].gbps))[1],
        "acks": acks.map(|(count, _)| count),
        "ns_per_ack": acks.map(|(_, ns)| ns),
    })
}

/// First quartile, median and third quartile, by the nearest rank.
fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut ascending: Vec<f64> = values.collect();
    ascending.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| ascending[(ascending.len() * quarter).div_ceil(4) - 1])
}

/// The machine's load in the last minute.
fn load() -> String {
    let text = fs::read_to_string(LOAD).unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn print(rows: &[Value], options: &Options, load: &str) -> Result<(), String> {
    shell::print(&format!(
        "{:<16}{:>20}{:>10}{:>10}{:>12}{:>10}\n",
        "algorithm", "CPU / reno's", "s / GB", "ACKs", "ns / ACK", "Gbit/s"
    ))?;
    for row in rows {
        let ratio = |index: usize| row["cpu_ratio_quartiles"][index].as_f64().unwrap_or_default();
        let ratios = format!("{:.2} ({:.2}-{:.2})", ratio(1), ratio(0), ratio(2));
        let ns = row["ns_per_ack"].as_f64().map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0}"));
        let acks = row["acks"].as_u64().map_or_else(|| "-".to_owned(), |count| count.to_string());
        let number = |key: &str| row[key].as_f64().unwrap_or_default();
        let name = row["algorithm"].as_str().unwrap_or_default();
        let (cpu, gbps) = (number("cpu_s_per_gb"), number("gbps"));
        shell::print(&format!("{name:<16}{ratios:>20}{cpu:>10.3}{acks:>10}{ns:>12}{gbps:>10.1}\n"))?;
    }
    let Options { rounds, megabytes, subflows, .. } = options;
    shell::print(&format!(
        "\n{rounds} rounds of {megabytes} MB over {subflows} subflows; ratios within a round: median and quartiles. Load of the \
         machine: {load}.\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_values_of_the_sample() {
        assert_eq!(quartiles((1..=8).rev().map(f64::from)), [2.0, 4.0, 6.0]);
        assert_eq!(quartiles([3.0].into_iter()), [3.0; 3]);
    }

    #[test]
    fn options_that_do_not_exist_are_refused_with_those_that_do() {
        assert_eq!(parse(&["--rounds", "3", "lia"]).map(|options| (options.rounds, options.names.len())), Ok((3, 1)));
        assert!(parse(&["--round", "3"]).is_err_and(|error| error.contains("--rounds N")));
        assert!(parse(&["--rounds", "0"]).is_err());
    }
}
