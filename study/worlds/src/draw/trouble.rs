//! Disturbances of a link: losses, jitter, reordering, changes of rate and route, policers.

use super::Chance;
use super::link::{Link, Network};
use std::collections::BTreeSet;

type Kinds = BTreeSet<&'static str>;

/// Adds the disturbances of a link.
pub(super) fn add(seed: u64, link: &mut Link, kinds: &mut Kinds) {
    let of = |what: &str| Chance::of(seed, &format!("{} {what}", link.name));
    let (mut losses, mut delays, mut rates) = (of("loss"), of("delay"), of("rate"));
    loss(&mut losses, link, kinds);
    delay(&mut delays, link, kinds);
    rate(&mut rates, link, kinds);
}

impl Link {
    fn note(&mut self, kinds: &mut Kinds, kind: &'static str, detail: &str, key: String) {
        kinds.insert(kind);
        self.keys.push(key);
        self.notes.push(format!("{kind} {detail}").trim_end().to_owned());
    }
}

fn loss(chance: &mut Chance, link: &mut Link, kinds: &mut Kinds) {
    match chance.pick(&[(56, 0), (18, 1), (14, 2), (12, 3)]) {
        1 => {
            let percent = chance.log(0.01, 5.0);
            link.note(kinds, "random loss", &format!("of {percent:.3}%"), format!("loss = \"{percent:.4}%\""));
        }
        2 => {
            let (to_bad, to_good, bad) = (chance.log(0.01, 1.0), chance.log(2.0, 50.0), chance.between(10.0, 100.0));
            let detail = format!("(to bad {to_bad:.3}%, to good {to_good:.1}%, bad {bad:.0}%)");
            let key = format!(
                "loss = {{ to_bad = \"{to_bad:.4}%\", to_good = \"{to_good:.4}%\", bad = \"{bad:.4}%\", good = \"0%\" }}"
            );
            link.note(kinds, "Gilbert-Elliott loss", &detail, key);
        }
        3 => {
            let (to_bad, length) = (chance.log(0.002, 0.05), chance.count(5, 100));
            let to_good = 100.0 / length as f64;
            let detail = format!("of {length} packets, each with {to_bad:.4}%");
            let key = format!(
                "loss = {{ to_bad = \"{to_bad:.5}%\", to_good = \"{to_good:.4}%\", bad = \"100%\", good = \"0%\" }}"
            );
            link.note(kinds, "bursts of loss", &detail, key);
        }
        _ => {}
    }
}

/// The delay and its variation. All of it is within the RTT that was drawn, except for what handovers add.
fn delay(chance: &mut Chance, link: &mut Link, kinds: &mut Kinds) {
    let one_way = link.rtt_us / 2;
    let varied = chance.pick(&[(64, 0), (12, 1), (6, 2), (6, 3), (8, 4), (4, 5)]);
    // A little jitter keeps flows from synchronising at the queue, as in real networks.
    let little = one_way.min(200);
    let (mut delay, mut jitter) = (one_way - little / 2, format!("jitter = \"{little}us\""));
    match varied {
        1 => {
            let span = chance.log(one_way as f64 * 0.1, one_way as f64 * 1.5) as u64;
            delay = one_way - (span / 2).min(one_way);
            jitter = format!("jitter = \"{span}us\"");
            link.note(kinds, "jitter", &format!("of {:.1} ms", span as f64 / 1e3), String::new());
        }
        2 => {
            let span = chance.log(one_way as f64 * 0.02, one_way as f64 * 0.5) as u64;
            delay = one_way;
            jitter = format!("jitter = {{ span = \"{span}us\", distribution = \"normal\", reorder = true }}");
            link.note(kinds, "jitter with reordering", &format!("of {:.2} ms", span as f64 / 1e3), String::new());
        }
        3 => {
            let percent = chance.log(0.05, 10.0);
            link.note(kinds, "reordering", &format!("of {percent:.2}%"), format!("reorder = \"{percent:.4}%\""));
        }
        4 => handovers(chance, link, kinds),
        5 => lte(chance, link, kinds),
        _ => {}
    }
    link.keys.retain(|key| !key.is_empty());
    link.keys.push(format!("delay = \"{delay}us\""));
    link.keys.push(jitter);
}

fn handovers(chance: &mut Chance, link: &mut Link, kinds: &mut Kinds) {
    let (period, outage) = (chance.between(3.0, 15.0), chance.between(10.0, 150.0));
    let one_way = link.rtt_us / 2;
    let (least, greatest) = ((one_way as f64 * chance.between(0.6, 1.0)) as u64, one_way * 3 / 2);
    let key = format!(
        "handover = {{ period = \"{:.0}ms\", outage = \"{outage:.0}ms\", delay = [\"{least}us\", \"{greatest}us\"] }}",
        period * 1e3
    );
    link.note(kinds, "hand-overs", &format!("each {period:.1} s"), key);
}

