//! `cargo xtask bench links`: the whole way of a person with two links, over pairs of links that a seed draws: `ropewalk probe`,
//! `fit`, `advise --apply`, a restart, and `advise --check`.
//!
//! The tunnel runs with its defaults first and is measured by a download through it; then again with what was advised. A row
//! has the links, what was promised, and what was measured.

use super::cpu_accounting::CpuAccounting;
use super::programs::Programs;
use super::ropewalk::{self, INNER_ADDRESSES, Mode};
use super::testbed::{CLIENT, SERVER, Testbed};
use super::{running::Processes, scratch_folder};
use crate::shell;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use units::RngStream;

const TOKEN: &str = "the token of a benchmark";
/// The names of the links at the client.
const NAMES: [&str; 2] = ["p0", "p1"];

struct Options<'a> {
    seeds: Range<u64>,
    /// The budgets of the fit and of the advice, as `ropewalk` reads them.
    budgets: [&'a str; 2],
    purpose: &'a str,
    as_json: bool,
}

/// `--seeds FROM..TO [--fit BUDGET] [--advise BUDGET] [--for PURPOSE] [--json]`
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let (programs, accounting) = (Programs::find()?, CpuAccounting::open());
    let mut rows = Vec::new();
    for seed in options.seeds.clone() {
        eprintln!("links {seed}");
        let row = measure(seed, &options, &programs, &accounting).unwrap_or_else(|reason| {
            eprintln!("  failed: {reason}");
            json!({ "seed": seed, "failed": reason })
        });
        rows.push(row);
    }
    match options.as_json {
        true => shell::print(&format!("{:#}\n", json!({ "for": options.purpose, "rows": rows }))),
        false => shell::print(&table(&rows)),
    }
}

impl<'a> Options<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Self, String> {
        let mut options = Self { seeds: 1..6, budgets: ["90s", "60s"], purpose: "throughput", as_json: false };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().copied().ok_or_else(|| format!("{argument} needs a value"));
            match *argument {
                "--seeds" => options.seeds = seeds(value()?)?,
                "--fit" => options.budgets[0] = value()?,
                "--advise" => options.budgets[1] = value()?,
                "--for" => options.purpose = value()?,
                "--json" => options.as_json = true,
                option => return Err(format!("bench links has no option `{option}`")),
            }
        }
        Ok(options)
    }
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let bounds = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    bounds.ok_or_else(|| format!("`{text}` is not FROM..TO"))
}

/// The links of a seed. The forward direction goes from the client to the server. Every third seed has a policer on its second
/// link.
fn draw(seed: u64) -> [String; 2] {
    let mut random = RngStream::named(seed, "links of the benchmark");
    let mut log = |low: f64, high: f64| low * (high / low).powf(random.unit());
    [0, 1].map(|link| {
        let (down, up) = (log(6e3, 40e3), log(0.15, 0.6));
        let (delay, jitter, queue, loss) = (log(4e3, 50e3), log(0.2e3, 6e3), log(20.0, 300.0), log(0.01, 0.6));
        let policer = if link == 1 && seed.is_multiple_of(3) {
            format!(" police={:.0}kbit:{:.0}kB", down, log(60.0, 500.0))
        } else {
            format!(" rate={down:.0}kbit")
        };
        format!(
            "rate={:.0}kbit delay={delay:.0}us jitter={jitter:.0}us queue={queue:.0}ms / \
             delay={delay:.0}us jitter={jitter:.0}us loss={loss:.3}% queue={queue:.0}ms{policer}",
            down * up
        )
    })
}

/// The whole way over the links of a seed.
fn measure(seed: u64, options: &Options<'_>, programs: &Programs, accounting: &CpuAccounting) -> Result<Value, String> {
    let links = draw(seed);
    let testbed = Testbed::make(programs, &links.each_ref().map(String::as_str))?;
    route_by_source(&testbed)?;
    let _server = serve(&testbed, programs)?;
    let way = Way { testbed: &testbed, programs, folder: fresh_folder(seed)? };
    let paths = [0, 1].map(|link| format!("--path {}={}", NAMES[link], testbed.address(link, CLIENT)));
    let address = testbed.address(0, SERVER);
    way.ropewalk(&format!("probe {address} {} --repeats 2 --seconds 6 --json {}", paths.join(" "), way.file("links")))?;
    let [fit, advise] = options.budgets;
    way.ropewalk(&format!("fit --to {} --out {} --budget {fit}", way.file("links"), way.fit()))?;

    let running = ropewalk::start(Mode::Packets, &testbed, programs, accounting)?;
    let before = way.download("before")?;
    let purpose = format!("--for {}", options.purpose);
    let file = ropewalk::configuration_file(CLIENT);
    let advised =
        way.ropewalk(&format!("advise {} {purpose} --budget {advise} --tunnel {} --apply", way.fit(), file.display()))?;
    copy_keys(&file, &ropewalk::configuration_file(SERVER))?;
    drop(running);
    let _running = ropewalk::start_configured(&testbed, programs, accounting)?;
    let after = way.download("after")?;
    let verdict = way.ropewalk(&format!("advise {} {purpose} --check {}", way.fit(), way.file("after")))?;
    let advice = way.advice(options.purpose)?;
    Ok(json!({
        "seed": seed, "links": links, "advised": advised.lines().next(), "verdict": verdict.trim(),
        "candidate": advice["ranked"][0]["candidate"], "promised_mbps": advice["ranked"][0]["goodput_mbps"],
        "default_promised_mbps": advice["default"]["goodput_mbps"], "before_mbps": before, "after_mbps": after,
    }))
}

