//! Outcomes of one world, of the algorithm and of CUBIC, become four measures.

use crate::{Group, Outcome, Rival, RivalKind, Rtt, World};

/// What is measured in each world. A measure is a ratio to the result of CUBIC in the same place with the same seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Share that the worst-off group of competitors keeps of its result next to CUBIC. At least 0.5.
    Harm,
    /// Share of its own packets that are lost, divided by the greater of twice CUBIC's share and 2 %. At most 1.
    Loss,
    /// Queueing delay of its packets, divided by the greater of 1.25 times CUBIC's and a quarter of the base RTT (half of it
    /// for the 95th percentile). At most 1.
    Queue,
    /// Goodput divided by CUBIC's. At least 0.8.
    Goodput,
}

/// All measures.
pub const MEASURES: [Measure; 4] = [Measure::Harm, Measure::Loss, Measure::Queue, Measure::Goodput];

/// Minimum share of its result next to CUBIC that a competitor keeps.
const LEAST_KEPT: f64 = 0.5;
/// Loss and queue are ratios to their limits.
const ALLOWED: f64 = 1.0;
/// Minimum share of CUBIC's goodput.
const LEAST_GOODPUT: f64 = 0.8;

/// Share of losses that is always allowed.
const ALWAYS_ALLOWED_LOSS: f64 = 0.02;
/// Allowed multiple of CUBIC's losses.
const LOSS_FACTOR: f64 = 2.0;
/// Allowed multiple of CUBIC's queueing delay.
const QUEUE_FACTOR: f64 = 1.25;
/// Median queueing delay that is always allowed: a share of the base RTT, and at least this many ms. Twice as much for the
/// 95th percentile.
const ALWAYS_ALLOWED_QUEUE: (f64, f64) = (0.25, 10.0);

/// Bytes of a competitor next to CUBIC below which the result is left to chance.
const WORTH_BYTES: u64 = 100 * 1460;
/// Bytes of each flow of the group, likewise.
const WORTH_FLOW_BYTES: u64 = 10 * 1460;
/// Packets of the group per RTT, likewise: with fewer, a flow only moves from one timeout to the next.
const WORTH_WINDOW: f64 = 4.0;
/// Payload of a packet, bits.
const PACKET_BITS: f64 = 1460.0 * 8.0;
/// Answers and datagrams, likewise.
const WORTH_REQUESTS: u64 = 10;
const WORTH_DATAGRAMS: u64 = 50;
/// Own packets, likewise.
const WORTH_PACKETS: u64 = 200;
/// Additional delay of a call, compared with CUBIC, from which on its delay counts, ms.
const WORTH_DELAY_MS: f64 = 20.0;

/// The measures of a world; none if there is nothing worth judging.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The world's seed.
    pub seed: u64,
    /// A value for each of [`MEASURES`].
    pub values: [Option<f64>; 4],
    /// The group of competitors that is worst off.
    pub worst_rival: Option<String>,
}

impl Measure {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Harm => "others keep",
            Self::Loss => "own losses",
            Self::Queue => "queue",
            Self::Goodput => "goodput",
        }
    }

    /// The bound in words.
    #[must_use]
    pub fn bound(self) -> &'static str {
        match self {
            Self::Harm => "at least 0.50",
            Self::Loss | Self::Queue => "at most 1.00",
            Self::Goodput => "at least 0.80",
        }
    }

    /// Whether a value is within the bound.
    #[must_use]
    pub fn passes(self, value: f64) -> bool {
        match self {
            Self::Harm => value >= LEAST_KEPT,
            Self::Loss | Self::Queue => value <= ALLOWED,
            Self::Goodput => value >= LEAST_GOODPUT,
        }
    }

    /// Whether greater values are worse.
    #[must_use]
    pub fn is_worse_if_greater(self) -> bool {
        matches!(self, Self::Loss | Self::Queue)
    }
}

