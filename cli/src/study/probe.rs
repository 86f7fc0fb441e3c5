//! `ropewalk probe`: measures the paths to another host, or serves such measurements.

mod table;

use super::{Probe as Arguments, interrupt};
use crate::{Failure, output};
use ::probe::{Choices, Limits, News, PathSource, Plan, Server, Session, Token};
use measured::Measured;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The environment variable of the token: arguments are visible to every user of a host.
const TOKEN: &str = "ROPEWALK_PROBE_TOKEN";

/// Carries out the command.
pub(super) fn probe(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.host {
        Some(host) => measure(arguments, host),
        None if arguments.serve => serve(arguments),
        None => import(arguments),
    }
}

fn serve(arguments: &Arguments) -> Result<(), Failure> {
    let generated = match token_text(arguments) {
        Some(_) => None,
        None => Some(Token::generate().map_err(|error| Failure::Environment(error.to_string()))?),
    };
    let token = token_text(arguments).or_else(|| generated.clone()).unwrap_or_default();
    let token = Token::new(&token).map_err(Failure::Usage)?;
    let address = arguments.listen.unwrap_or_else(|| (Ipv6Addr::UNSPECIFIED, ::probe::PORT).into());
    let limits = Limits::default();
    let address = Server::start(token, address, limits)
        .map_err(|error| Failure::Environment(format!("cannot listen at {address}: {error}")))?;
    output::print(&format!(
        "listening at {address}, TCP and UDP: at most {} sessions, {} GB and {} min each\n",
        limits.sessions,
        limits.bytes / 1_000_000_000,
        limits.time.as_secs() / 60
    ))?;
    if let Some(token) = generated {
        output::print(&format!("at the other end: {TOKEN}={token} ropewalk probe HOST\n"))?;
    }
    loop {
        std::thread::park();
    }
}

fn measure(arguments: &Arguments, host: &str) -> Result<(), Failure> {
    let text = token_text(arguments);
    let text = text.ok_or_else(|| Failure::Usage(format!("the server's token is missing: --token, or {TOKEN}")))?;
    let token = Token::new(&text).map_err(Failure::Usage)?;
    let choices = choices(arguments)?;
    let server = resolve(host, &choices.paths)?;
    refuse_metered(arguments, server, &choices)?;
    let plan = Plan::new(choices.clone()).map_err(|error| Failure::Usage(format!("--budget: {error}")))?;
    tell_plan(&plan, &choices);
    let session = Session::open(server, token, &choices.paths[0].source)
        .map_err(|error| Failure::Environment(format!("{host}: {error}")))?;
    let (program, count) = (format!("ropewalk {}", crate::VERSION), plan.count());
    let so_far = keep_if_interrupted(arguments, count)?;
    let measured = ::probe::run(&session, &plan, &program, &mut |news| {
        if !arguments.quiet {
            output::warn(&progress(news, count));
        }
        *so_far.lock().unwrap_or_else(PoisonError::into_inner) = news.measured.clone();
    });
    show(arguments.json.as_deref(), &measured)
}

/// From now on an interrupt writes and prints the document that the returned value holds, and ends the program.
fn keep_if_interrupted(arguments: &Arguments, planned: usize) -> Result<Arc<Mutex<Measured>>, Failure> {
    let so_far = Arc::new(Mutex::new(Measured::default()));
    let (measured, json) = (so_far.clone(), arguments.json.clone());
    interrupt::tell_with(move || {
        let measured = measured.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let done = measured.stages.len();
        if done == 0 {
            return "no stage had ended: nothing is kept".to_owned();
        }
        let kept = match &json {
            Some(file) if file != Path::new("-") => format!("are kept in {}", file.display()),
            _ => "are kept".to_owned(),
        };
        match show(json.as_deref(), &::probe::interrupted(measured, planned)) {
            Ok(()) => format!("{done} of {planned} stages {kept}"),
            Err(failure) => failure.to_string(),
        }
    })?;
    Ok(so_far)
}

fn import(arguments: &Arguments) -> Result<(), Failure> {
    show(arguments.json.as_deref(), &read_all(&arguments.import)?)
}