/// Packets from the address of a link leave by it.
fn route_by_source(testbed: &Testbed) -> Result<(), String> {
    let (source, gateway, device) = (testbed.address(1, CLIENT), testbed.address(1, SERVER), testbed.device(1));
    testbed.run(CLIENT, &format!("ip rule add from {source} table 7"))?;
    testbed.run(CLIENT, &format!("ip route add default via {gateway} dev {device} table 7")).map(drop)
}

/// Starts the server of `ropewalk probe`, and waits until it listens.
fn serve(testbed: &Testbed, programs: &Programs) -> Result<Processes, String> {
    let mut command = testbed.command(SERVER, &format!("{} probe --serve", programs.ropewalk.display()));
    let mut server =
        command.env("ROPEWALK_PROBE_TOKEN", TOKEN).stdout(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
    let mut line = String::new();
    let output = server.stdout.take().expect("it is piped");
    let server = Processes(vec![server]);
    BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    if line.starts_with("listening") { Ok(server) } else { Err("`ropewalk probe --serve` does not listen".to_owned()) }
}

/// What the steps of one pair of links share.
struct Way<'a> {
    testbed: &'a Testbed,
    programs: &'a Programs,
    folder: PathBuf,
}

impl Way<'_> {
    fn file(&self, name: &str) -> String {
        self.folder.join(name).with_extension("json").display().to_string()
    }

    fn fit(&self) -> String {
        self.folder.join("fit").display().to_string()
    }

    /// Runs the program at the client to its end; its output, which stays in the folder, too.
    fn ropewalk(&self, arguments: &str) -> Result<String, String> {
        eprintln!("  ropewalk {arguments}");
        let line = format!("{} {arguments}", self.programs.ropewalk.display());
        let command: &mut Command = &mut self.testbed.command(CLIENT, &line);
        let output = command.env("ROPEWALK_PROBE_TOKEN", TOKEN).output().map_err(|error| error.to_string())?;
        let [text, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        let verb = arguments.split(' ').next().unwrap_or_default();
        let log = self.folder.join(format!("{verb}.log"));
        std::fs::write(&log, format!("{text}{errors}")).map_err(|error| format!("{}: {error}", log.display()))?;
        if output.status.success() { Ok(text) } else { Err(format!("ropewalk {verb}: {}", errors.trim())) }
    }

    /// The mean goodput of CUBIC downloads through the tunnel, Mbit/s.
    fn download(&self, name: &str) -> Result<f64, String> {
        let [source, address] = INNER_ADDRESSES;
        let file = self.file(name);
        self.ropewalk(&format!(
            "probe {address} --path tunnel={source} --congestion cubic --repeats 2 --seconds 8 --json {file}"
        ))?;
        let flows = &read(Path::new(&file))?["paths"][0]["tcp"];
        let downloads = flows.as_array().into_iter().flatten().filter(|flow| flow["direction"] == "down");
        let rates: Vec<f64> = downloads.filter_map(|flow| flow["goodput_mbps"].as_f64()).collect();
        Ok(rates.iter().sum::<f64>() / rates.len().max(1) as f64)
    }

    fn advice(&self, purpose: &str) -> Result<Value, String> {
        read(&Path::new(&self.fit()).join(format!("advice-{purpose}.json")))
    }
}

fn read(file: &Path) -> Result<Value, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}

fn fresh_folder(seed: u64) -> Result<PathBuf, String> {
    let folder = scratch_folder().join(format!("links-{seed}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    Ok(folder)
}

/// Gives the server the table `[tunnel]` that the advice has written at the client. Neither file had one before.
fn copy_keys(client: &Path, server: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(client).map_err(|error| error.to_string())?;
    let keys: Vec<&str> =
        text.lines().skip_while(|line| *line != "[tunnel]").take_while(|line| !line.is_empty()).collect();
    let text = std::fs::read_to_string(server).map_err(|error| error.to_string())?;
    std::fs::write(server, text.replacen("\n[[peer]]", &format!("\n{}\n\n[[peer]]", keys.join("\n")), 1))
        .map_err(|error| error.to_string())
}

/// A row per seed: what was promised and measured.
fn table(rows: &[Value]) -> String {
    let mut text =
        format!("{:<5} {:<34} {:>22} {:>9} {:>9}  verdict\n", "seed", "advised", "promised", "measured", "default");
    for row in rows {
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let candidate = &row["candidate"];
        let words = ["mode", "congestion", "scheduler"].map(|key| candidate[key].as_str().unwrap_or("-"));
        let promised = &row["promised_mbps"];
        let interval = ["median", "low", "high"].map(|key| number(&promised[key]));
        let verdict = row["failed"].as_str().or_else(|| row["verdict"].as_str()?.rsplit(": ").next());
        let _ = writeln!(
            text,
            "{:<5} {:<34} {:>22} {:>9.1} {:>9.1}  {}",
            row["seed"],
            words.join(" "),
            format!("{:.1} ({:.1} to {:.1})", interval[0], interval[1], interval[2]),
            number(&row["after_mbps"]),
            number(&row["before_mbps"]),
            verdict.unwrap_or_default()
        );
    }
    text
}
