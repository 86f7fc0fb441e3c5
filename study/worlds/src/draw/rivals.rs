//! The flows: those under test, and those that compete.

use super::link::Network;
use super::{BOUNDS, Chance};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

type Kinds = BTreeSet<&'static str>;

/// The kind of a competitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RivalKind {
    /// Long TCP flows that always have data.
    Greedy,
    /// TCP flows of limited size that come one after the other.
    Churn,
    /// Short TCP flows: answers to requests, each on its own connection.
    Short,
    /// A constant rate, by UDP.
    Call,
    /// Video, live or stored.
    Video,
    /// A sender of pulses. It only disturbs: its own results are not judged.
    Pulses,
}

/// A group of identical competitors.
#[derive(Clone, Debug, PartialEq)]
pub struct Rival {
    /// The name of its flows, which may be followed by a number.
    pub name: String,
    /// The kind of the competitors.
    pub kind: RivalKind,
    /// A description of the competitors.
    pub about: String,
    /// Number of flows.
    pub count: u64,
    /// Their tables in the scenario file.
    pub text: String,
}

/// The flows under test.
pub(super) struct Tests {
    pub(super) count: u64,
    pub(super) about: String,
    /// Keys of the scenario file.
    pub(super) keys: String,
}

/// The flows under test.
pub(super) fn tests(seed: u64, network: &Network, kinds: &mut Kinds) -> Tests {
    let mut chance = Chance::of(seed, "tests");
    let most = if network.layout.is_multipath() { 3 } else { 20 };
    let several = chance.count(2, 4).min(most);
    let many = chance.count(5, 20).min(most);
    let count = chance.pick(&[(60, 1), (25, several), (15, many)]);
    let mut keys = format!("start_within = \"{}ms\"\n", chance.pick(&[(70, 100), (30, 2000)]));
    let mut about = format!("{count} under test");
    if count > 1 {
        keys += &format!("count = {count}\n");
    }
    if network.layout.is_multipath() {
        keys += "kind = \"mptcp\"\npaths = [\"a\", \"b\"]\n";
        about += " over both paths";
    } else {
        keys += "path = \"a\"\n";
    }
    if chance.is(0.1) {
        let rate = (network.links[0].rate_kbit as f64 * chance.between(0.1, 0.6) / count as f64) as u64;
        keys += &format!("rate = \"{rate}kbit\"\n");
        about += &format!(" at {:.3} Mbit/s each", rate as f64 / 1e3);
        kinds.insert("paced application");
    }
    Tests { count, about, keys }
}

/// The competitors. Their number keeps all flows together within the bound.
pub(super) fn draw(seed: u64, network: &Network, duration_ms: u64, tests: u64, kinds: &mut Kinds) -> Vec<Rival> {
    let mut chance = Chance::of(seed, "rivals");
    let groups = chance.pick(&[(14, 0), (40, 1), (30, 2), (16, 3)]);
    let mut left = BOUNDS.flows - tests;
    let mut rivals: Vec<Rival> = Vec::new();
    for name in ["one", "two", "three"].into_iter().take(groups) {
        let mut chance = Chance::of(seed, &format!("rival {name}"));
        if left == 0 {
            break;
        }
        let rival = Maker { name, network, duration_ms, left }.make(&mut chance, kinds);
        left -= rival.count;
        rivals.push(rival);
    }
    if rivals.is_empty() {
        kinds.insert("alone");
    }
    rivals
}

/// The inputs for making a group of competitors.
struct Maker<'a> {
    name: &'static str,
    network: &'a Network,
    duration_ms: u64,
    /// Number of flows that may still be made.
    left: u64,
}

/// Answers with a mean of 30 kB, each on its own connection.
const REQUESTS: &str = "requests = { size = { mean = \"30kB\", distribution = \"exponential\" }, \
     think = { mean = \"200ms\", distribution = \"exponential\" }, connection = \"new\" }\n";

