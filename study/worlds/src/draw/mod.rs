//! Drawing: makes a world from a seed.
//!
//! A world is a scenario file, so that a person can run it by itself. Each component draws from its own random stream.

mod chance;
mod link;
mod rivals;
mod text;
mod trouble;

use chance::Chance;
pub use rivals::{Rival, RivalKind};
use std::collections::BTreeSet;

/// A world, drawn from a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// The seed; runs in the world use it too.
    pub seed: u64,
    /// The elements of [`KINDS`] that it has.
    pub kinds: BTreeSet<&'static str>,
    /// A description in one line.
    pub about: String,
    /// Names of the paths; the flows under test use all of them, or the first.
    pub paths: Vec<&'static str>,
    /// The flows that compete.
    pub rivals: Vec<Rival>,
    /// The scenario file without a sweep, in which CUBIC is under test.
    pub text: String,
}

/// Every kind of element that a world may have.
pub const KINDS: [&str; 40] = [
    "one path",
    "two round-trip times",
    "two paths, one bottleneck",
    "two paths, two bottlenecks",
    "queue of 4 to 32 packets",
    "drop-tail",
    "CoDel",
    "PIE",
    "FQ-CoDel",
    "RED",
    "CAKE",
    "ECN",
    "random loss",
    "Gilbert-Elliott loss",
    "bursts of loss",
    "LTE-like",
    "grants",
    "jitter",
    "jitter with reordering",
    "reordering",
    "rate walk",
    "hand-overs",
    "longer route",
    "shorter route",
    "slower link",
    "faster link",
    "outage",
    "policer",
    "alone",
    "paced application",
    "cubic",
    "reno",
    "bbr",
    "short flows",
    "call",
    "live video",
    "stored video",
    "churn",
    "pulses",
    "reverse",
];

/// The bounds that all worlds keep to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Rate of a bottleneck, kbit/s.
    pub rate_kbit: (u64, u64),
    /// Round-trip time of a path without queues, at the beginning, µs.
    pub rtt_us: (u64, u64),
    /// Drop-tail queue, packets and bandwidth-delay products.
    pub queue: (u64, f64),
    /// Flows of all kinds.
    pub flows: u64,
    /// Simulated time, ms.
    pub duration_ms: (u64, u64),
}

/// The bounds.
pub const BOUNDS: Bounds = Bounds {
    rate_kbit: (500, 1_000_000),
    rtt_us: (1_000, 300_000),
    queue: (4, 8.0),
    flows: 50,
    duration_ms: (5_000, 30_000),
};

/// Maximum number of data packets that the bottlenecks of a world carry, unless the minimum duration needs more. It bounds
/// the CPU time of a run.
const PACKETS: u64 = 250_000;
/// Minimum duration of a world, RTTs.
const ROUNDS: u64 = 40;
/// Bits of a full packet with Ethernet's preamble, header, checksum and gap.
const PACKET_BITS: u64 = 1538 * 8;

/// The world of a seed.
#[must_use]
pub fn draw(seed: u64) -> World {
    let mut kinds = BTreeSet::new();
    let network = link::draw(seed, &mut kinds);
    let duration_ms = duration_ms(&network);
    let tests = rivals::tests(seed, &network, &mut kinds);
    let rivals = rivals::draw(seed, &network, duration_ms, tests.count, &mut kinds);
    let events = trouble::events(seed, &network, duration_ms, &mut kinds);
    let about = text::about(&network, &tests, &rivals, &events);
    let paths = if network.layout.is_multipath() { vec!["a", "b"] } else { vec!["a"] };
    let text = text::scenario(seed, &about, &network, duration_ms, &tests, &rivals, &events);
    World { seed, kinds, about, paths, rivals, text }
}

/// Long enough for forty RTTs, short enough for [`PACKETS`].
fn duration_ms(network: &link::Network) -> u64 {
    let packets_per_s = network.links.iter().map(|link| link.rate_kbit * 1000 / PACKET_BITS).sum::<u64>();
    let rounds = ROUNDS * network.rtt_us / 1000;
    let least = BOUNDS.duration_ms.0.max(rounds);
    (PACKETS * 1000 / packets_per_s.max(1)).clamp(least, BOUNDS.duration_ms.1)
}
