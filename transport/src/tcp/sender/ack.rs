//! What one acknowledgement says: SACK blocks, cumulative progress, RTT, delivery rate; then the alert, the
//! controller, and the timers. The order is Linux's (`tcp_ack`), because several algorithms depend on it.

use super::Sender;
use crate::recovery::{Counts, Record, Sample};
use crate::tcp::{Ack, timestamp};
use control::{Event, Feedback, Phase};
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
    /// The duplicate that was reported is the tail-loss probe.
    pub probe_duplicate: bool,
    /// A duplicate acknowledgement in the sense of RFC 5681: nothing new at all.
    pub repeated: bool,
    /// Retransmission and probe timer start afresh.
    pub restarts_timers: bool,
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
    one_way_delay: Span,
    /// Packets removed from the scoreboard's head.
    pub released: u32,
    /// The lowest packet that arrived after later ones.
    reordered: Option<u64>,
    acked_times: Option<(Instant, Instant)>,
    sacked_times: Option<(Instant, Instant)>,
    sample: Sample,
}

/// Where things stood before the acknowledgement.
#[derive(Debug)]
pub(super) struct Before {
    pub una: u64,
    pub counts: Counts,
    pub sacked_end: u64,
    delivered: u64,
    lost: u64,
    phase: Phase,
}

/// Extends a (first, last) pair of send times.
fn extend(times: &mut Option<(Instant, Instant)>, sent: Instant) {
    *times = Some((times.map_or(sent, |(first, _)| first), sent));
}

