//! Policers and shared bottlenecks, from what was measured.

use measured::{Direction, MeasuredPath, Policer, SharedFlow, TcpFlow, Together};

/// Least share of retransmitted segments at which a policer is suspected.
const MIN_RETRANSMITTED: f64 = 0.01;
/// A link that loses this much of the flow's share at a low rate, too, loses by chance.
const MAX_LOW_RATE_SHARE: f64 = 0.2;
/// Least time of the sustained rate that a policer's burst lasts, seconds.
const MIN_BURST_S: f64 = 0.05;
/// A burst is at least this much larger than those of the flow's second half, which are the measurement's own: a receiver that
/// gets no CPU for a while counts what has waited at once.
const MIN_BURST_TO_NOISE: f64 = 2.0;
/// Most that a policed flow adds to the RTT: a policer has no queue. Acknowledgements of a busy host take milliseconds.
const MAX_QUEUE_MS: f64 = 10.0;
const MAX_QUEUE_SHARE: f64 = 0.25;
/// Least share of all rates that one path more has to add, for a verdict on a shared bottleneck.
const MIN_GAIN: f64 = 0.15;

/// Whether a path has a policer in a direction.
///
/// A token bucket drops what exceeds its rate without queueing it: flows lose while the RTT stays as it was, datagrams at a
/// low rate do not, and a flow begins faster than it goes on, by the bucket's burst (Flach et al., SIGCOMM 2016).
pub(crate) fn policer(path: &MeasuredPath, direction: Direction) -> Policer {
    let flows: Vec<&TcpFlow> = path.tcp.iter().filter(|flow| flow.direction == direction).collect();
    let verdicts: Vec<Option<bool>> = flows.iter().map(|flow| is_policed(path, flow)).collect();
    let has = |verdict| verdicts.iter().filter(|found| **found == verdict).count();
    let found = match (has(Some(true)), has(Some(false))) {
        _ if parallel_flows_queue(path, direction) => Some(false),
        (yes, no) if yes > no => Some(true),
        (yes, no) if no > yes => Some(false),
        _ => None,
    };
    let policed = || flows.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Some(true)).map(|(flow, _)| flow);
    let is_found = found == Some(true);
    let rate = is_found.then(|| median(policed().filter_map(|flow| sustained(flow)))).flatten();
    let burst =
        is_found.then(|| median(policed().filter_map(|flow| Some(burst_bytes(flow, sustained(flow)?))))).flatten();
    Policer { direction, found, rate_mbps: rate, burst_bytes: burst.map(|bytes| bytes as u64) }
}

/// Whether several flows at a time fill a queue: behind a policer they would lose instead.
fn parallel_flows_queue(path: &MeasuredPath, direction: Direction) -> bool {
    let flows = path.parallel.iter().map(|parallel| &parallel.flow).filter(|flow| flow.direction == direction);
    let idle = idle_ms(path);
    median(flows.filter_map(|flow| flow.rtt_ms?.p50)).is_some_and(|rtt| idle.is_finite() && is_queued(rtt - idle, idle))
}

/// The least of the median RTTs without load, ms; infinite if there is none.
fn idle_ms(path: &MeasuredPath) -> f64 {
    path.idle_rtt.iter().filter_map(|idle| idle.rtt_ms?.p50).fold(f64::INFINITY, f64::min)
}

fn is_queued(waiting_ms: f64, idle_ms: f64) -> bool {
    waiting_ms > MAX_QUEUE_MS.max(MAX_QUEUE_SHARE * idle_ms)
}

