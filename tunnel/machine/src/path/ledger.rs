//! What left on a path, and what the peer says of it: acknowledgements, losses, round trips, delivery rates.
//!
//! Each number is used once, so that a sample is never ambiguous (QUIC; RFC 9002, section 3). A packet is lost when one sent
//! so many numbers, or so much time, after it has arrived (RFC 9002, section 6.1); the number of packets grows when a path
//! proves to reorder more.

use control::{RateSample, SendState};
use std::collections::VecDeque;
use transport::recovery::{PendingRateSample, RateSampler, SendSnapshot, SendTotals, WindowedMin};
use units::{Instant, Span};
use wire::frame::Ack;

/// Packets that may overtake one before it is lost (RFC 9002, section 6.1.1).
const REORDERING: u64 = 3;
/// The most that a path's reordering is allowed for.
const MOST_REORDERING: u64 = 300;
/// Large datagrams lost, and none arrived, that make a black hole of the path...
const BLACK_HOLE: u32 = 8;
/// ... if it goes on for so long.
const LEAST_HOLE: Span = Span::from_millis(200);
/// Losses that are remembered, to find those that were none.
const REMEMBERED: usize = 64;
/// The least time that a packet may be overtaken by (RFC 9002, section 6.1.2).
const GRANULARITY: Span = Span::from_millis(1);
/// The least RTT is taken over so long.
const MIN_RTT_WINDOW: Span = Span::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Out,
    /// No data: it takes no room and its loss says nothing.
    Control,
    Done,
}

#[derive(Clone, Debug)]
struct Departure {
    at: Instant,
    snapshot: SendSnapshot,
    /// Number of the piece among all pieces.
    piece: u64,
    /// The datagram is larger than what every path carries.
    large: bool,
    fate: Fate,
}

/// What one acknowledgement brought.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    now: Instant,
    pub(super) acked: u32,
    pub(super) lost: u32,
    pub(super) marked: u32,
    pub(super) rtt: Option<Span>,
    pub(super) delivery: Option<RateSample>,
    pub(super) newest: Option<SendState>,
    pub(super) newest_lost: Option<SendState>,
    /// The oldest outstanding number moved.
    pub(super) advanced: bool,
    pub(super) in_flight_before: u32,
}

/// Pieces, by their numbers among all, whose fate became known: one buffer, used again and again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates {
    pub(crate) acked: Vec<u64>,
    pub(crate) lost: Vec<u64>,
}

/// The books of one path's sending.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    base: u64,
    departures: VecDeque<Departure>,
    pub(super) in_flight: u32,
    largest_acked: Option<u64>,
    reordering: u64,
    lately_lost: VecDeque<u64>,
    loss_due: Instant,
    last_sent: Instant,
    pub(super) round_trip: RoundTrip,
    min_rtt: WindowedMin,
    pub(super) rate: RateSampler,
    marked: u32,
    pub(super) totals: Counts,
    /// Large ones lost since the last one arrived: since when, and how many.
    large_lost: Option<(Instant, u32)>,
    /// One-way delay to the peer's clock, modulo 2^32: smoothed, and its mean deviation; microseconds.
    pub(super) one_way: Option<(u32, i32)>,
}

/// Round-trip time, smoothed as RFC 9002, section 5.3 says. (Linux's estimator, which TCP's machine uses, holds the
/// deviation up for the sake of its least timeout; here it tells how long to wait for a reordered packet.)
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Zero before the first sample.
    pub(super) smoothed: Span,
    pub(super) deviation: Span,
    latest: Span,
}

impl RoundTrip {
    fn add(&mut self, rtt: Span) {
        self.latest = rtt;
        if self.smoothed == Span::ZERO {
            (self.smoothed, self.deviation) = (rtt, rtt / 2);
            return;
        }
        let error = Span(self.smoothed.0.abs_diff(rtt.0));
        self.deviation = (self.deviation * 3 + error) / 4;
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
    }

    /// When a TCP would retransmit (RFC 6298, with Linux's least timeout).
    pub(super) fn timeout(&self) -> Span {
        self.smoothed + (self.deviation * 4).max(Span::from_millis(200))
    }
}

/// SendTotals since the path exists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) bytes: u64,
    pub(super) lost: u64,
    pub(super) marked: u64,
    pub(super) spurious: u64,
}

