//! A situation: hosts, application, network and peer, drawn from a seed.

use crate::kernel::Kernel;
use crate::script::Setup;
use serde::{Deserialize, Serialize};
use units::RngStream;

/// Everything that a seed decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Situation {
    /// The seed of the network's random stream.
    pub seed: u64,
    /// Settings of the hosts.
    pub setup: Setup,
    /// Number of acknowledgements until the situation ends.
    pub acks: usize,
    /// The application's writes: time in milliseconds from the connection's start, and bytes.
    pub writes: Vec<(u64, u64)>,
    /// The network.
    pub network: Network,
    /// How the peer acknowledges.
    pub acknowledging: Acknowledging,
    /// Changes of the peer's window: milliseconds from the connection's start, segments.
    pub windows: Vec<(u64, u64)>,
}

/// A network of one bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Round-trip time without queues, microseconds.
    pub rtt_us: u64,
    /// Transmission time of a segment at the bottleneck, microseconds.
    pub service_us: u64,
    /// Size of the bottleneck's queue, segments.
    pub queue: u64,
    /// Probability that a loss begins.
    pub loss: f64,
    /// Greatest length of a loss, segments.
    pub burst: u64,
    /// Probability that a segment is late, and by how much at most.
    pub late: (f64, u64),
    /// Probability that a segment arrives twice.
    pub duplicate: f64,
    /// Probability of a CE mark, with ECN.
    pub mark: f64,
    /// Probability that an acknowledgement is lost.
    pub ack_loss: f64,
    /// Probability that an acknowledgement is late, and by how much at most.
    pub ack_late: (f64, u64),
    /// A change of the round-trip time: when, and to which value, both in microseconds.
    pub path_change: Option<(u64, u64)>,
}

/// How the peer acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledging {
    /// Segments in order per acknowledgement.
    pub every: u32,
    /// The longest wait for these segments, microseconds.
    pub delay_us: u64,
}

const MSS: [u32; 4] = [512, 896, 1024, 1408];
const RTT_MS: [u64; 8] = [8, 15, 30, 50, 80, 120, 200, 400];
const LOSS: [f64; 6] = [0.0, 0.0, 0.01, 0.03, 0.08, 0.2];
const LATE: [f64; 5] = [0.0, 0.0, 0.0, 0.05, 0.15];
const RARE: [f64; 6] = [0.0, 0.0, 0.0, 0.0, 0.02, 0.1];
/// Time of the handshake beyond the round trip, microseconds: a kernel measures it some microseconds shorter, which matters
/// if the sum just reaches a whole number of ticks or of Hybla's 25 ms.
pub(crate) const HANDSHAKE_US: u64 = 30;
/// Window without a limit, segments.
const WIDE: u64 = 2000;

impl Situation {
    /// The situation of a seed, for a congestion control and a kernel.
    #[must_use]
    pub fn drawn(seed: u64, congestion: &str, kernel: Kernel) -> Self {
        let Kernel { release, tick_us, max_header } = kernel;
        let rng = &mut RngStream::named(seed, "situation");
        let network = network(rng);
        let has_small_writes = rng.chance(0.2);
        let connect_us = 1_000_000 + tick_us / 2;
        let mss = pick(rng, &MSS);
        let setup = Setup {
            release,
            max_header,
            tick_us,
            send_buffer: pick(rng, &[4 << 20, 4 << 20, 4 << 20, 128 << 10, 48 << 10]),
            congestion: congestion.to_owned(),
            mss,
            sack: rng.chance(0.7),
            timestamps: rng.chance(0.5),
            ecn: congestion == "dctcp" || rng.chance(0.25),
            tso: rng.chance(0.9),
            connect_us,
            established_us: crate::network::snap(connect_us + network.rtt_us + HANDSHAKE_US + rng.below(97), tick_us),
            window: (mss * pick(rng, &[10, 20, 40])) as u16,
        };
        let writes = writes(rng, mss, has_small_writes);
        // A window in whole segments is one in whole bytes only if all segments are full.
        let windows = if has_small_writes { Vec::new() } else { windows(rng) };
        let acknowledging = Acknowledging {
            every: pick(rng, &[1, 1, 2, 2, 2, 4, 8]),
            delay_us: 1000 * pick(rng, &[1, 10, 40, 40, 100]),
        };
        Self { seed, setup, acks: 60, writes, network, acknowledging, windows }
    }

    /// The peer's window at first, segments.
    pub(crate) fn first_window(&self) -> u64 {
        WIDE
    }
}

fn network(rng: &mut RngStream) -> Network {
    let rtt_us = 1000 * pick(rng, &RTT_MS);
    Network {
        rtt_us,
        service_us: pick(rng, &[50, 200, 500, 1000, 2500, 8000]),
        queue: pick(rng, &[5, 15, 40, 100, 1000]),
        loss: pick(rng, &LOSS),
        burst: pick(rng, &[1, 1, 3, 8, 20]),
        late: (pick(rng, &LATE), rtt_us / 8 + rng.below(rtt_us)),
        duplicate: pick(rng, &RARE),
        mark: pick(rng, &LATE),
        ack_loss: pick(rng, &RARE),
        ack_late: (pick(rng, &RARE), rtt_us / 8 + rng.below(rtt_us / 2)),
        path_change: rng.chance(0.15).then(|| (rtt_us * (2 + rng.below(8)), 1000 * pick(rng, &RTT_MS))),
    }
}

/// All at once, or in pieces with pauses.
fn writes(rng: &mut RngStream, mss: u32, has_small_writes: bool) -> Vec<(u64, u64)> {
    let mss = u64::from(mss);
    if !has_small_writes && rng.chance(0.5) {
        return vec![(1, 600 * mss)];
    }
    let mut at_ms = 1;
    let count = 1 + rng.below(12);
    let write = |_| {
        let most = pick(rng, &[3, 20, 100]);
        let segments = 1 + rng.below(most);
        let rest = if has_small_writes && rng.chance(0.6) { mss / 2 } else { 0 };
        let write = (at_ms, segments * mss - rest);
        let longest_ms = pick(rng, &[20, 200, 1500]);
        at_ms += 1 + rng.below(longest_ms);
        write
    };
    (0..count).map(write).collect()
}

/// Changes of the window, the last of which opens it wide again.
fn windows(rng: &mut RngStream) -> Vec<(u64, u64)> {
    if rng.chance(0.6) {
        return Vec::new();
    }
    let mut at_ms = 10 + rng.below(200);
    let mut changes = Vec::new();
    for _ in 0..=rng.below(5) {
        changes.push((at_ms, pick(rng, &[0, 0, 1, 4, 12, 30])));
        at_ms += 1 + rng.below(500);
    }
    changes.push((at_ms, WIDE));
    changes
}

/// One of these values.
pub(crate) fn pick<T: Copy>(rng: &mut RngStream, values: &[T]) -> T {
    values[rng.below(values.len() as u64) as usize]
}
