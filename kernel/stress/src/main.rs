//! `ropewalk-stress`: the program that the virtual machines of `cargo xtask kernel-matrix` run. It can also be run by
//! hand.

use kernel::{PROGRAMS, Program};
use std::process::ExitCode;
use std::time::Duration;
use stress::remains::Load;
use stress::soak::{Report, Soak};

const HELP: &str = "\
ropewalk-stress VERB, as root

  trial [NAME ...]             each program from loading to unloading: one line each of what it carried
  remains CHANGES CONNECTIONS NAME ...
                               each program under so many changes of endpoints, five a second, and short connections, all
                               at the same time; unloaded while in use: what is left of them?
  soak SECONDS SEED NAME ...   all programs at once with changing links, endpoints and algorithms; a name that is no
                               program is an algorithm of the kernel itself (reno, cubic)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match &arguments[..] {
        ["trial", names @ ..] => trial(names),
        ["remains", changes, connections, names @ ..] if !names.is_empty() => remains(changes, connections, names),
        ["soak", seconds, seed, names @ ..] if !names.is_empty() => soak(seconds, seed, names),
        _ => Err(HELP.to_owned()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("ropewalk-stress: {message}");
            ExitCode::FAILURE
        }
    }
}

/// One line per program: `trial NAME: ...`. Returns whether all succeeded.
fn trial(names: &[&str]) -> Result<bool, String> {
    let chosen: Vec<&'static Program> = match names {
        [] => PROGRAMS.iter().collect(),
        names => names.iter().map(|name| program(name)).collect::<Result<_, _>>()?,
    };
    let mut succeeded = true;
    for program in chosen {
        let outcome = stress::trial::run(program);
        if let Ok(outcome) = &outcome {
            let calls = outcome.hooks.iter().map(|hook| format!(" {}={}", hook.name, hook.calls));
            println!("hooks {}{}", program.kernel_name, calls.collect::<String>());
        }
        let row = outcome.map_or_else(|error| Err(error.replace('\n', " ")), |outcome| outcome.row());
        succeeded &= row.is_ok();
        println!("trial {}: {}", program.kernel_name, row.unwrap_or_else(|error| format!("FAILED: {error}")));
    }
    Ok(succeeded)
}

fn program(name: &str) -> Result<&'static Program, String> {
    kernel::program(name).ok_or_else(|| format!("no program `{name}`\n\n{HELP}"))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number\n\n{HELP}"))
}

fn remains(changes: &str, connections: &str, names: &[&str]) -> Result<bool, String> {
    let programs = names.iter().map(|name| program(name)).collect::<Result<Vec<_>, _>>()?;
    let load = Load { endpoint_changes: number(changes)?, short_connections: number(connections)? };
    let remains = stress::remains::run(&programs, load)?;
    remains.rows.iter().for_each(|row| println!("{row}"));
    remains.findings.iter().for_each(|finding| println!("FINDING: {finding}"));
    Ok(remains.findings.is_empty())
}

fn soak(seconds: &str, seed: &str, names: &[&str]) -> Result<bool, String> {
    let soak = Soak {
        programs: names.iter().filter_map(|name| kernel::program(name)).collect(),
        own: names.iter().filter(|name| kernel::program(name).is_none()).map(|name| (*name).to_owned()).collect(),
        span: Duration::from_secs(number(seconds)?),
        seed: number(seed)?,
        reload_interval: Duration::from_secs(5),
    };
    let start = std::time::Instant::now();
    let report = soak.run(&mut |report| print(start, report))?;
    print(start, &report);
    Ok(report.findings.is_empty())
}

fn print(start: std::time::Instant, report: &Report) {
    let counters: Vec<String> = report.counters.iter().map(|(name, count)| format!("{name} {count}")).collect();
    println!("soak {:.0} s: {}", start.elapsed().as_secs_f64(), counters.join(", "));
    for finding in &report.findings {
        println!("FINDING: {finding}");
    }
}
