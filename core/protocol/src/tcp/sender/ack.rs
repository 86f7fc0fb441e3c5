//! What one acknowledgement says: SACK blocks, cumulative progress, RTT, delivery rate; then the alert, the
//! controller, and the timers. The order is Linux's (`tcp_ack`), because several algorithms depend on it.

use super::Sender;
use crate::tcp::{Ack, timestamp};
use control::{Event, Feedback, Phase};
use recovery::{Record, Sample};
use units::{Instant, Span};

/// The least RTT is taken over five minutes (`tcp_min_rtt_wlen`).
pub(super) const MIN_RTT_WINDOW: Span = Span::from_secs(300);

/// What was learned from the acknowledgement so far.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The cumulative acknowledgement moved.
    pub advanced: bool,
    /// Something was newly SACKed.
    pub sacked: bool,
    /// A duplicate was reported.
    pub duplicate: bool,
    /// Never-retransmitted data sent before the phase began was delivered (F-RTO's proof).
    pub original_delivered: bool,
    /// Retransmitted data was cumulatively acknowledged (Karn: no RTT sample).
    pub retransmission_acked: bool,
    /// An outstanding retransmission was found lost.
    pub lost_retransmission: bool,
    /// ECN echo.
    pub marked: bool,
    /// Echoed timestamp.
    pub echo: u32,
    /// Packets removed from the scoreboard's head.
    pub released: u32,
    /// Packets reported as duplicates.
    duplicates: u32,
    /// The lowest packet that arrived after later ones.
    reordered: Option<u64>,
    acked_times: Option<(Instant, Instant)>,
    sacked_times: Option<(Instant, Instant)>,
    sample: Sample,
}

/// Extends a (first, last) pair of send times.
fn extend(times: &mut Option<(Instant, Instant)>, sent: Instant) {
    *times = Some((times.map_or(sent, |(first, _)| first), sent));
}