impl Maker<'_> {
    fn make(&self, chance: &mut Chance, kinds: &mut Kinds) -> Rival {
        let what = chance.pick(&[
            (24, "cubic"),
            (10, "reno"),
            (12, "bbr"),
            (14, "short flows"),
            (10, "call"),
            (6, "live video"),
            (6, "stored video"),
            (8, "churn"),
            (6, "pulses"),
            (4, "reverse"),
        ]);
        kinds.insert(what);
        let path = if self.has_second_path() && chance.is(0.5) { "b" } else { "a" };
        let start = chance.pick(&[(60, 0.0), (40, 0.25)]) * chance.between(0.0, self.duration_ms as f64);
        let place = format!("path = \"{path}\"\nstart = \"{start:.0}ms\"\nstart_within = \"100ms\"\n");
        match what {
            "short flows" => self.copies(RivalKind::Short, what, chance.count(1, 8), &(place + REQUESTS)),
            "call" => self.call(chance, &place),
            "live video" | "stored video" => self.video(what, chance, &place),
            "churn" => self.churn(chance, &place),
            "pulses" => self.pulses(chance, path),
            "reverse" => {
                let keys = place + "congestion = \"cubic\"\ndirection = \"reverse\"\n";
                self.copies(RivalKind::Greedy, "reverse cubic", chance.count(1, 3), &keys)
            }
            _ => {
                let keys = place + &format!("congestion = \"{what}\"\n");
                self.copies(RivalKind::Greedy, what, chance.count(1, 30), &keys)
            }
        }
    }

    fn has_second_path(&self) -> bool {
        self.network.layout.has_access() || self.network.links.len() > 1
    }

    fn kbit(&self, share: f64, least: f64) -> u64 {
        (self.network.links[0].rate_kbit as f64 * share).max(least) as u64
    }

    /// This many identical flows.
    fn copies(&self, kind: RivalKind, what: &str, count: u64, keys: &str) -> Rival {
        let count = count.min(self.left);
        let name = format!("{}-{}", self.name, what.replace(' ', "-"));
        let many = if count > 1 { format!("count = {count}\n") } else { String::new() };
        let text = format!("[[flow]]\nname = \"{name}\"\n{many}{keys}\n");
        Rival { name, kind, about: format!("{count} {what}"), count, text }
    }

    /// Datagrams of 200 bytes, at a tenth of the link at most.
    fn call(&self, chance: &mut Chance, place: &str) -> Rival {
        let rate = self.kbit(0.1, 16.0).min(chance.pick(&[(70, 100), (30, 1000)]));
        let keys = format!("{place}kind = \"udp\"\nrate = \"{rate}kbit\"\npacket = \"200b\"\n");
        self.copies(RivalKind::Call, "call", 1, &keys)
    }

    fn video(&self, what: &str, chance: &mut Chance, place: &str) -> Rival {
        let top = self.kbit(chance.between(0.1, 0.5), 200.0).min(8000);
        let kind = if what == "live video" { "live" } else { "stored" };
        let ladder = format!("[\"{}kbit\", \"{}kbit\", \"{top}kbit\"]", top / 4, top / 2);
        let keys = format!("{place}video = {{ kind = \"{kind}\", ladder = {ladder} }}\n");
        self.copies(RivalKind::Video, what, 1, &keys)
    }

    /// Flows of limited size that start one after another. Each carries as much as the link does in one second.
    fn churn(&self, chance: &mut Chance, place: &str) -> Rival {
        let count = chance.count(3, 20).min(self.left);
        let stagger = self.duration_ms as f64 * 0.8 / count as f64;
        let size = (self.kbit(1.0, 1.0) as f64 / 8.0 * stagger * chance.between(0.1, 0.5)).max(20_000.0);
        let keys = format!("{place}congestion = \"cubic\"\nsize = \"{size:.0}b\"\nstagger = \"{stagger:.0}ms\"\n");
        self.copies(RivalKind::Churn, "churn", count, &keys)
    }

    /// An adversary: datagrams at the rate of the link or half of it, on and off.
    fn pulses(&self, chance: &mut Chance, path: &str) -> Rival {
        let (on, off) = (chance.log(50.0, 1000.0), chance.log(200.0, 3000.0));
        let rate = self.kbit(chance.between(0.5, 1.0), 100.0);
        let most = self.left.min(20);
        let count = ((self.duration_ms as f64 * 0.9 / (on + off)) as u64).clamp(1, most);
        let name = format!("{}-pulse", self.name);
        let pulse = |index: u64| {
            let start = off + index as f64 * (on + off);
            format!(
                "[[flow]]\nname = \"{name}-{index}\"\npath = \"{path}\"\nkind = \"udp\"\nrate = \"{rate}kbit\"\n\
                 packet = \"1500b\"\nstart = \"{start:.0}ms\"\nstop = \"{:.0}ms\"\n\n",
                start + on
            )
        };
        let about = format!("{count} pulses of {on:.0} ms, {off:.0} ms apart");
        Rival { kind: RivalKind::Pulses, about, count, text: (0..count).map(pulse).collect(), name }
    }
}
