//! The model: which keys of which links are unknown, and the links for given values of them.
//!
//! Without a scenario, the links of a measurement are one `[[path]]` per path with a rate that walks, delay, jitter, a
//! drop-tail queue and losses in bursts (Gilbert and Elliott), and the reverse direction as the uploads tell it.

use crate::observe::Observables;
use crate::probe::toml_text;
use crate::{Error, Links, Unknown};
use measured::{Direction, Measured, MeasuredPath};
use scenario::Free;
use std::path::{Path, PathBuf};

/// Bits of a full-size packet.
const PACKET_BITS: f64 = 12_000.0;
/// The share of packets that is lost in the bad state, percent.
const BAD_PERCENT: f64 = 60.0;
/// The rate of the reverse direction where no upload tells it: enough for acknowledgements, bit/s.
const REVERSE_RATE: f64 = 5e6;

/// The unknowns of links, and how links follow from them.
#[derive(Clone, Debug)]
pub struct Model {
    /// The unknowns.
    pub unknowns: Vec<Unknown>,
    /// Parts that are fitted independently of each other.
    pub(crate) groups: Vec<Group>,
    kind: Kind,
}

/// A part of a model: unknowns that only the measurements of some paths tell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// Indices of unknowns.
    pub(crate) unknowns: Vec<usize>,
    /// Indices of measured paths.
    pub(crate) paths: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The links of a measurement; the names of its paths.
    Measured(Vec<String>),
    /// A scenario with unknown keys.
    Scenario(Links),
}

impl Model {
    /// The model of measured links. `free` changes the ranges of its unknowns.
    ///
    /// # Errors
    /// A path has no measurement to begin with, or `free` has a key that the model does not.
    pub fn of_measurement(measured: &Measured, free: &[Free]) -> Result<Self, Error> {
        let (mut unknowns, mut groups) = (Vec::new(), Vec::new());
        for (index, path) in measured.paths.iter().enumerate() {
            let of_path = unknowns_of(path)?;
            let first = unknowns.len();
            unknowns.extend(of_path);
            groups.push(Group { unknowns: (first..unknowns.len()).collect(), paths: vec![index] });
        }
        if groups.is_empty() {
            return Err(Error::Input("the measurement has no path".to_owned()));
        }
        for free in free {
            narrow(&mut unknowns, free)?;
        }
        let names = measured.paths.iter().map(|path| path.name.clone()).collect();
        Ok(Self { unknowns, groups, kind: Kind::Measured(names) })
    }

    /// The model of a scenario whose `[free]` table, or `free`, names the unknown keys.
    ///
    /// # Errors
    /// The scenario is wrong, sweeps, has no unknown, or lacks a measured path; or a key is not one of a scenario.
    pub fn of_scenario(file: &Path, measured: &Measured, free: &[Free]) -> Result<Self, Error> {
        let links = Links::of_file(file)?;
        let scenario = links.scenario(ANY_FLOW, &[])?;
        let mut all: Vec<Free> = scenario.free.clone();
        for free in free {
            all.retain(|other| other.key != free.key);
            all.push(free.clone());
        }
        if all.is_empty() {
            let help = "write [free] \"path.lte.rate\" = \"3mbit..60mbit\", or give --free";
            return Err(scenario.error_at("free", "the scenario has no unknown", help).into());
        }
        let known: Vec<&str> = scenario.cells[0].experiment.paths.iter().map(|path| path.name.as_str()).collect();
        if let Some(path) = measured.paths.iter().find(|path| !known.contains(&path.name.as_str())) {
            let message =
                format!("the scenario has no path `{}`, which was measured; it has {}", path.name, known.join(", "));
            return Err(Error::Input(message));
        }
        let unknowns: Vec<Unknown> = all.iter().map(unknown_of).collect();
        for unknown in &unknowns {
            let sets = [unknown.low, unknown.high].map(|value| format!("{}={}", unknown.key, unknown.text(value)));
            sets.into_iter().try_for_each(|set| links.scenario(ANY_FLOW, &[set]).map(drop))?;
        }
        let groups = groups(&unknowns, measured);
        Ok(Self { unknowns, groups, kind: Kind::Scenario(links) })
    }