impl Ledger {
    /// Nothing sent yet; the first number is this.
    pub(super) fn new(first: u64) -> Self {
        Self {
            base: first,
            departures: VecDeque::new(),
            in_flight: 0,
            largest_acked: None,
            reordering: REORDERING,
            lately_lost: VecDeque::with_capacity(REMEMBERED),
            loss_due: Instant::NEVER,
            last_sent: Instant::ZERO,
            round_trip: RoundTrip::default(),
            min_rtt: WindowedMin::default(),
            rate: RateSampler::default(),
            marked: 0,
            totals: Counts::default(),
            large_lost: None,
            one_way: None,
        }
    }

    /// The next packet's number.
    pub(super) fn next(&self) -> u64 {
        self.base + self.departures.len() as u64
    }

    /// The oldest number whose fate is open.
    pub(super) fn una(&self) -> u64 {
        self.base
    }

    pub(super) fn min_rtt(&self) -> Span {
        self.min_rtt.get()
    }

    pub(super) fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// When [`on_loss_timer`](Self::on_loss_timer) is due.
    pub(super) fn loss_due(&self) -> Instant {
        self.loss_due
    }

    fn totals(&self) -> SendTotals {
        let (lost, marked) = (self.totals.lost as u32, self.totals.marked as u32);
        SendTotals { in_flight: self.in_flight, lost, marked }
    }

    /// A piece leaves; its packet's number.
    pub(super) fn on_data(&mut self, now: Instant, piece: u64, bytes: u32, large: bool) -> u64 {
        let outstanding = self.in_flight > 0;
        self.in_flight += 1;
        let snapshot = self.rate.on_sent(now, outstanding, self.totals());
        (self.totals.sent, self.totals.bytes) = (self.totals.sent + 1, self.totals.bytes + u64::from(bytes));
        self.last_sent = now;
        self.push(Departure { at: now, snapshot, piece, large, fate: Fate::Out })
    }

    /// Frames leave; their packet's number.
    pub(super) fn on_control(&mut self, now: Instant) -> u64 {
        if self.departures.is_empty() {
            self.base += 1;
            return self.base - 1;
        }
        let snapshot = SendSnapshot::default();
        self.push(Departure { at: now, snapshot, piece: 0, large: false, fate: Fate::Control })
    }

    fn push(&mut self, departure: Departure) -> u64 {
        self.departures.push_back(departure);
        self.next() - 1
    }