impl Sender {
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack) {
        (self.last_rtt, self.last_delivery) = (None, None);
        if ack.ack > self.board.next() {
            return; // acknowledges what was never sent
        }
        let before = self.before();
        let mut news = News {
            marked: ack.marked && self.config.ecn,
            echo: ack.echo,
            one_way_delay: Span::from_millis(u64::from(ack.one_way_ms)),
            ..News::default()
        };
        if ack.ack < before.una {
            return self.on_old_ack(now, ack, &mut news, &before);
        }
        news.advanced = ack.ack > before.una;
        self.echo = ack.timestamp;
        let wider = self.update_window(ack);
        self.read_blocks(now, ack, &mut news);
        news.repeated = !(news.advanced || news.duplicate || wider);
        if before.counts.out == 0 {
            if news.duplicate {
                self.alert(now, &mut news, &before);
            }
            return self.settle_probe(now, ack, &news);
        }
        self.release(now, ack.ack, &mut news, &before);
        let rtt = self.sample_rtt(now, &mut news, &before);
        self.note_reordering(&news, &before);
        self.rack.adapt(news.sample.prior_delivered(), self.rate.delivered());
        self.settle_probe(now, ack, &news);
        if self.is_dubious(&news) {
            self.alert(now, &mut news, &before);
        }
        if news.restarts_timers {
            self.restart_timers(now);
        }
        let feedback = self.feedback_of(now, &news, &before, rtt);
        self.notify(now, &Event::Feedback(feedback));
    }

    fn before(&self) -> Before {
        Before {
            una: self.board.una(),
            counts: self.board.counts(),
            sacked_end: self.board.sacked_end(),
            delivered: self.rate.delivered(),
            lost: self.counters.lost,
            phase: self.phase,
        }
    }

    /// An acknowledgement overtaken by a later one may still bring SACK blocks.
    fn on_old_ack(&mut self, now: Instant, ack: &Ack, news: &mut News, before: &Before) {
        if ack.blocks.is_empty() {
            return;
        }
        self.read_blocks(now, ack, news);
        self.note_reordering(news, before);
        self.alert(now, news, before);
    }

    /// True if the receive window grew.
    fn update_window(&mut self, ack: &Ack) -> bool {
        let mss = u64::from(self.config.mss);
        let edge = ack.ack.saturating_mul(mss).saturating_add(ack.window);
        let wider = edge > self.window_edge;
        self.window_edge = self.window_edge.max(edge);
        self.window_end = self.window_edge / mss;
        wider
    }

    fn feedback_of(&mut self, now: Instant, news: &News, before: &Before, rtt: Option<Span>) -> Feedback {
        let acked = (self.rate.delivered() - before.delivered) as u32;
        let marked = if news.marked { acked } else { 0 };
        self.counters.marked += u64::from(marked);
        let (now_totals, last_lost) = (self.totals(0), self.board.take_last_lost());
        let delayed = self.seems_delayed(news, before);
        let delivery = self.rate.finish(now, &news.sample, acked, self.min_rtt.get(), delayed);
        self.last_delivery = delivery;
        let may_grow = if self.rack.reordering() > self.config.reordering {
            news.released > 0 || news.sacked
        } else {
            news.released > 0
        };
        Feedback {
            acked,
            released: news.released,
            lost: (self.counters.lost - before.lost) as u32,
            marked,
            newest: news.sample.newest().map(|snapshot| snapshot.sending(now_totals)),
            newest_lost: last_lost.map(|snapshot| snapshot.sending(now_totals)),
            sent: std::mem::take(&mut self.sent_since),
            in_flight_before: before.counts.in_flight(),
            rtt,
            one_way_delay: (acked > 0 && self.config.timestamps).then_some(news.one_way_delay),
            delivery,
            advanced: news.advanced,
            may_grow,
            prior_phase: before.phase,
            ..self.feedback()
        }
    }

    /// Marks what the SACK blocks newly cover.
    fn read_blocks(&mut self, now: Instant, ack: &Ack, news: &mut News) {
        let mut blocks = ack.blocks.iter();
        let Some(first) = blocks.next() else {
            self.known_blocks = ack.blocks;
            return;
        };
        if !self.config.sack {
            return;
        }
        let is_duplicate =
            first.0 < ack.ack || blocks.next().is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
        if is_duplicate {
            self.on_duplicate(first, news);
        }
        let known = self.known_blocks;
        for block in ack.blocks.iter().skip(usize::from(is_duplicate)) {
            let (mut start, mut end) = (block.0.max(self.board.una()), block.1.min(self.board.next()));
            // A block that grew at one end is walked only where it grew.
            for old in known.iter() {
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
        let end = self.board.sacked_end();
        let record = self.board.sack(seq);
        if record.is_sacked() {
            return;
        }
        news.sacked = true;
        self.rate.count(1);
        self.rate.on_delivered(&mut news.sample, seq, record.sent, &record.snapshot);
        self.note_delivered(now, seq, &record);
        if !record.was_retransmitted() {
            if seq < end {
                news.reordered = Some(news.reordered.map_or(seq, |low| low.min(seq)));
            }
            news.original_delivered |= seq < self.high;
            extend(&mut news.sacked_times, record.sent);
        }
    }

    /// Loss detection learns of a delivery.
    fn note_delivered(&mut self, now: Instant, seq: u64, record: &Record) {
        match &mut self.fack {
            Some(fack) => fack.on_delivered(seq, record.sent),
            None => self.rack.on_delivered(now, seq, record.sent, record.was_retransmitted(), self.min_rtt.get()),
        }
    }

    /// A duplicate report (RFC 2883): one of our retransmissions was needless.
    fn on_duplicate(&mut self, block: (u64, u64), news: &mut News) {
        let count = (block.1.saturating_sub(block.0)).min(u64::from(u32::MAX)) as u32;
        if count == 0 || block.1 > self.board.next() {
            return;
        }
        self.counters.duplicates += u64::from(count);
        // More duplicates than retransmissions: not ours (the network duplicates).
        if self.counters.duplicates > self.counters.retransmitted {
            return;
        }
        news.duplicate = true;
        news.probe_duplicate = self.probe_explains(block);
        self.rate.count(count);
        if !news.probe_duplicate {
            self.rack.on_duplicate();
        }
        self.undo.on_duplicate(block, count);
        for seq in block.0.max(self.board.una())..block.1 {
            let record = *self.board.record(seq);
            if record.was_retransmitted() && record.is_sacked() {
                news.reordered = Some(news.reordered.map_or(seq, |low| low.min(seq)));
            }
            self.board.clear_retransmission(seq);
        }
    }

    /// Removes what is cumulatively acknowledged.
    fn release(&mut self, now: Instant, ack: u64, news: &mut News, before: &Before) {
        while self.board.una() < ack {
            let seq = self.board.una();
            let record = self.board.pop();
            news.released += 1;
            if record.was_retransmitted() {
                news.retransmission_acked = true;
            } else if !record.is_sacked() {
                extend(&mut news.acked_times, record.sent);
                if seq < before.sacked_end {
                    news.reordered = Some(news.reordered.map_or(seq, |low| low.min(seq)));
                }
                news.original_delivered |= seq < self.high;
            }
            if !record.is_sacked() {
                self.rate.on_delivered(&mut news.sample, seq, record.sent, &record.snapshot);
                if self.config.sack {
                    self.rate.count(1);
                    if !self.is_spurious(&record, news.echo) {
                        self.note_delivered(now, seq, &record);
                    }
                }
            }
        }
        news.restarts_timers = news.released > 0;
        if !self.config.sack && news.released > 0 {
            self.release_unsacked(news);
        }
    }

    /// The acknowledgement echoes a timestamp older than the retransmission: the original has arrived.
    fn is_spurious(&self, record: &Record, echo: u32) -> bool {
        record.was_retransmitted() && self.config.timestamps && echo != 0 && echo < timestamp(record.sent)
    }

    /// Takes the RTT samples: the oldest newly acked packet for SRTT, the newest for algorithms and the least RTT.
    fn sample_rtt(&mut self, now: Instant, news: &mut News, before: &Before) -> Option<Span> {
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
        if !(self.seems_delayed(news, before) && newest > self.min_rtt.get()) {
            self.min_rtt.update(MIN_RTT_WINDOW, now, newest.max(Span::from_micros(1)));
        }
        self.round_trip.add(oldest, self.board.una(), self.board.next());
        self.timers.backoff = 0;
        // A SACKed packet sent before the head was (last) sent shows nothing of the head's fate.
        if let Some((first, _)) = news.sacked_times
            && self.board.counts().out > 0
            && first < self.board.record(self.board.una()).sent
        {
            news.restarts_timers = true;
        }
        self.last_rtt = Some(newest);
        Some(newest)
    }

    /// One lone packet acked that was not full and was delivered alone since it was sent: the receiver probably waited
    /// with the acknowledgement.
    fn seems_delayed(&self, news: &News, before: &Before) -> bool {
        news.released == 1
            && before.counts.sacked == 0
            && self.board.una() == before.una + 1
            && Some(self.board.una()) == self.runt_end
            && news.sample.prior_delivered() + 1 == self.rate.delivered()
            && !news.sacked
            && !news.duplicate
            && !news.marked
    }

    fn note_reordering(&mut self, news: &News, before: &Before) {
        // After a timeout that cannot be undone, what comes late says nothing about the network.
        let counts = self.phase != Phase::Loss || self.undo.marker.is_some() || news.advanced;
        if let Some(low) = news.reordered
            && counts
        {
            self.rack.on_reordering(low, self.board.sacked_end().max(before.sacked_end));
        }
    }

    fn is_dubious(&self, news: &News) -> bool {
        !news.advanced || news.sacked || news.duplicate || news.marked || self.phase != Phase::Open
    }
}