    /// The links for values of all unknowns; of a measurement's model only `paths`, if they are given.
    #[must_use]
    pub(crate) fn links(&self, values: &[f64], paths: Option<&[usize]>) -> Links {
        match &self.kind {
            Kind::Scenario(links) => {
                let sets = self
                    .unknowns
                    .iter()
                    .zip(values)
                    .map(|(unknown, value)| format!("{}={}", unknown.key, unknown.text(*value)));
                Links { sets: links.sets.iter().cloned().chain(sets).collect(), ..links.clone() }
            }
            Kind::Measured(names) => {
                let is_wanted = |index: &usize| paths.is_none_or(|paths| paths.contains(index));
                let paths = (0..names.len()).filter(is_wanted).map(|index| self.path(&names[index], values));
                from_text(&paths.collect::<String>())
            }
        }
    }

    fn path(&self, name: &str, values: &[f64]) -> String {
        let prefix = format!("path.{name}.");
        let value = |key: &str| {
            let place = self.unknowns.iter().position(|unknown| unknown.key.strip_prefix(&prefix) == Some(key));
            place.map(|place| values[place])
        };
        let of = |key: &str| value(key).unwrap_or_default();
        let rate = of("rate");
        let reverse_rate = value("reverse.rate").unwrap_or(REVERSE_RATE.max(rate / 4.0));
        let reverse_queue = value("reverse.queue.limit").map_or(String::new(), |packets| {
            format!(", queue = {{ limit = \"{}p\" }}", packets.round().max(2.0) as u64)
        });
        let bit = |rate: f64| rate.round().max(1.0) as u64;
        let us = |seconds: f64| (seconds * 1e6).round().max(0.0) as u64;
        format!(
            "[[path]]\nname = {}\nrate = \"{}bit\"\nrate_walk = {{ min = \"{}bit\", max = \"{}bit\", deviation = \"{}bit\", \
             interval = \"100ms\" }}\ndelay = \"{}us\"\njitter = \"{}us\"\nqueue = {{ limit = \"{}p\" }}\n\
             loss = {{ to_bad = \"{:.5}%\", to_good = \"{:.4}%\", bad = \"{BAD_PERCENT}%\" }}\n\
             reverse = {{ rate = \"{}bit\", loss = \"{:.5}%\"{reverse_queue} }}\n\n",
            toml_text(name),
            bit(rate),
            bit(rate / of("walk_width")),
            bit(rate * of("walk_width")),
            bit(rate * of("walk_deviation")),
            us(of("delay")),
            us(of("jitter")),
            of("queue.limit").round().max(2.0) as u64,
            to_bad_percent(of("loss.share"), of("loss.burst")),
            100.0 / of("loss.burst").max(1.0),
            bit(reverse_rate),
            value("reverse.loss").unwrap_or(0.0),
        )
    }
}

/// The chance per packet of entering the bad state, percent, if `share` percent of the packets are lost and the bad state
/// lasts for `burst` packets: the bad state holds `share / BAD_PERCENT` of all packets.
fn to_bad_percent(share: f64, burst: f64) -> f64 {
    let bad = (share / BAD_PERCENT).clamp(0.0, 0.9);
    (100.0 * bad / (1.0 - bad) / burst.max(1.0)).min(100.0)
}

/// Traffic for reading a scenario of links that has none.
pub(crate) const ANY_FLOW: &str = "[[flow]]\nname = \"ropewalk-any\"\nkind = \"mptcp\"\n";