/// A cellular downlink: a rate that follows a random walk, and a queue that absorbs the changes.
fn lte(chance: &mut Chance, link: &mut Link, kinds: &mut Kinds) {
    let queue = chance.between(200.0, 1000.0);
    link.keys.retain(|key| !key.starts_with("queue = "));
    link.keys.push(format!("queue = {{ limit = \"{queue:.0}ms\" }}"));
    let walk = walk(chance, link.rate_kbit, 0.1);
    link.is_steady = false;
    link.queue = ("LTE-like", format!("a queue of {queue:.0} ms"));
    link.note(kinds, "LTE-like", "", walk);
}

/// A random walk between a share of the rate and the rate.
fn walk(chance: &mut Chance, rate_kbit: u64, least: f64) -> String {
    let (min, deviation) = ((rate_kbit as f64 * least) as u64, rate_kbit as f64 * chance.between(0.05, 0.3));
    format!(
        "rate_walk = {{ min = \"{min}kbit\", max = \"{rate_kbit}kbit\", deviation = \"{deviation:.0}kbit\", interval = \"100ms\" }}"
    )
}

fn rate(chance: &mut Chance, link: &mut Link, kinds: &mut Kinds) {
    let choice = chance.pick(&[(80, 0), (8, 1), (4, 2), (8, 3)]);
    match choice {
        1 if link.is_steady => {
            let walk = walk(chance, link.rate_kbit, 0.3);
            link.is_steady = false;
            link.note(kinds, "rate walk", "", walk);
        }
        2 if link.is_steady => {
            let (period, request) = (chance.between(2.0, 20.0), chance.between(5.0, 40.0));
            link.is_steady = false;
            let key = format!("grants = {{ period = \"{period:.1}ms\", request = \"{request:.1}ms\" }}");
            link.note(kinds, "grants", &format!("each {period:.1} ms"), key);
        }
        3 => {
            let rate = (link.rate_kbit as f64 * chance.between(0.2, 0.9)) as u64;
            let burst = (rate as f64 / 8.0 * chance.log(5.0, 200.0)).max(6000.0) as u64;
            let key = format!("policer = {{ rate = \"{rate}kbit\", burst = \"{burst}b\" }}");
            link.note(kinds, "policer", &format!("of {:.3} Mbit/s, burst {burst} bytes", rate as f64 / 1e3), key);
        }
        _ => {}
    }
}

/// A change of the first link, in the middle third of the run.
pub(super) struct Event {
    pub(super) about: String,
    /// Tables of the scenario file.
    pub(super) text: String,
}

/// The changes of a world.
pub(super) fn events(seed: u64, network: &Network, duration_ms: u64, kinds: &mut Kinds) -> Vec<Event> {
    let mut chance = Chance::of(seed, "events");
    let link = &network.links[0];
    let choice = chance.pick(&[(82, 0), (4, 1), (3, 2), (4, 3), (4, 4), (3, 5)]);
    let at = (duration_ms as f64 * chance.between(0.3, 0.6)) as u64;
    let factor = chance.between(1.3, 3.0);
    let mut event = |kind: &'static str, detail: String, changes: &[(u64, String)]| {
        kinds.insert(kind);
        let table = |(at, change): &(u64, String)| {
            format!("[[event]]\nat = \"{at}ms\"\nlink = \"{}\"\n{change}\n\n", link.name)
        };
        let about = format!("{kind} at {:.1} s{detail}", at as f64 / 1e3);
        vec![Event { about, text: changes.iter().map(table).collect() }]
    };
    let delay = |factor: f64| format!("delay = \"{:.0}us\"", link.rtt_us as f64 / 2.0 * factor);
    let rate = |factor: f64| format!("rate = \"{:.0}kbit\"", link.rate_kbit as f64 * factor);
    match choice {
        1 => event("longer route", format!(": delay times {factor:.2}"), &[(at, delay(factor))]),
        2 => event("shorter route", format!(": delay over {factor:.2}"), &[(at, delay(1.0 / factor))]),
        3 if link.is_steady => event("slower link", format!(": rate over {factor:.2}"), &[(at, rate(1.0 / factor))]),
        4 if link.is_steady => event(
            "faster link",
            format!(": begins with rate over {factor:.2}"),
            &[(0, rate(1.0 / factor)), (at, rate(1.0))],
        ),
        5 => {
            let length = chance.log(50.0, 1500.0) as u64;
            let changes = [(at, "up = false".to_owned()), (at + length, "up = true".to_owned())];
            event("outage", format!(" for {length} ms"), &changes)
        }
        _ => Vec::new(),
    }
}
