//! Losses, reordering and jitter of a stream of datagrams, in one direction.

use measured::{Direction, Summary, UdpStream};
use std::collections::BTreeSet;

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Its number in the order of sending.
    pub(crate) number: u32,
    /// The receiver's time less the sender's, nanoseconds. Their clocks need not agree.
    pub(crate) transit_ns: i64,
}

/// What a stream of `sent` datagrams was like, whose arrivals are in their order. Each number comes once.
pub(crate) fn stream(direction: Direction, sent: u32, arrivals: &[Arrival]) -> UdpStream {
    let transits: Vec<f64> = arrivals.iter().map(|arrival| arrival.transit_ns as f64 / 1e6).collect();
    let least = transits.iter().copied().fold(f64::INFINITY, f64::min);
    UdpStream {
        sent: Some(sent.into()),
        received: Some(arrivals.len() as u64),
        lost: Some(u64::from(sent).saturating_sub(arrivals.len() as u64)),
        reordered: Some(reordered(arrivals)),
        loss_runs: Some(loss_runs(sent, arrivals)),
        delay_variation_ms: Summary::of(transits.iter().map(|transit| transit - least)),
        jitter_rfc3550_ms: jitter(&transits),
        ..UdpStream::new(direction)
    }
}

/// The number of arrivals after one that was sent later, as in RFC 4737.
fn reordered(arrivals: &[Arrival]) -> u64 {
    let mut next = 0;
    let late = arrivals.iter().filter(|arrival| {
        let is_late = arrival.number < next;
        next = next.max(arrival.number + 1);
        is_late
    });
    late.count() as u64
}

/// Lengths of runs, alternately arrived and lost; the first may be 0.
fn loss_runs(sent: u32, arrivals: &[Arrival]) -> Vec<u64> {
    let arrived: BTreeSet<u32> = arrivals.iter().map(|arrival| arrival.number).collect();
    let mut runs = vec![0];
    let mut in_arrived = true;
    for number in 0..sent {
        if arrived.contains(&number) != in_arrived {
            in_arrived = !in_arrived;
            runs.push(0);
        }
        if let Some(run) = runs.last_mut() {
            *run += 1;
        }
    }
    runs
}

/// Interarrival jitter after the last arrival, by RFC 3550, section 6.4.1.
fn jitter(transits_ms: &[f64]) -> Option<f64> {
    let differences = transits_ms.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    (transits_ms.len() > 1).then(|| differences.fold(0.0, |jitter, difference| jitter + (difference - jitter) / 16.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(numbers: &[u32]) -> Vec<Arrival> {
        numbers.iter().map(|number| Arrival { number: *number, transit_ns: 0 }).collect()
    }

    #[test]
    fn losses_are_runs_in_the_order_of_sending() {
        assert_eq!(loss_runs(10, &arrivals(&[2, 3, 4, 6, 7, 8, 9])), [0, 2, 3, 1, 4]);
        assert_eq!(loss_runs(3, &arrivals(&[0, 2, 1])), [3]);
        assert_eq!(loss_runs(3, &arrivals(&[0])), [1, 2]);
        assert_eq!(loss_runs(0, &[]), [0]);
    }

    #[test]
    fn an_arrival_is_reordered_after_one_that_was_sent_later() {
        // RFC 4737, section 4.2.2: of 1 2 3 7 8 4 5 6 the last three are reordered.
        assert_eq!(reordered(&arrivals(&[1, 2, 3, 7, 8, 4, 5, 6])), 3);
    }

    #[test]
    fn jitter_is_a_sixteenth_of_each_difference() {
        assert_eq!(jitter(&[0.0, 16.0]), Some(1.0));
        assert_eq!(jitter(&[0.0, 16.0, 16.0]), Some(1.0 - 1.0 / 16.0));
        assert_eq!(jitter(&[1.0]), None);
    }

    #[test]
    fn delays_vary_over_the_smallest_of_them_whatever_the_clocks() {
        let arrivals: Vec<_> = [-5_000_000, -4_000_000, -2_000_000]
            .into_iter()
            .zip(0..)
            .map(|(transit_ns, number)| Arrival { number, transit_ns })
            .collect();
        let found = stream(Direction::Up, 4, &arrivals);
        let variation = found.delay_variation_ms.unwrap();
        assert_eq!((variation.min, variation.p50, variation.max), (Some(0.0), Some(1.0), Some(3.0)));
        assert_eq!((found.sent, found.received, found.lost), (Some(4), Some(3), Some(1)));
    }
}