/// What one flow tells: a queue that grows is no policer; losses without a queue and a burst are one.
fn is_policed(path: &MeasuredPath, flow: &TcpFlow) -> Option<bool> {
    let idle = idle_ms(path);
    let queued = flow.rtt_ms?.p50? - idle;
    if !idle.is_finite() {
        return None;
    }
    if is_queued(queued, idle) {
        return Some(false);
    }
    let retransmitted = share(flow.retransmitted_segments, flow.sent_segments)?;
    if retransmitted < MIN_RETRANSMITTED {
        return None;
    }
    let streams = path.udp.iter().filter(|udp| udp.direction == flow.direction);
    let lost = median(streams.filter_map(|udp| share(udp.lost, udp.sent)))?;
    let rate = sustained(flow)?;
    let least = (rate * 1e6 / 8.0 * MIN_BURST_S).max(MIN_BURST_TO_NOISE * excess_bytes(flow, second_half(flow), rate));
    let has_burst = burst_bytes(flow, rate) > least;
    (lost <= MAX_LOW_RATE_SHARE * retransmitted && has_burst).then_some(true)
}

/// The median rate of the second half of a flow, Mbit/s.
fn sustained(flow: &TcpFlow) -> Option<f64> {
    median(second_half(flow).iter().copied())
}

fn second_half(flow: &TcpFlow) -> &[f64] {
    &flow.goodput_intervals_mbps[flow.goodput_intervals_mbps.len() / 2..]
}

/// What passed a token bucket of this rate at once in the first half of the flow, bytes.
fn burst_bytes(flow: &TcpFlow, rate_mbps: f64) -> f64 {
    excess_bytes(flow, &flow.goodput_intervals_mbps[..flow.goodput_intervals_mbps.len() / 2], rate_mbps)
}

/// The most by which intervals exceed a rate, over any time in which they do: the depth of a token bucket of that rate that lets
/// all of it pass, bytes.
fn excess_bytes(flow: &TcpFlow, intervals: &[f64], rate_mbps: f64) -> f64 {
    let seconds = flow.interval_s.unwrap_or(0.0);
    let missing = intervals.iter().scan(0.0_f64, |missing, goodput| {
        *missing = (*missing + (goodput - rate_mbps) * seconds * 1e6 / 8.0).max(0.0);
        Some(*missing)
    });
    missing.fold(0.0, f64::max)
}

/// Whether the paths share a bottleneck: what all of them gained together lies between the fastest of them alone and their sum.
pub(crate) fn shared_bottleneck(flows: &[SharedFlow]) -> Option<bool> {
    let together: f64 = flows.iter().map(|flow| flow.goodput_mbps).sum::<Option<f64>>()?;
    let alone: Vec<f64> = flows.iter().map(|flow| flow.alone_mbps).collect::<Option<_>>()?;
    let (sum, fastest) = (alone.iter().sum::<f64>(), alone.iter().copied().fold(0.0, f64::max));
    if sum - fastest <= MIN_GAIN * sum {
        return None;
    }
    match (together - fastest) / (sum - fastest) {
        gained if gained < 1.0 / 3.0 => Some(true),
        gained if gained > 2.0 / 3.0 => Some(false),
        _ => None,
    }
}

/// Fills in what each flow had alone, and the verdict.
pub(crate) fn compare_with_alone(together: &mut Together, paths: &[MeasuredPath]) {
    for flow in &mut together.flows {
        let alone = paths.iter().filter(|path| path.name == flow.path).flat_map(|path| &path.tcp);
        let same = alone.filter(|tcp| tcp.direction == together.direction && tcp.congestion == together.congestion);
        flow.alone_mbps = median(same.filter_map(|tcp| tcp.goodput_mbps));
    }
    together.shared_bottleneck = shared_bottleneck(&together.flows);
}

fn share(part: Option<u64>, whole: Option<u64>) -> Option<f64> {
    let (part, whole) = (part?, whole.filter(|whole| *whole > 0)?);
    Some(part as f64 / whole as f64)
}

