//! Random events at the ends of an MPT tunnel, which differ from run to run: when a sleeping daemon is scheduled after a
//! packet has arrived, and when background packets arrive.

use scenario::model::WakeUp;
use units::{Instant, RngStream, Span};

/// The instants of a direction's background packets.
#[derive(Debug)]
pub(crate) struct StrayTimes {
    interval: Option<Span>,
    rng: RngStream,
}

impl StrayTimes {
    /// The background packets of a direction, at random intervals of this mean.
    pub(crate) fn new(interval: Option<Span>, seed: u64, direction: usize) -> Self {
        Self { interval, rng: RngStream::named(seed, &format!("tunnel strays {direction}")) }
    }

    /// The time of the next packet after one at `now`.
    pub(crate) fn next(&mut self, now: Instant) -> Instant {
        self.interval.map_or(Instant::NEVER, |mean| now + exponential(&mut self.rng, mean))
    }
}

/// Shape of the gamma distribution of [`draw_preemption`]: a standard deviation of 18 % of the mean. Twenty runs of Vegas on Linux
/// 6.1 have no less.
const PREEMPTION_SHAPE: u64 = 30;

/// The number of acknowledgements after which a flow's receiving program preempts the daemon, drawn with this mean.
pub(crate) fn draw_preemption(mean: u32, seed: u64, flow: &str) -> u64 {
    let mut rng = RngStream::named(seed, &format!("flow {flow} preemption"));
    let part = Span(u64::from(mean) * 1000 / PREEMPTION_SHAPE);
    (0..PREEMPTION_SHAPE).map(|_| exponential(&mut rng, part).0).sum::<u64>() / 1000
}

/// Draws from the exponential distribution with this mean.
fn exponential(rng: &mut RngStream, mean: Span) -> Span {
    Span((-libm::log(1.0 - rng.unit()) * mean.0 as f64) as u64)
}

/// The scheduling of a program that sleeps until a packet arrives: a daemon, or the receiver of a flow.
#[derive(Debug)]
pub(crate) struct Sleeper {
    latency: Option<WakeUp>,
    rng: RngStream,
    /// The time at which the program runs, or last ran.
    runs_at: Instant,
}

impl Sleeper {
    /// A program that draws its latency from the random stream of this name. Without a latency it runs at once.
    pub(crate) fn new(latency: Option<WakeUp>, seed: u64, stream: &str) -> Self {
        Self { latency, rng: RngStream::named(seed, stream), runs_at: Instant::ZERO }
    }

    /// Called when a packet arrives. Returns when the program takes it. A program that is already woken takes everything
    /// that arrives until it runs, and what arrives while it runs, such as the acknowledgement of data that it delivers.
    pub(crate) fn wake(&mut self, now: Instant) -> Instant {
        let Some(WakeUp { least, mean }) = self.latency else { return now };
        if self.runs_at < now {
            self.runs_at = now + least + exponential(&mut self.rng, Span(mean.0 - least.0));
        }
        self.runs_at
    }

    /// Whether the program sleeps, or is woken and does not run yet.
    pub(crate) fn is_asleep(&self, now: Instant) -> bool {
        self.runs_at > now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_their_least_value_and_their_mean() {
        let (least, mean) = (Span::from_micros(3), Span::from_micros(10));
        let mut daemon = Sleeper::new(Some(WakeUp { least, mean }), 1, "daemon");
        let instants = (1..=100_000).map(|k| Instant(k * 1_000_000_000));
        let latencies: Vec<Span> = instants.map(|now| daemon.wake(now).since(now)).collect();
        assert!(latencies.iter().all(|latency| *latency >= least));
        let drawn_mean = latencies.iter().map(|latency| latency.0).sum::<u64>() / 100_000;
        // The standard error is 7 us / sqrt(100 000), 22 ns.
        assert!(drawn_mean.abs_diff(mean.0) < 4 * 22, "{drawn_mean} ns");
    }

    #[test]
    fn preemptions_have_their_mean() {
        let drawn: Vec<u64> = (0..10_000).map(|seed| draw_preemption(3000, seed, "tcp")).collect();
        let mean = drawn.iter().sum::<u64>() as f64 / 1e4;
        // Of a gamma distribution with a shape of 30, and their standard errors.
        let deviation = (drawn.iter().map(|acks| (*acks as f64 - mean).powi(2)).sum::<f64>() / 1e4).sqrt();
        assert!((mean - 3000.0).abs() < 4.0 * 5.5, "{mean}");
        assert!((deviation - 548.0).abs() < 4.0 * 4.1, "{deviation}");
    }

    #[test]
    fn strays_come_at_their_rate_or_never() {
        let mut times = StrayTimes::new(Some(Span::from_secs(1)), 1, 0);
        let last = (0..10_000).fold(Instant::ZERO, |now, _| times.next(now));
        // The standard error of a sum of 10 000 is 100 s.
        assert!(last.0.abs_diff(10_000 * 1_000_000_000) < 400 * 1_000_000_000, "{last:?}");
        assert_eq!(StrayTimes::new(None, 1, 0).next(Instant::ZERO), Instant::NEVER);
    }

    #[test]
    fn a_woken_daemon_takes_what_comes_until_it_has_run() {
        let latency = WakeUp { least: Span::from_micros(3), mean: Span::from_micros(3) };
        let mut daemon = Sleeper::new(Some(latency), 1, "daemon");
        let micros = |us: u64| Instant(us * 1000);
        assert_eq!([10, 11, 12].map(|now| daemon.wake(micros(now))), [micros(13); 3]);
        assert!(daemon.is_asleep(micros(12)) && !daemon.is_asleep(micros(13)));
        assert_eq!([13, 14].map(|now| daemon.wake(micros(now))), [micros(13), micros(17)]);
        assert_eq!(Sleeper::new(None, 1, "daemon").wake(micros(5)), micros(5));
    }
}
