//! Links: their number, rates, delays and queues.

use super::{BOUNDS, Chance, PACKET_BITS, trouble};
use std::collections::BTreeSet;

/// The layout of paths over links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One path.
    One,
    /// One path for the flows under test; some competitors come from farther away.
    TwoRtts,
    /// The flows under test have two paths over one bottleneck.
    Shared,
    /// The flows under test have two paths over two bottlenecks.
    Separate,
}

impl Layout {
    pub(super) fn is_multipath(self) -> bool {
        matches!(self, Self::Shared | Self::Separate)
    }

    pub(super) fn has_access(self) -> bool {
        matches!(self, Self::TwoRtts | Self::Shared)
    }

    fn kind(self) -> &'static str {
        match self {
            Self::One => "one path",
            Self::TwoRtts => "two round-trip times",
            Self::Shared => "two paths, one bottleneck",
            Self::Separate => "two paths, two bottlenecks",
        }
    }
}

/// The links of a world.
pub(super) struct Network {
    pub(super) layout: Layout,
    /// Bottlenecks: one, or two.
    pub(super) links: Vec<Link>,
    /// Additional one-way delay of the second path over a shared bottleneck, µs.
    pub(super) access_us: u64,
    /// The longest round trip, µs.
    pub(super) rtt_us: u64,
    pub(super) ecn: bool,
}

/// A bottleneck.
pub(super) struct Link {
    pub(super) name: &'static str,
    pub(super) rate_kbit: u64,
    pub(super) rtt_us: u64,
    /// Keys of the scenario file, one per line.
    pub(super) keys: Vec<String>,
    /// The kind of its queue, and a description of the queue.
    pub(super) queue: (&'static str, String),
    /// Descriptions of its disturbances.
    pub(super) notes: Vec<String>,
    /// Whether an event may change its rate.
    pub(super) is_steady: bool,
}

/// The links of a seed.
pub(super) fn draw(seed: u64, kinds: &mut BTreeSet<&'static str>) -> Network {
    let mut chance = Chance::of(seed, "layout");
    let layout = chance.pick(&[(55, Layout::One), (20, Layout::TwoRtts), (12, Layout::Shared), (13, Layout::Separate)]);
    kinds.insert(layout.kind());
    let ecn = chance.is(0.15);
    if ecn {
        kinds.insert("ECN");
    }
    let mut links = vec![link(seed, "bottleneck", ecn, kinds)];
    if layout == Layout::Separate {
        links.push(link(seed, "second", ecn, kinds));
    }
    let longest = links.iter().map(|link| link.rtt_us).max().unwrap_or_default();
    let room_us = BOUNDS.rtt_us.1 - longest;
    let access_us = if layout.has_access() { (chance.log(500.0, 60_000.0) as u64).min(room_us / 2) } else { 0 };
    Network { layout, links, access_us, rtt_us: longest + 2 * access_us, ecn }
}

fn link(seed: u64, name: &'static str, ecn: bool, kinds: &mut BTreeSet<&'static str>) -> Link {
    let mut chance = Chance::of(seed, name);
    let (least, greatest) = BOUNDS.rate_kbit;
    let rate_kbit = chance.log(least as f64, greatest as f64) as u64;
    // The variation is added to the delay, so the range ends below the bound.
    let rtt_us = chance.log(BOUNDS.rtt_us.0 as f64, BOUNDS.rtt_us.1 as f64) as u64;
    let keys = vec![format!("rate = \"{rate_kbit}kbit\""), "overhead = \"38b\"".to_owned()];
    let mut link =
        Link { name, rate_kbit, rtt_us, keys, queue: Default::default(), notes: Vec::new(), is_steady: true };
    queue(&mut Chance::of(seed, &format!("{name} queue")), &mut link, ecn);
    trouble::add(seed, &mut link, kinds);
    kinds.insert(link.queue.0);
    // The reverse direction has no policer, grants or walk: acknowledgements meet the same queue and losses.
    link.keys.push(format!("reverse = {{ rate = \"{rate_kbit}kbit\" }}"));
    link
}

impl Link {
    /// A description of the link.
    pub(super) fn about(&self) -> String {
        let (rate, rtt) = (self.rate_kbit as f64 / 1e3, self.rtt_us as f64 / 1e3);
        let notes: String = self.notes.iter().map(|note| format!(", {note}")).collect();
        format!("{rate:.3} Mbit/s, {rtt:.1} ms, {}{notes}", self.queue.1)
    }
}

/// Packets that fill the link for one RTT.
fn bdp(link: &Link) -> f64 {
    link.rate_kbit as f64 * link.rtt_us as f64 / 1e3 / PACKET_BITS as f64
}

fn queue(chance: &mut Chance, link: &mut Link, ecn: bool) {
    let discipline = chance.pick(&[
        (45, "drop-tail"),
        (15, "short"),
        (8, "CoDel"),
        (8, "PIE"),
        (8, "FQ-CoDel"),
        (8, "RED"),
        (8, "CAKE"),
    ]);
    let marks = if ecn { ", ecn = true" } else { ", ecn = false" };
    let (text, about) = match discipline {
        "short" => {
            let packets = chance.count(BOUNDS.queue.0, 32);
            (format!("limit = \"{packets}p\""), format!("a queue of {packets} packets"))
        }
        "drop-tail" => {
            let products = chance.log(0.25, BOUNDS.queue.1);
            let packets = ((products * bdp(link)) as u64).max(BOUNDS.queue.0);
            (format!("limit = \"{packets}p\""), format!("a queue of {packets} packets ({products:.2} BDP)"))
        }
        "RED" => {
            let least = ((0.25 * bdp(link)) as u64).max(5) * PACKET_BITS / 8;
            let text = format!(
                "discipline = \"red\", min = \"{least}b\", max = \"{}b\", probability = \"10%\", limit = \"{}p\"{marks}",
                3 * least,
                12 * least * 8 / PACKET_BITS
            );
            (text, format!("RED from {} packets on", least * 8 / PACKET_BITS))
        }
        "CoDel" | "PIE" => {
            let name = discipline.to_lowercase();
            (format!("discipline = \"{name}\", limit = \"1000p\"{marks}"), discipline.to_owned())
        }
        _ => (format!("discipline = \"{}\"{marks}", discipline.to_lowercase()), discipline.to_owned()),
    };
    let kind = if discipline == "short" { "queue of 4 to 32 packets" } else { discipline };
    link.keys.push(format!("queue = {{ {text} }}"));
    link.queue = (kind, about);
}