/// Judges an algorithm's outcome against those of CUBIC in the same world: with the same seed, and once more with other
/// random events. Each value is the better one for the algorithm, so that it is not compared with a chance result of CUBIC.
#[must_use]
pub fn judge(world: &World, algorithm: &Outcome, cubic: [&Outcome; 2]) -> Judgement {
    let of_rival = |index: usize| {
        let rival = &world.rivals[index];
        let kept = |cubic: &Outcome| {
            let rtt_ms = cubic.rtt.iter().map(|rtt| rtt.p50).fold(0.0, f64::max);
            kept(rival, algorithm.rivals.get(index)?, cubic.rivals.get(index)?, rtt_ms)
        };
        Some((better(cubic.map(kept), f64::max)?, &rival.name))
    };
    let worst = (0..world.rivals.len()).filter_map(of_rival).min_by(|(a, _), (b, _)| a.total_cmp(b));
    let values = [
        worst.as_ref().map(|(value, _)| *value),
        better(cubic.map(|cubic| loss(&algorithm.test, &cubic.test)), f64::min),
        better(cubic.map(|cubic| queue(&algorithm.rtt, &cubic.rtt)), f64::min),
        better(cubic.map(|cubic| goodput(&algorithm.test, &cubic.test)), f64::max),
    ];
    Judgement { seed: world.seed, values, worst_rival: worst.map(|(_, name)| name.clone()) }
}

/// The better of two values; none if one of CUBIC's runs has nothing worth judging.
fn better(values: [Option<f64>; 2], better: fn(f64, f64) -> f64) -> Option<f64> {
    let [first, second] = values;
    Some(better(first?, second?))
}

/// Share that a group keeps of its result next to CUBIC; none if that result is too small to be judged.
fn kept(rival: &Rival, group: &Group, beside_cubic: &Group, rtt_ms: f64) -> Option<f64> {
    // Flows that come one after another are not active at the same time.
    let flows = if rival.kind == RivalKind::Churn { 1 } else { rival.count };
    let window = flows as f64 * beside_cubic.rate_mbps * 1e3 * rtt_ms / PACKET_BITS;
    let bytes = WORTH_BYTES.max(rival.count * WORTH_FLOW_BYTES);
    let worth = beside_cubic.bytes >= bytes && window >= WORTH_WINDOW;
    match rival.kind {
        RivalKind::Greedy | RivalKind::Churn => worth.then(|| ratio(group.rate_mbps, beside_cubic.rate_mbps)),
        RivalKind::Short => (beside_cubic.requests >= WORTH_REQUESTS).then(|| {
            let answers = ratio(group.requests as f64, beside_cubic.requests as f64);
            answers.min(if group.requests == 0 { 0.0 } else { ratio(beside_cubic.response_ms, group.response_ms) })
        }),
        RivalKind::Call => (beside_cubic.sent_packets >= WORTH_DATAGRAMS).then(|| call(group, beside_cubic)),
        RivalKind::Video => worth.then(|| ratio(group.video_mbps, beside_cubic.video_mbps)),
        RivalKind::Pulses => None,
    }
}

/// For a call, both datagrams and delay count.
fn call(group: &Group, beside_cubic: &Group) -> f64 {
    let datagrams = ratio(group.bytes as f64, beside_cubic.bytes as f64);
    let waits = group.delay_ms > beside_cubic.delay_ms + WORTH_DELAY_MS;
    datagrams.min(if waits { ratio(beside_cubic.delay_ms, group.delay_ms) } else { 1.0 })
}

fn loss(algorithm: &Group, cubic: &Group) -> Option<f64> {
    let share = |group: &Group| group.dropped_packets as f64 / group.sent_packets.max(1) as f64;
    let is_worth = algorithm.sent_packets >= WORTH_PACKETS && cubic.sent_packets > 0;
    is_worth.then(|| share(algorithm) / (LOSS_FACTOR * share(cubic)).max(ALWAYS_ALLOWED_LOSS))
}

/// The worst of all paths that both have used.
fn queue(algorithm: &[Rtt], cubic: &[Rtt]) -> Option<f64> {
    let both = algorithm.iter().zip(cubic).filter(|(algorithm, cubic)| algorithm.min > 0.0 && cubic.min > 0.0);
    both.map(|(algorithm, cubic)| path_queue(*algorithm, *cubic)).max_by(f64::total_cmp)
}

fn path_queue(algorithm: Rtt, cubic: Rtt) -> f64 {
    let base = algorithm.min.min(cubic.min);
    let (share, least) = ALWAYS_ALLOWED_QUEUE;
    let always = least.max(share * base);
    let of = |own: f64, cubic: f64, always: f64| (own - base) / (QUEUE_FACTOR * (cubic - base)).max(always);
    of(algorithm.p50, cubic.p50, always).max(of(algorithm.p95, cubic.p95, 2.0 * always))
}