/// Links of the text of paths.
fn from_text(paths: &str) -> Links {
    let text = format!("name = \"links\"\nduration = \"10s\"\n\n{paths}");
    Links { text, sets: Vec::new(), folder: PathBuf::new(), origin: "the fitted links".to_owned() }
}

/// The links that a person without a fit would write down: each path carries what CUBIC got, half of the least RTT one way,
/// the loss of UDP, and a queue of 1000 packets.
#[must_use]
pub fn naive_links(measured: &Measured) -> Links {
    let path = |path: &MeasuredPath| {
        let seen = Seen::of(path);
        format!(
            "[[path]]\nname = {}\nrate = \"{}bit\"\ndelay = \"{}us\"\nqueue = {{ limit = \"1000p\" }}\nloss = \"{:.5}%\"\n\
             reverse = {{ rate = \"{}bit\", loss = \"0%\" }}\n\n",
            toml_text(&path.name),
            (seen.cubic.or(seen.best).unwrap_or(1e6) * 1.05).round() as u64,
            (seen.rtt.unwrap_or(0.02) / 2.0 * 1e6).round() as u64,
            seen.loss_percent.unwrap_or(0.0).min(100.0),
            seen.upload.unwrap_or(REVERSE_RATE).round() as u64,
        )
    };
    from_text(&measured.paths.iter().map(path).collect::<String>())
}

/// What a measurement tells directly. Rates in bit/s, times in seconds.
struct Seen {
    cubic: Option<f64>,
    /// Of any algorithm.
    best: Option<f64>,
    upload: Option<f64>,
    rtt: Option<f64>,
    rtt_under_load: Option<f64>,
    variation: Option<f64>,
    loss_percent: Option<f64>,
    upload_loss_percent: Option<f64>,
    /// The least of any algorithm.
    retransmitted_percent: Option<f64>,
}

impl Seen {
    fn of(path: &MeasuredPath) -> Self {
        let all = Observables::of(path);
        let greatest = |direction: Direction| {
            let suffix = format!(".{}.goodput", direction.name());
            let rates = all.names().filter(|name| name.starts_with("tcp.") && name.ends_with(&suffix));
            rates.filter_map(|name| all.mean(name)).reduce(f64::max).map(|mbps| (mbps * 1e6).max(1e3))
        };
        let ms = |name: &str| all.mean(name).map(|ms| ms / 1e3);
        let of_flows = path.tcp.iter().filter_map(|flow| flow.rtt_ms?.min).reduce(f64::min).map(|ms| ms / 1e3);
        Self {
            cubic: all.mean("tcp.cubic.down.goodput").map(|mbps| (mbps * 1e6).max(1e3)),
            best: greatest(Direction::Down),
            upload: greatest(Direction::Up),
            rtt: ms("idle.rtt min").or(of_flows),
            rtt_under_load: ms("tcp.cubic.down.rtt p95").or(ms("tcp.cubic.down.rtt mean")),
            variation: ms("udp.down.delay above min, mean"),
            loss_percent: all.mean("udp.down.loss"),
            upload_loss_percent: all.mean("udp.up.loss"),
            retransmitted_percent: all
                .names()
                .filter(|name| name.ends_with(".down.retransmitted"))
                .filter_map(|name| all.mean(name))
                .reduce(f64::min),
        }
    }
}

