//! The command line's options.

use super::system::System;
use std::path::PathBuf;

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bench {
    Speed,
    Bond,
    Small,
    Hostile,
    Peers,
    Clients,
    Cost,
}

/// The options of `bench tunnel`.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) benches: Vec<Bench>,
    pub(super) systems: Vec<System>,
    pub(super) links: Vec<usize>,
    bonds: Vec<String>,
    pub(super) seconds: u32,
    pub(super) runs: usize,
    /// Clients of the server in `clients`.
    pub(super) clients: usize,
    /// Other programs that `cost` measures: name and file.
    pub(super) builds: Vec<(String, PathBuf)>,
    pub(super) json: bool,
}

impl Options {
    /// `[speed] [bond] [small] [hostile] [peers] [clients] [cost] [--only SYSTEM,...] [--links N,...] [--bonds NAME,...] [--seconds N] [--runs N] [--clients N] [--build NAME=FILE] [--json]`
    pub(super) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            benches: Vec::new(),
            systems: System::ALL.to_vec(),
            links: super::LINK_COUNTS.to_vec(),
            bonds: Vec::new(),
            seconds: 8,
            runs: 1,
            clients: 1000,
            builds: Vec::new(),
            json: false,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().copied().ok_or_else(|| format!("{argument} needs a value"));
            match *argument {
                "speed" => options.benches.push(Bench::Speed),
                "bond" => options.benches.push(Bench::Bond),
                "small" => options.benches.push(Bench::Small),
                "hostile" => options.benches.push(Bench::Hostile),
                "peers" => options.benches.push(Bench::Peers),
                "clients" => options.benches.push(Bench::Clients),
                "cost" => options.benches.push(Bench::Cost),
                "--only" => options.systems = value()?.split(',').map(System::parse).collect::<Result<_, _>>()?,
                "--links" => options.links = value()?.split(',').map(parse_positive).collect::<Result<_, _>>()?,
                "--bonds" => options.bonds = value()?.split(',').map(str::to_owned).collect(),
                "--seconds" => options.seconds = parse_positive(value()?)? as u32,
                "--runs" => options.runs = parse_positive(value()?)?,
                "--clients" => options.clients = parse_positive(value()?)?,
                "--build" => options.builds.push(parse_build(value()?)?),
                "--json" => options.json = true,
                option => return Err(format!("bench tunnel has no option `{option}`")),
            }
        }
        if options.benches.is_empty() {
            options.benches = vec![Bench::Speed, Bench::Bond, Bench::Small, Bench::Hostile];
        }
        Ok(options)
    }

    pub(super) fn includes_bond(&self, bond: &str) -> bool {
        self.bonds.is_empty() || self.bonds.iter().any(|name| name == bond)
    }
}

fn parse_build(argument: &str) -> Result<(String, PathBuf), String> {
    let build = argument.split_once('=').map(|(name, file)| (name.to_owned(), PathBuf::from(file)));
    build.ok_or_else(|| format!("`{argument}` is not NAME=FILE"))
}

fn parse_positive(argument: &str) -> Result<usize, String> {
    argument.parse().ok().filter(|number| *number > 0).ok_or_else(|| format!("`{argument}` is not a number above zero"))
}
