//! What leaves next: the probe, what was lost, then new data, as the window, the receiver and the pacer allow.

use super::{Output, Sender, handshake::Handshake};
use crate::recovery::Pacer;
use crate::tcp::{Ack, Kind, Segment, timestamp};
use control::{Cause, Event, Phase};
use units::{Instant, Rate};

/// The transmitter's own state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transmit {
    probe: Probe,
    /// Wait with retransmissions: an undo is likely (F-RTO step 2b, partial undo).
    pub new_data_only: bool,
    /// F-RTO is still undecided.
    pub spurious_timeout_possible: bool,
    /// The next data segment answers an ECN echo.
    pub reduced: bool,
    /// The host's own queue refused a segment: nothing more until the next input.
    refused: bool,
    sent_in_round: bool,
    held_by: Option<(Hold, Instant)>,
}

/// A tail-loss probe (RFC 8985 section 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Probe {
    #[default]
    None,
    Requested,
    Outstanding {
        high: u64,
        retransmission: Option<u64>,
    },
}

/// What holds the sender back, other than its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    ReceiveWindow,
    SendBuffer,
}

impl Transmit {
    pub(super) fn request_probe(&mut self) {
        self.probe = Probe::Requested;
    }

    pub(super) fn forget_probe(&mut self) {
        self.probe = Probe::None;
    }

    pub(super) fn probe_outstanding(&self) -> bool {
        matches!(self.probe, Probe::Outstanding { .. })
    }

    pub(super) fn probe_retransmitted(&self) -> bool {
        matches!(self.probe, Probe::Outstanding { retransmission: Some(_), .. })
    }
}

impl Sender {
    /// The next segment, or until when there is none.
    pub fn poll(&mut self, now: Instant) -> Output {
        if self.handshake != Handshake::Open {
            return match self.poll_handshake(now) {
                Some(segment) => Output::Transmit(segment),
                None => Output::Until(self.deadline()),
            };
        }
        match self.next_segment(now) {
            Some(segment) => {
                self.transmit.sent_in_round = true;
                Output::Transmit(segment)
            }
            None => Output::Until(self.end_round(now)),
        }
    }

    fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        if self.transmit.probe == Probe::Requested {
            return self.send_probe(now);
        }
        if self.in_flight() >= self.decision.window || self.transmit.refused || self.pacer.release() > now {
            return None;
        }
        let counts = self.board.counts();
        if self.phase >= Phase::Recovery
            && !self.transmit.new_data_only
            && counts.retransmitted < counts.lost
            && let Some(seq) = self.board.next_lost()
        {
            return Some(self.retransmit(now, seq));
        }
        self.can_send_new().then(|| self.send_new(now))
    }

    /// There is new data, and the receiver and the send buffer have room for it.
    pub(super) fn can_send_new(&self) -> bool {
        self.board.next() < self.available && self.hold().is_none()
    }

    fn hold(&self) -> Option<Hold> {
        let out = self.board.counts().out;
        if self.board.next() >= self.window_end || out >= self.config.window {
            Some(Hold::ReceiveWindow)
        } else if u64::from(out) >= self.config.send_buffer {
            Some(Hold::SendBuffer)
        } else {
            None
        }
    }

    fn send_new(&mut self, now: Instant) -> Segment {
        let counts = self.board.counts();
        if counts.in_flight() == 0 {
            let (idle, timeout) = (now.since(self.last_sent), self.round_trip.timeout());
            if idle > timeout {
                self.usage.restart(now);
            }
            self.notify(now, &Event::Restart { idle, timeout });
        }
        let snapshot = self.rate.on_sent(now, counts.out > 0, self.totals(1));
        let seq = self.board.push(now, snapshot);
        self.on_new_data(now, counts.out == 0);
        self.counters.sent += 1;
        self.segment(now, seq, false)
    }

    fn retransmit(&mut self, now: Instant, seq: u64) -> Segment {
        let snapshot = self.rate.on_sent(now, true, self.totals(1));
        self.board.retransmit(seq, now, snapshot);
        self.undo.on_retransmission(timestamp(now));
        if seq == self.board.una() {
            self.restart_retransmission_timer(now);
        }
        self.counters.sent += 1;
        self.counters.retransmitted += 1;
        self.segment(now, seq, true)
    }

    fn segment(&mut self, now: Instant, seq: u64, retransmission: bool) -> Segment {
        self.sent_since += 1;
        self.last_sent = now;
        if self.decision.pacing.is_some() || self.config.pacing {
            self.pace(now);
        }
        let reduced = !retransmission && std::mem::take(&mut self.transmit.reduced);
        Segment { kind: Kind::Data, seq, timestamp: timestamp(now), echo: self.echo, reduced, retransmission }
    }

    fn pace(&mut self, now: Instant) {
        let rate = self.decision.pacing.unwrap_or_else(|| self.default_pacing());
        let burst = Pacer::burst(rate, self.min_rtt.get(), self.config.mss);
        // TCP's own pacing counts payload (Linux `tcp_update_skb_after_send`), the fq discipline whole packets.
        let bytes = if self.config.pacing { self.config.packet } else { self.config.mss };
        self.pacer.on_sent(now, bytes, rate, burst);
    }

    /// Window over SRTT, times 2 early in slow start and 1.2 later (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
    pub(super) fn default_pacing(&self) -> Rate {
        let window = self.decision.window;
        let percent = if window < self.decision.threshold / 2 { 200 } else { 120 };
        let bytes = u64::from(self.config.packet) * u64::from(window.max(self.board.counts().out));
        Rate::of(bytes * percent / 100, self.round_trip.smoothed())
    }

    /// The host's own queue was full (Linux: the packet stays in the queue, the window is reduced at once).
    pub(super) fn on_refused(&mut self, now: Instant, segment: Segment) {
        if segment.kind != Kind::Data {
            return;
        }
        self.sent_since = self.sent_since.saturating_sub(1);
        self.counters.sent -= 1;
        if segment.retransmission {
            self.counters.retransmitted -= 1;
            self.board.clear_retransmission(segment.seq);
            self.board.mark_lost(segment.seq);
        } else {
            self.board.take_back();
        }
        self.transmit.refused = true;
        self.enter_reduction(now, Cause::LocalDrop);
    }

    /// Nothing more leaves now: note why, and say until when.
    fn end_round(&mut self, now: Instant) -> Instant {
        let counts = self.board.counts();
        let full = counts.in_flight() >= self.decision.window;
        if self.transmit.sent_in_round || full {
            self.validate_window(now, full);
        }
        let hold = if full { None } else { self.hold() };
        self.note_hold(now, hold);
        if hold == Some(Hold::SendBuffer) {
            self.note_starvation();
        }
        self.transmit.sent_in_round = false;
        let refused = std::mem::take(&mut self.transmit.refused);
        let release = self.pacer.release();
        if release > now && !full && !refused && (self.can_send_new() || counts.lost > counts.retransmitted) {
            return release.min(self.deadline());
        }
        self.pacer.close_burst();
        self.deadline()
    }

    /// There is nothing to send. If the window had room for it, what is delivered says little of the path (Linux
    /// `tcp_rate_check_app_limited`, at each write).
    pub(super) fn note_starvation(&mut self) {
        let counts = self.board.counts();
        if counts.in_flight() < self.decision.window && counts.lost <= counts.retransmitted {
            self.rate.mark_app_limited(counts.in_flight());
        }
    }

    fn validate_window(&mut self, now: Instant, full: bool) {
        let (out, una, next) = (self.board.counts().out, self.board.una(), self.board.next());
        self.usage.on_sent(full, out, una, next);
        let slow_start = self.decision.window < self.decision.threshold;
        let limited = self.usage.is_limited(self.decision.window, slow_start);
        let starved = self.usage.starved(now, limited, out, self.round_trip.timeout());
        // A full send buffer is the host's limit, not the application's lack of data.
        if let Some(used) = starved
            && self.phase == Phase::Open
            && self.hold() != Some(Hold::SendBuffer)
        {
            self.notify(now, &Event::ApplicationLimited { used });
        }
    }

    fn note_hold(&mut self, now: Instant, hold: Option<Hold>) {
        if let Some((held_by, since)) = self.transmit.held_by {
            let span = now.since(since);
            match held_by {
                Hold::ReceiveWindow => self.counters.receive_window_limited += span,
                Hold::SendBuffer => self.counters.send_buffer_limited += span,
            }
        }
        self.transmit.held_by = hold.map(|hold| (hold, now));
    }

    /// Sends the tail-loss probe: new data if there is any, else the last segment again.
    fn send_probe(&mut self, now: Instant) -> Option<Segment> {
        self.transmit.probe = Probe::None;
        if self.board.counts().out == 0 {
            return None;
        }
        self.counters.probes += 1;
        if self.can_send_new() {
            self.transmit.probe = Probe::Outstanding { high: self.board.next() + 1, retransmission: None };
            return Some(self.send_new(now));
        }
        let last = self.board.next() - 1;
        let record = self.board.record(last);
        if record.is_sacked() || record.is_retransmitted() {
            return None;
        }
        let snapshot = self.rate.on_sent(now, true, self.totals(1));
        self.board.probe(last, now, snapshot);
        self.counters.sent += 1;
        self.counters.retransmitted += 1;
        let segment = self.segment(now, last, true);
        self.transmit.probe = Probe::Outstanding { high: self.board.next(), retransmission: Some(last) };
        Some(segment)
    }

    /// A duplicate that only says that the probe was needless.
    pub(super) fn probe_explains(&self, block: (u64, u64)) -> bool {
        matches!(self.transmit.probe, Probe::Outstanding { retransmission: Some(seq), .. } if block == (seq, seq + 1))
    }

    /// RFC 8985 section 7.4.2: did the probe repair a loss?
    pub(super) fn settle_probe(&mut self, now: Instant, ack: &Ack, news: &super::ack::News) {
        let Probe::Outstanding { high, retransmission } = self.transmit.probe else { return };
        if ack.ack < high {
            return;
        }
        if retransmission.is_none() || news.probe_duplicate {
            self.transmit.forget_probe();
        } else if ack.ack > high {
            self.transmit.forget_probe();
            if self.phase < Phase::Cwr {
                self.counters.probe_repairs += 1;
                self.transmit.reduced = self.config.ecn;
                self.notify(
                    now,
                    &Event::Congestion { cause: Cause::ProbeRepair, cut: true, in_flight: self.in_flight() },
                );
                self.try_keep_open();
            }
        } else if news.repeated && !news.sacked {
            self.transmit.forget_probe();
        }
    }
}
