//! The model: which keys of which links are unknown, and the links for given values of them.
//!
//! Without a scenario, the links of a measurement are one `[[path]]` per path. It has a rate that walks, delay, jitter, a drop-tail
//! queue, losses in bursts (Gilbert and Elliott), and a policer if the measurement found one. The reverse direction is as the
//! uploads tell it. Paths that share a bottleneck have one link with its rate and queue in common.

mod estimates;
mod text;

use estimates::{Seen, capacity_unknowns, wire_unknowns};

use crate::probe::toml_text;
use crate::{Error, Links, Unknown};
use measured::{Direction, Measured, MeasuredPath};
use scenario::Free;
use std::path::{Path, PathBuf};

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
    /// The links of a measurement.
    Measured(Vec<PathModel>),
    /// A scenario with unknown keys.
    Scenario(Links),
}

/// A measured path of a model.
#[derive(Clone, Debug)]
struct PathModel {
    name: String,
    /// The name of the link that it shares with others.
    bottleneck: Option<String>,
}

impl Model {
    /// The model of measured links. `free` changes the ranges of its unknowns.
    ///
    /// # Errors
    /// A path has no measurement to begin with, or `free` has a key that the model does not.
    pub fn of_measurement(measured: &Measured, free: &[Free]) -> Result<Self, Error> {
        let (mut unknowns, mut groups, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        for sharing in sharing(measured) {
            let of_group: Vec<&MeasuredPath> = sharing.iter().map(|index| &measured.paths[*index]).collect();
            let bottleneck = (sharing.len() > 1).then(|| format!("shared{}", groups.len() + 1));
            let prefix =
                bottleneck.as_ref().map_or(format!("path.{}", of_group[0].name), |name| format!("link.{name}"));
            let first = unknowns.len();
            unknowns.extend(capacity_unknowns(&prefix, &of_group)?);
            for path in of_group {
                unknowns.extend(wire_unknowns(path)?);
                paths.push(PathModel { name: path.name.clone(), bottleneck: bottleneck.clone() });
            }
            groups.push(Group { unknowns: (first..unknowns.len()).collect(), paths: sharing });
        }
        if groups.is_empty() {
            return Err(Error::Input("the measurement has no path".to_owned()));
        }
        for free in free {
            narrow(&mut unknowns, free)?;
        }
        let place = |path: &PathModel| measured.paths.iter().position(|measured| measured.name == path.name);
        paths.sort_by_key(place);
        Ok(Self { unknowns, groups, kind: Kind::Measured(paths) })
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
            Kind::Measured(all) => {
                let is_wanted = |index: &usize| paths.is_none_or(|paths| paths.contains(index));
                let wanted: Vec<&PathModel> = (0..all.len()).filter(is_wanted).map(|index| &all[index]).collect();
                let value = |key: &str| {
                    let place = self.unknowns.iter().position(|unknown| unknown.key == key);
                    place.map(|place| values[place])
                };
                from_text(&text::links(&wanted, &value))
            }
        }
    }
}

/// The measured paths by the bottleneck of their downloads, each in the group of its first path.
fn sharing(measured: &Measured) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = (0..measured.paths.len()).map(|index| vec![index]).collect();
    let place = |name: &str| measured.paths.iter().position(|path| path.name == name);
    for first in 0..measured.paths.len() {
        for second in first + 1..measured.paths.len() {
            let both = [first, second].map(Some);
            let verdicts = measured.together.iter().filter(|together| {
                let paths: Vec<_> = together.flows.iter().map(|flow| place(&flow.path)).collect();
                together.direction == Direction::Down && paths.len() == 2 && both.iter().all(|one| paths.contains(one))
            });
            let has = |verdict| verdicts.clone().filter(|together| together.shared_bottleneck == Some(verdict)).count();
            if has(true) > has(false) {
                join(&mut groups, first, second);
            }
        }
    }
    groups
}

fn join(groups: &mut Vec<Vec<usize>>, first: usize, second: usize) {
    let of = |groups: &[Vec<usize>], index| groups.iter().position(|group| group.contains(&index));
    if let (Some(one), Some(other)) = (of(groups, first), of(groups, second))
        && one != other
    {
        let moved = groups.remove(one.max(other));
        groups[one.min(other)].extend(moved);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use measured::{IdleRtt, Policer, SharedFlow, Summary, TcpFlow, Together};

    fn measured(shared: &[Option<bool>], policer: Option<bool>) -> Measured {
        let path = |name: &str| MeasuredPath {
            name: name.to_owned(),
            idle_rtt: vec![IdleRtt { rtt_ms: Summary::of([20.0]), ..IdleRtt::default() }],
            tcp: vec![TcpFlow { goodput_mbps: Some(9.6), ..TcpFlow::new(Direction::Down) }],
            policers: vec![Policer {
                direction: Direction::Down,
                found: policer,
                rate_mbps: Some(9.6),
                burst_bytes: Some(100_000),
            }],
            ..MeasuredPath::default()
        };
        let flow = |path: &str| SharedFlow { path: path.to_owned(), goodput_mbps: None, alone_mbps: None };
        let together = |shared: &Option<bool>| Together {
            repeat: 0,
            direction: Direction::Down,
            congestion: None,
            seconds: None,
            flows: vec![flow("a"), flow("c")],
            shared_bottleneck: *shared,
        };
        let together = shared.iter().map(together).collect();
        Measured { paths: ["a", "b", "c"].map(path).into(), together, ..Measured::default() }
    }

    fn links_of(measured: &Measured) -> (Model, scenario::model::Experiment) {
        let model = Model::of_measurement(measured, &[]).unwrap();
        let values: Vec<f64> = model.unknowns.iter().map(|unknown| unknown.start).collect();
        let cell = model.links(&values, None).scenario(ANY_FLOW, &[]).unwrap().cells.remove(0);
        (model, cell.experiment)
    }

    #[test]
    fn paths_that_share_a_bottleneck_have_a_link_in_common_and_are_fitted_together() {
        let (model, experiment) = links_of(&measured(&[Some(true), None, Some(true), Some(false)], None));
        assert_eq!(model.groups.iter().map(|group| group.paths.clone()).collect::<Vec<_>>(), [vec![0, 2], vec![1]]);
        let names: Vec<&str> = experiment.paths.iter().map(|path| path.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let links: Vec<_> = experiment.paths.iter().map(|path| path.links.clone()).collect();
        assert_eq!(links[0].last(), links[2].last());
        assert!(!links[0].contains(links[1].last().unwrap()));
        assert!(model.unknowns.iter().any(|unknown| unknown.key == "link.shared1.rate"));
        assert!(model.unknowns.iter().any(|unknown| unknown.key == "path.b.rate"));
        let (model, _) = links_of(&measured(&[Some(true), Some(false)], None));
        assert_eq!(model.groups.len(), 3, "the flows do not tell");
    }

    #[test]
    fn a_policer_that_was_found_is_in_the_model() {
        let (model, _) = links_of(&measured(&[], Some(true)));
        let unknown = model.unknowns.iter().find(|unknown| unknown.key == "path.a.policer.rate").unwrap();
        assert!((unknown.start / 10e6 - 1.0).abs() < 0.02, "payload of 9.6 Mbit/s: {unknown:?}");
        let (model, _) = links_of(&measured(&[], None));
        assert!(!model.unknowns.iter().any(|unknown| unknown.key.contains("policer")));
    }
}