    /// The peer tells what has arrived. `None` if it tells of what never left.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack, fates: &mut Fates) -> Option<News> {
        let largest = self.expand(ack.largest)?;
        let mut news = News { now, in_flight_before: self.in_flight, ..News::default() };
        let (base, delivered) = (self.base, self.rate.delivered());
        let mut sample = PendingRateSample::default();
        self.find_spurious(largest, ack);
        let mut high = largest;
        for (arrived, missing) in ack.ranges.iter() {
            let low = (high + 1).saturating_sub(u64::from(arrived)).max(self.base);
            (low..=high).for_each(|number| self.deliver(now, number, largest, ack, &mut sample, &mut news, fates));
            let Some(below) = high.checked_sub(u64::from(arrived) + u64::from(missing)) else { break };
            if below < self.base {
                break;
            }
            high = below;
        }
        news.acked = (self.rate.delivered() - delivered) as u32;
        // One that a newer one overtook has old counts (RFC 9000, section 13.4.2.1).
        if self.largest_acked < Some(largest) {
            self.largest_acked = Some(largest);
            let marked = ack.ce_count.wrapping_sub(self.marked) as i32;
            news.marked = (marked.max(0) as u32).min(news.acked);
            self.marked = ack.ce_count;
            self.totals.marked += u64::from(news.marked);
        }
        self.detect_losses(now, &mut news, fates);
        self.settle();
        news.newest = sample.newest().map(|snapshot| snapshot.sending(self.totals()));
        news.delivery = self.rate.finish(now, &sample, news.acked, self.min_rtt.get(), false);
        news.advanced = self.base > base;
        Some(news)
    }

    fn expand(&self, number: u32) -> Option<u64> {
        let newest = self.next().checked_sub(1)?;
        newest.checked_sub(u64::from((newest as u32).wrapping_sub(number)))
    }

    #[expect(clippy::too_many_arguments, reason = "one packet of one acknowledgement")]
    fn deliver(
        &mut self,
        now: Instant,
        number: u64,
        largest: u64,
        ack: &Ack,
        sample: &mut PendingRateSample,
        news: &mut News,
        fates: &mut Fates,
    ) {
        let departure = &mut self.departures[(number - self.base) as usize];
        if departure.fate != Fate::Out {
            return;
        }
        departure.fate = Fate::Done;
        let (at, snapshot, piece, large) = (departure.at, departure.snapshot, departure.piece, departure.large);
        self.in_flight -= 1;
        self.rate.count(1);
        self.rate.on_delivered(sample, number, at, &snapshot);
        fates.acked.push(piece);
        if large {
            self.large_lost = None;
        }
        if number == largest {
            news.rtt = Some(self.sample(now, at, ack));
        }
    }

    /// Round trip (without the peer's wait) and one-way delay of the largest packet.
    fn sample(&mut self, now: Instant, at: Instant, ack: &Ack) -> Span {
        let rtt = now.since(at);
        let rtt = Span::from_micros(rtt.as_micros().saturating_sub(u64::from(ack.ack_delay_us)).max(1));
        self.min_rtt.update(MIN_RTT_WINDOW, now, rtt);
        self.round_trip.add(rtt);
        // The offset of the clocks is unknown and the same on all paths.
        let delay = ack.receive_timestamp_us.wrapping_sub((at.0 / 1000) as u32);
        let (mean, deviation) = self.one_way.unwrap_or((delay, 0));
        let error = delay.wrapping_sub(mean) as i32;
        let change = (i64::from(error.unsigned_abs()) - i64::from(deviation)) / 4;
        self.one_way = Some((mean.wrapping_add_signed(error / 8), deviation + change as i32));
        rtt
    }

    /// A packet that was found lost is told to have arrived: the path reorders more than was thought.
    fn find_spurious(&mut self, largest: u64, ack: &Ack) {
        let arrived = |number: u64| {
            let mut high = largest;
            ack.ranges.iter().any(|(arrived, missing)| {
                let low = (high + 1).saturating_sub(u64::from(arrived));
                let within = (low..=high).contains(&number);
                high = low.saturating_sub(u64::from(missing) + 1);
                within
            })
        };
        let found = self.lately_lost.iter().copied().filter(|number| arrived(*number)).min();
        let Some(oldest) = found else { return };
        let before = self.lately_lost.len();
        self.lately_lost.retain(|number| !arrived(*number));
        self.totals.spurious += (before - self.lately_lost.len()) as u64;
        self.reordering = self.reordering.max(largest - oldest + 1).min(MOST_REORDERING);
    }

    fn detect_losses(&mut self, now: Instant, news: &mut News, fates: &mut Fates) {
        self.loss_due = Instant::NEVER;
        let Some(largest) = self.largest_acked else { return };
        let window = self.reordering_window();
        for number in self.base..largest.min(self.next()) {
            let departure = &mut self.departures[(number - self.base) as usize];
            if departure.fate != Fate::Out {
                continue;
            }
            let due = departure.at + window;
            if number + self.reordering > largest && due > now {
                self.loss_due = due;
                return;
            }
            departure.fate = Fate::Done;
            let (snapshot, piece, large) = (departure.snapshot, departure.piece, departure.large);
            self.lose(number, &snapshot, piece, large, news, fates);
        }
    }

    fn lose(
        &mut self,
        number: u64,
        snapshot: &SendSnapshot,
        piece: u64,
        large: bool,
        news: &mut News,
        fates: &mut Fates,
    ) {
        self.in_flight -= 1;
        self.totals.lost += 1;
        if large {
            self.large_lost.get_or_insert((news.now, 0)).1 += 1;
        }
        news.lost += 1;
        news.newest_lost = Some(snapshot.sending(self.totals()));
        fates.lost.push(piece);
        if self.lately_lost.len() == REMEMBERED {
            self.lately_lost.pop_front();
        }
        self.lately_lost.push_back(number);
    }

    fn reordering_window(&self) -> Span {
        let rtt = self.round_trip.smoothed.max(self.round_trip.latest);
        Span(rtt.0 / 8 * 9).max(GRANULARITY)
    }

    /// Packets that were overtaken long enough ago are lost.
    pub(super) fn on_loss_timer(&mut self, now: Instant, fates: &mut Fates) -> News {
        let mut news = News { now, in_flight_before: self.in_flight, ..News::default() };
        let base = self.base;
        self.detect_losses(now, &mut news, fates);
        self.settle();
        news.advanced = self.base > base;
        news
    }

    fn settle(&mut self) {
        while self.departures.front().is_some_and(|departure| departure.fate != Fate::Out) {
            self.departures.pop_front();
            self.base += 1;
        }
    }

    /// How long to wait for an answer before something must be wrong (RFC 9002, section 6.2.1).
    pub(super) fn patience(&self) -> Span {
        let deviation = (self.round_trip.deviation * 4).max(GRANULARITY);
        self.round_trip.smoothed + deviation + super::receipt::MOST_DELAY
    }

    /// Small datagrams pass and large ones do not, since when this is suspected (RFC 8899, section 4.3). An overflowing queue
    /// loses many in a row, too, but not for so long.
    pub(super) fn black_hole(&self) -> Instant {
        let hole = self.large_lost.filter(|(_, count)| *count >= BLACK_HOLE);
        hole.map_or(Instant::NEVER, |(since, _)| since + (self.patience() * 2).max(LEAST_HOLE))
    }

    /// Pieces whose fate is open, oldest first.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = u64> + '_ {
        self.departures.iter().filter(|departure| departure.fate == Fate::Out).map(|departure| departure.piece)
    }

    /// The path failed: everything out is lost, and what was measured may not hold when it comes back.
    pub(super) fn abandon(&mut self, fates: &mut Fates) {
        fates.lost.extend(self.outstanding());
        self.totals.lost += u64::from(self.in_flight);
        (self.base, self.in_flight) = (self.next(), 0);
        self.departures.clear();
        (self.loss_due, self.one_way, self.large_lost) = (Instant::NEVER, None, None);
        (self.round_trip, self.min_rtt) = (RoundTrip::default(), WindowedMin::default());
    }

    /// A probe's round trip is the first estimate, until data bring theirs: the least one, because a path's first datagram may have waited
    /// for a neighbour's address or for a radio to wake up.
    pub(super) fn on_probe(&mut self, now: Instant, rtt: Span) {
        if self.one_way.is_none() && rtt < self.min_rtt.get() {
            self.min_rtt.update(MIN_RTT_WINDOW, now, rtt);
            self.round_trip = RoundTrip::default();
            self.round_trip.add(rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::frame::AckRanges;

    #[test]
    fn a_mark_counts_once_in_whatever_order_acknowledgements_come() {
        let (mut ledger, mut fates) = (Ledger::new(0), Fates::default());
        let now = Instant::ZERO + Span::from_millis(1);
        (0..5).for_each(|piece| assert_eq!(ledger.on_data(now, piece, 1000, false), piece));
        let mut marks = |largest, marked| {
            let mut ranges = AckRanges::default();
            ranges.push(0, largest + 1);
            let ack = Ack { path: 0, largest, ack_delay_us: 0, receive_timestamp_us: 0, ce_count: marked, ranges };
            ledger.on_ack(now, &ack, &mut fates).expect("all has left").marked
        };
        // The second one left before the first, by another path.
        assert_eq!([marks(1, 1), marks(0, 0), marks(3, 1), marks(4, 2)], [1, 0, 0, 1]);
    }

    /// RFC 6298, section 2: the first sample is the estimate, a later one counts for an eighth.
    #[test]
    fn the_least_probe_counts_until_data_bring_round_trips() {
        let (mut ledger, mut fates) = (Ledger::new(0), Fates::default());
        let at = |ms: u64| Instant::ZERO + Span::from_millis(ms);
        for (ms, rtt, expected) in [(1, 1500, 1500), (2, 20, 20), (3, 400, 20)] {
            ledger.on_probe(at(ms), Span::from_millis(rtt));
            assert_eq!(ledger.round_trip.smoothed, Span::from_millis(expected));
        }
        ledger.on_data(at(10), 1, 1000, false);
        let mut ranges = AckRanges::default();
        ranges.push(0, 1);
        let ack = Ack { path: 0, largest: 0, ack_delay_us: 0, receive_timestamp_us: 0, ce_count: 0, ranges };
        assert!(ledger.on_ack(at(50), &ack, &mut fates).is_some());
        assert_eq!(ledger.round_trip.smoothed, Span::from_micros(22_500));
        ledger.on_probe(at(60), Span::from_millis(10));
        assert_eq!(ledger.round_trip.smoothed, Span::from_micros(22_500));
    }
}