fn goodput(algorithm: &Group, cubic: &Group) -> Option<f64> {
    (cubic.bytes >= WORTH_BYTES).then(|| ratio(algorithm.rate_mbps, cubic.rate_mbps))
}

/// a / b, where b may be zero: in that case there was nothing next to CUBIC that could be lost.
fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(rate_mbps: f64) -> Group {
        Group { rate_mbps, bytes: 10_000_000, sent_packets: 10_000, ..Group::default() }
    }

    fn rival(kind: RivalKind) -> Rival {
        Rival { name: "one".to_owned(), kind, about: String::new(), count: 1, text: String::new() }
    }

    #[test]
    fn a_competitor_that_got_a_few_packets_beside_cubic_is_not_judged() {
        let few = Group { bytes: 99 * 1460, ..group(1.0) };
        let greedy = rival(RivalKind::Greedy);
        assert_eq!(kept(&greedy, &group(0.0), &few, 100.0), None);
        assert_eq!(kept(&greedy, &group(0.5), &group(2.0), 100.0), Some(0.25));
        assert_eq!(kept(&rival(RivalKind::Pulses), &group(0.5), &group(2.0), 100.0), None, "an adversary");
        let twenty = Rival { count: 20, ..rival(RivalKind::Greedy) };
        assert_eq!(kept(&twenty, &group(0.0), &Group { bytes: 199 * 1460, ..group(1.0) }, 100.0), None);
    }

    /// 1 Mbit/s in 40 ms is 3.4 packets: too few for one flow, enough for two, but not if these come one after another.
    #[test]
    fn a_competitor_with_less_than_four_packets_a_round_trip_is_not_judged() {
        let of = |kind, count| kept(&Rival { count, ..rival(kind) }, &group(0.5), &group(1.0), 40.0);
        assert_eq!(
            [of(RivalKind::Greedy, 1), of(RivalKind::Greedy, 2), of(RivalKind::Churn, 2)],
            [None, Some(0.5), None]
        );
    }

    #[test]
    fn short_flows_keep_the_lesser_of_answers_and_time() {
        let beside_cubic = Group { requests: 40, response_ms: 100.0, ..Group::default() };
        let answers = |requests, response_ms| {
            kept(&rival(RivalKind::Short), &Group { requests, response_ms, ..Group::default() }, &beside_cubic, 40.0)
        };
        assert_eq!([answers(40, 400.0), answers(10, 100.0), answers(0, 0.0)], [Some(0.25), Some(0.25), Some(0.0)]);
    }

    #[test]
    fn a_call_keeps_datagrams_and_delay_but_milliseconds_do_not_decide() {
        let of = |bytes, delay_ms| Group { bytes, delay_ms, ..group(0.1) };
        let beside_cubic = of(1000, 5.0);
        let call = |bytes, delay_ms| kept(&rival(RivalKind::Call), &of(bytes, delay_ms), &beside_cubic, 40.0);
        assert_eq!([call(1000, 24.0), call(1000, 50.0), call(300, 5.0)], [Some(1.0), Some(0.1), Some(0.3)]);
    }

    #[test]
    fn losses_below_two_percent_or_twice_cubics_pass() {
        let losing = |dropped_packets| Group { dropped_packets, ..group(1.0) };
        let passes = |own, cubic| Measure::Loss.passes(loss(&losing(own), &losing(cubic)).unwrap());
        assert!(passes(200, 0) && !passes(201, 0) && passes(1000, 500) && !passes(1001, 500));
    }

    #[test]
    fn a_queue_passes_if_it_is_short_or_not_much_longer_than_cubics() {
        let rtt = |p50, p95| Rtt { min: 40.0, p50, p95 };
        let passes = |own, cubic| Measure::Queue.passes(path_queue(own, cubic));
        assert!(passes(rtt(50.0, 60.0), rtt(40.0, 40.0)) && !passes(rtt(50.5, 60.0), rtt(40.0, 40.0)));
        assert!(passes(rtt(165.0, 165.0), rtt(140.0, 140.0)) && !passes(rtt(166.0, 166.0), rtt(140.0, 140.0)));
    }
}