/// The median, the mean of the two in the middle of an even number; none of no value.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use measured::{IdleRtt, Parallel, Summary, UdpStream};

    /// A path with an idle RTT of 20 ms, a share of losses at a low rate, and a flow: RTT, share retransmitted, intervals.
    fn path(lost: u64, rtt: f64, retransmitted: u64, intervals: &[f64]) -> MeasuredPath {
        let summary = |p50| Summary::of([p50]);
        let idle = IdleRtt { rtt_ms: summary(20.0), ..IdleRtt::default() };
        let udp = UdpStream { sent: Some(1000), lost: Some(lost), ..UdpStream::new(Direction::Down) };
        let tcp = TcpFlow {
            rtt_ms: summary(rtt),
            sent_segments: Some(1000),
            retransmitted_segments: Some(retransmitted),
            interval_s: Some(0.1),
            goodput_intervals_mbps: intervals.to_vec(),
            ..TcpFlow::new(Direction::Down)
        };
        MeasuredPath { idle_rtt: vec![idle], udp: vec![udp], tcp: vec![tcp], ..MeasuredPath::default() }
    }

    /// Slow start below the rate, 100 Mbit/s until a bucket of a megabyte is empty, and 20 afterwards.
    const POLICED: [f64; 10] = [5.0, 100.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0];

    #[test]
    fn losses_without_a_queue_after_a_burst_are_a_policer() {
        let found = policer(&path(0, 21.0, 50, &POLICED), Direction::Down);
        assert_eq!((found.found, found.rate_mbps, found.burst_bytes), (Some(true), Some(20.0), Some(1_000_000)));
    }

    #[test]
    fn a_queue_losses_by_chance_or_no_burst_are_no_policer() {
        let found = |path: &MeasuredPath| policer(path, Direction::Down).found;
        assert_eq!(found(&path(0, 60.0, 50, &POLICED)), Some(false), "a queue");
        assert_eq!(found(&path(50, 21.0, 50, &POLICED)), None, "losses at a low rate, too");
        assert_eq!(found(&path(0, 21.0, 50, &[20.0; 10])), None, "no burst");
        let stalls = [20.0, 0.0, 40.0, 20.0, 20.0, 20.0, 0.0, 40.0, 20.0, 20.0];
        assert_eq!(found(&path(0, 21.0, 50, &stalls)), None, "no burst that later ones do not have, too");
        assert_eq!(found(&path(0, 21.0, 0, &POLICED)), None, "no losses");
        assert_eq!(policer(&path(0, 21.0, 50, &POLICED), Direction::Up).found, None, "no flow in this direction");
    }

    #[test]
    fn several_flows_that_wait_in_a_queue_tell_that_there_is_no_policer() {
        let with = |rtt| {
            let flow = TcpFlow { rtt_ms: Summary::of([rtt]), ..TcpFlow::new(Direction::Down) };
            MeasuredPath { parallel: vec![Parallel { streams: 8, flow }], ..path(0, 21.0, 50, &POLICED) }
        };
        assert_eq!(policer(&with(60.0), Direction::Down).found, Some(false));
        assert_eq!(policer(&with(22.0), Direction::Down).found, Some(true));
    }

    #[test]
    fn a_shared_bottleneck_shows_in_the_sum() {
        let verdict = |flows: &[(f64, f64)]| {
            let flow = |(together, alone): &(f64, f64)| SharedFlow {
                path: String::new(),
                goodput_mbps: Some(*together),
                alone_mbps: Some(*alone),
            };
            shared_bottleneck(&flows.iter().map(flow).collect::<Vec<_>>())
        };
        assert_eq!(verdict(&[(10.0, 20.0), (10.0, 20.0)]), Some(true));
        assert_eq!(verdict(&[(19.0, 20.0), (19.0, 20.0)]), Some(false));
        assert_eq!(verdict(&[(15.0, 20.0), (15.0, 20.0)]), None, "halfway");
        assert_eq!(verdict(&[(2.0, 2.0), (98.0, 100.0)]), None, "the small one is lost in the other's noise");
    }

    #[test]
    fn a_median_of_an_even_number_is_the_mean_of_the_middle() {
        assert_eq!((median([3.0, 1.0, 2.0]), median([4.0, 1.0, 2.0, 3.0]), median([])), (Some(2.0), Some(2.5), None));
    }
}