/// The measurements of all files together, for every command that takes them.
pub(super) fn read_all(files: &[PathBuf]) -> Result<Measured, Failure> {
    ::trace::measurements(files).map_err(Failure::Script)
}

/// Writes the document, and prints the table.
fn show(json: Option<&Path>, measured: &Measured) -> Result<(), Failure> {
    match json {
        Some(file) if file == Path::new("-") => return output::json(measured),
        Some(file) => {
            let text = serde_json::to_string_pretty(measured).expect("maps with text keys, numbers and lists");
            std::fs::write(file, text + "\n")
                .map_err(|error| Failure::Environment(format!("cannot write {}: {error}", file.display())))?;
        }
        None => {}
    }
    output::print(&table::table(measured, output::width()))
}

fn token_text(arguments: &Arguments) -> Option<String> {
    arguments.token.clone().or_else(|| std::env::var(TOKEN).ok())
}

fn choices(arguments: &Arguments) -> Result<Choices, Failure> {
    let seed = arguments.seed.map_or_else(::probe::random_seed, Ok);
    let paths = arguments.paths.clone();
    Ok(Choices {
        paths: if paths.is_empty() { vec![PathSource::default_route()] } else { paths },
        repeats: arguments.repeats,
        flow_time: Duration::from_secs(arguments.seconds),
        congestions: arguments.congestion.clone(),
        budget_bytes: arguments.budget,
        seed: seed.map_err(|error| Failure::Environment(error.to_string()))?,
    })
}

/// The first address of the server that the paths can reach: one of the IP version of their source addresses.
fn resolve(host: &str, paths: &[PathSource]) -> Result<SocketAddr, Failure> {
    let found = host.to_socket_addrs().or_else(|_| (host, ::probe::PORT).to_socket_addrs());
    let mut found = found.map_err(|error| Failure::Environment(format!("{host}: {error}")))?;
    let is_reachable = |server: &SocketAddr| {
        paths.iter().all(|path| match path.source {
            ::probe::Source::Address(source) => source.is_ipv4() == server.is_ipv4(),
            ::probe::Source::Any | ::probe::Source::Device(_) => true,
        })
    };
    found.find(is_reachable).ok_or_else(|| {
        Failure::Usage(format!("{host} has no address of the same IP version as the paths' source addresses"))
    })
}

/// Refuses devices whose traffic costs money, unless the person has agreed.
fn refuse_metered(arguments: &Arguments, server: SocketAddr, choices: &Choices) -> Result<(), Failure> {
    let device = |path: &PathSource| path.source.device(server).filter(|device| ::probe::seems_metered(device));
    let metered: Vec<String> = choices.paths.iter().filter_map(device).collect();
    if metered.is_empty() || arguments.yes {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} seems to be metered, and up to {} MB would pass\n  help: --yes agrees to it; --budget sets a smaller amount",
        metered.join(" and "),
        choices.budget_bytes / 1_000_000
    )))
}

fn tell_plan(plan: &Plan, choices: &Choices) {
    output::warn(&format!(
        "{} stages in random order (seed {}), at most {} MB and {} min; a flow ends after {} s or {:.1} MB",
        plan.count(),
        choices.seed,
        plan.bytes() / 1_000_000,
        plan.time().as_secs().div_ceil(60),
        choices.flow_time.as_secs(),
        plan.flow_bytes() as f64 / 1e6
    ));
}

fn progress(news: &News<'_>, count: usize) -> String {
    let stage = news.stage();
    let direction = stage.direction.map_or("", measured::Direction::name);
    let words = [stage.kind.name(), stage.congestion.as_deref().unwrap_or_default(), direction];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let result = stage.failure.clone().unwrap_or_else(|| {
        let megabytes = stage.bytes.unwrap_or_default() as f64 / 1e6;
        format!("{megabytes:.1} MB in {:.1} s", stage.seconds)
    });
    format!("{}/{count} {}: {}: {result}", news.number, stage.paths.join(" and "), words.join(" "))
}