impl Sender {
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack) {
        if ack.ack > self.board.next() {
            return; // acknowledges what was never sent
        }
        let (before, prior_phase) = (self.board.counts(), self.phase);
        let prior = (self.board.una(), self.rate.delivered(), self.counters.lost, self.board.highest_sacked());
        let mut news = News {
            advanced: ack.ack > prior.0,
            marked: ack.marked && self.config.ecn,
            echo: ack.echo,
            ..News::default()
        };
        if ack.ack >= prior.0 {
            self.window_end = self.window_end.max(ack.ack + ack.window / u64::from(self.config.mss));
            self.echo = ack.timestamp;
        }
        self.read_blocks(now, ack, &mut news);
        if before.out == 0 {
            return;
        }
        self.release(now, ack.ack, &mut news);
        let rtt = self.sample_rtt(now, &news, prior.0, before.sacked);
        self.note_reordering(&news, prior.3);
        self.rack.adapt(news.sample.prior_delivered(), self.rate.delivered());
        self.settle_probe(now, ack, &news);
        if self.is_dubious(&news) {
            self.alert(now, &mut news, prior.0);
        }
        let progressed = news.advanced || news.sacked;
        if news.advanced {
            self.restart_timers(now);
        }
        let acked = (self.rate.delivered() - prior.1) as u32;
        let delayed = self.seems_delayed(&news, prior.0, before.sacked);
        let delivery = self.rate.finish(now, &news.sample, acked, self.min_rtt.get(), delayed);
        let may_grow = if self.rack.reordering() > self.config.reordering {
            progressed
        } else {
            news.advanced && news.released > 0
        };
        let feedback = Feedback {
            acked,
            released: news.released,
            lost: (self.counters.lost - prior.2) as u32,
            marked: u32::from(news.marked),
            sent: std::mem::take(&mut self.sent_since),
            in_flight_before: before.in_flight(),
            rtt,
            delivery,
            advanced: news.advanced,
            may_grow,
            prior_phase,
            ..self.feedback()
        };
        self.notify(now, &Event::Feedback(feedback));
    }

    /// Marks what the SACK blocks newly cover.
    fn read_blocks(&mut self, now: Instant, ack: &Ack, news: &mut News) {
        let blocks = ack.blocks.as_slice();
        let Some(&first) = blocks.first() else {
            self.known_blocks = ack.blocks;
            return;
        };
        let is_duplicate =
            first.0 < ack.ack || blocks.get(1).is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
        if is_duplicate {
            self.on_duplicate(first, news);
        }
        let known = self.known_blocks;
        for block in &blocks[usize::from(is_duplicate)..] {
            let (mut start, mut end) = (block.0.max(self.board.una()), block.1.min(self.board.next()));
            // A block that grew at one end is walked only where it grew.
            for old in known.as_slice() {
                if old.0 <= start && start < old.1 {
                    start = old.1;
                } else if start < old.0 && end <= old.1 && old.0 < end {
                    end = old.0;
                }
            }
            (start..end).for_each(|seq| self.sack(now, seq, news));
        }
        self.known_blocks = ack.blocks;
    }

    fn sack(&mut self, now: Instant, seq: u64, news: &mut News) {
        let highest = self.board.highest_sacked();
        let record = self.board.sack(seq);
        if record.is_sacked() {
            return;
        }
        news.sacked = true;
        self.rate.count(1);
        self.rate.on_delivered(&mut news.sample, seq, record.sent, &record.snapshot);
        self.rack.on_delivered(now, seq, record.sent, record.was_retransmitted(), self.min_rtt.get());
        if !record.was_retransmitted() {
            if seq < highest {
                news.reordered = Some(news.reordered.map_or(seq, |low| low.min(seq)));
            }
            news.original_delivered |= seq < self.high;
            extend(&mut news.sacked_times, record.sent);
        }
    }

    /// A duplicate report (RFC 2883): one of our retransmissions was needless.
    fn on_duplicate(&mut self, block: (u64, u64), news: &mut News) {
        let count = (block.1.saturating_sub(block.0)).min(u64::from(u32::MAX)) as u32;
        // More duplicates than retransmissions: not ours (the network duplicates).
        if count == 0 || self.counters.duplicates + u64::from(count) > self.counters.retransmitted {
            return;
        }
        self.counters.duplicates += u64::from(count);
        news.duplicate = true;
        news.duplicates = count;
        self.rate.count(count);
        if !self.probe_explains(block) {
            self.rack.on_duplicate();
        }
        self.undo.on_duplicate(block, count);
        for seq in block.0.max(self.board.una())..block.1.min(self.board.next()) {
            let record = *self.board.record(seq);
            if record.was_retransmitted() && record.is_sacked() {
                news.reordered = Some(news.reordered.map_or(seq, |low| low.min(seq)));
            }
            self.board.clear_retransmission(seq);
        }
    }

    /// Removes what is cumulatively acknowledged.
    fn release(&mut self, now: Instant, ack: u64, news: &mut News) {
        while self.board.una() < ack {
            let seq = self.board.una();
            let record = self.board.pop();
            news.released += 1;
            if record.was_retransmitted() {
                news.retransmission_acked = true;
            } else if !record.is_sacked() {
                extend(&mut news.acked_times, record.sent);
                if seq < self.board.highest_sacked() {
                    news.reordered = Some(news.reordered.map_or(seq, |low| low.min(seq)));
                }
                news.original_delivered |= seq < self.high;
            }
            if !record.is_sacked() {
                self.rate.count(1);
                self.rate.on_delivered(&mut news.sample, seq, record.sent, &record.snapshot);
                if !self.is_spurious(&record, news.echo) {
                    self.rack.on_delivered(now, seq, record.sent, record.was_retransmitted(), self.min_rtt.get());
                }
            }
        }
    }

    /// The acknowledgement echoes a timestamp older than the retransmission: the original has arrived.
    fn is_spurious(&self, record: &Record, echo: u32) -> bool {
        record.was_retransmitted() && self.config.timestamps && echo != 0 && echo < timestamp(record.sent)
    }

    /// Takes the RTT samples: the oldest newly acked packet for SRTT, the newest for algorithms and the least RTT.
    fn sample_rtt(&mut self, now: Instant, news: &News, prior_una: u64, prior_sacked: u32) -> Option<Span> {
        let mut times = if news.retransmission_acked { None } else { news.acked_times };
        let mut newest = times.map(|(_, last)| last);
        if let Some((_, last)) = news.sacked_times {
            newest = Some(last);
        }
        times = times.or(news.sacked_times);
        let (oldest, newest) = match (times, newest) {
            (Some((first, _)), Some(last)) => (now.since(first), now.since(last)),
            _ if self.config.timestamps && news.advanced && news.echo != 0 => {
                let rtt = Span::from_millis(u64::from(timestamp(now).saturating_sub(news.echo)).max(1));
                (rtt, rtt)
            }
            _ => return None,
        };
        // A delayed acknowledgement must not raise the least RTT's next generation.
        if !(self.seems_delayed(news, prior_una, prior_sacked) && newest > self.min_rtt.get()) {
            self.min_rtt.update(MIN_RTT_WINDOW, now, newest.max(Span::from_micros(1)));
        }
        self.round_trip.add(oldest, self.board.una(), self.board.next());
        self.timers.backoff = 0;
        self.last_rtt = newest;
        Some(newest)
    }

    /// One lone packet acked, delivered alone since it was sent: the receiver probably waited with the acknowledgement.
    fn seems_delayed(&self, news: &News, prior_una: u64, prior_sacked: u32) -> bool {
        news.released == 1
            && prior_sacked == 0
            && self.board.una() == prior_una + 1
            && self.board.una() == self.available
            && news.sample.prior_delivered() + 1 == self.rate.delivered()
            && !news.sacked
            && !news.duplicate
            && !news.marked
    }

    fn note_reordering(&mut self, news: &News, prior_highest: u64) {
        if let Some(low) = news.reordered {
            self.rack.on_reordering(low, self.board.highest_sacked().max(prior_highest));
        }
    }

    fn is_dubious(&self, news: &News) -> bool {
        !news.advanced || news.sacked || news.duplicate || news.marked || self.phase != Phase::Open
    }
}