/// The unknowns of a measured path, which start at direct estimates.
fn unknowns_of(path: &MeasuredPath) -> Result<Vec<Unknown>, Error> {
    let seen = Seen::of(path);
    let (Some(best), Some(rtt)) = (seen.best, seen.rtt) else {
        let lacks = if seen.best.is_none() { "the goodput of a download" } else { "a round-trip time" };
        let name = &path.name;
        return Err(Error::Input(format!(
            "the measurement of `{name}` lacks {lacks}, without which nothing can be fitted"
        )));
    };
    let rate = best * 1.08;
    let waiting = (seen.rtt_under_load.unwrap_or(2.0 * rtt) - rtt).max(0.002);
    let queue = waiting * rate / PACKET_BITS;
    let losses = [seen.loss_percent, seen.retransmitted_percent].into_iter().flatten().map(|share| share.max(0.01));
    let loss = losses.reduce(|one, other| (one * other).sqrt()).unwrap_or(0.1);
    let unknown = |key: &str, unit: &str, [low, high]: [f64; 2], start: f64| Unknown {
        key: format!("path.{}.{key}", path.name),
        unit: unit.to_owned(),
        low,
        high,
        start: start.clamp(low, high),
    };
    let mut unknowns = vec![
        unknown("rate", "bit/s", [0.6 * rate, 3.0 * rate], rate),
        unknown("walk_width", "", [1.03, 3.0], 1.3),
        unknown("walk_deviation", "", [0.01, 0.6], 0.1),
        unknown(
            "delay",
            "s",
            [(0.4 * rtt / 2.0).max(2e-5), (1.05 * rtt / 2.0).max(4e-5)],
            (rtt / 2.0 - 5e-4).max(0.45 * rtt),
        ),
        unknown("jitter", "s", [5e-5, 0.03], 2.0 * seen.variation.unwrap_or(5e-4)),
        unknown("queue.limit", "packets", [4.0, 4000.0], queue.max(12.0)),
        unknown("loss.share", "%", [0.003, 10.0], loss),
        unknown("loss.burst", "packets", [1.05, 20.0], 3.0),
    ];
    if let Some(upload) = seen.upload {
        unknowns.push(unknown("reverse.rate", "bit/s", [0.6 * upload, 4.0 * upload], 1.08 * upload));
        unknowns.push(unknown("reverse.queue.limit", "packets", [4.0, 4000.0], 100.0));
    }
    if seen.upload.is_some() || seen.upload_loss_percent.is_some() {
        unknowns.push(unknown("reverse.loss", "%", [0.001, 5.0], seen.upload_loss_percent.unwrap_or(0.1).max(0.01)));
    }
    Ok(unknowns)
}

fn unknown_of(free: &Free) -> Unknown {
    let Free { key, unit, low, high } = free.clone();
    Unknown { key, unit, low, high, start: (low * high).sqrt() }
}

fn narrow(unknowns: &mut [Unknown], free: &Free) -> Result<(), Error> {
    let keys: Vec<String> = unknowns.iter().map(|unknown| unknown.key.clone()).collect();
    let Some(unknown) = unknowns.iter_mut().find(|unknown| unknown.key == free.key) else {
        let message = format!("the model has no unknown `{}`; it has {}", free.key, keys.join(", "));
        return Err(Error::Input(message));
    };
    if unknown.unit != free.unit {
        let message =
            format!("`{}` is a quantity in {}, such as {}", free.key, unknown.unit, unknown.text(unknown.start));
        return Err(Error::Input(message));
    }
    (unknown.low, unknown.high) = (free.low, free.high);
    unknown.start = unknown.start.clamp(free.low, free.high);
    Ok(())
}

/// Keys of one measured path are a group of that path, unless a key of no measured path affects all.
fn groups(unknowns: &[Unknown], measured: &Measured) -> Vec<Group> {
    let of = |unknown: &Unknown| {
        measured.paths.iter().position(|path| unknown.key.starts_with(&format!("path.{}.", path.name)))
    };
    let places: Vec<Option<usize>> = unknowns.iter().map(of).collect();
    if places.iter().any(Option::is_none) {
        return vec![Group { unknowns: (0..unknowns.len()).collect(), paths: (0..measured.paths.len()).collect() }];
    }
    let group = |path: usize| Group {
        unknowns: (0..unknowns.len()).filter(|index| places[*index] == Some(path)).collect(),
        paths: vec![path],
    };
    (0..measured.paths.len()).map(group).filter(|group| !group.unknowns.is_empty()).collect()
}
