//! Pacing: the send time of the next burst. Linux 6.1 `tcp_update_skb_after_send`, `tcp_tso_autosize`.

use units::{Instant, Rate, Span};

/// The packet of a connection from which it is paced, as in Linux.
const FIRST_PACED: u64 = 10;
/// A burst is about a millisecond of data (`sk_pacing_shift` 10).
const BURSTS_A_SECOND: u64 = 1 << 10;
/// On short paths a burst is up to one offload frame longer (`tcp_tso_rtt_log` 9: halved for each 512 us of minimum
/// RTT).
const OFFLOAD_BYTES: u64 = 65_536;

/// Spaces bursts so that the mean rate is the pacing rate.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    next_send_time: Instant,
    burst_left: u32,
    sent_packets: u64,
}

impl Pacer {
    /// Time at which the next packet may be sent.
    #[must_use]
    pub fn next_send_time(&self) -> Instant {
        if self.burst_left > 0 { Instant::ZERO } else { self.next_send_time }
    }

    /// Records that a packet of `bytes` is sent now. It begins a burst of `burst` packets unless one is in progress.
    pub fn on_sent(&mut self, now: Instant, bytes: u32, rate: Rate, burst: u32) {
        self.sent_packets += 1;
        if self.sent_packets < FIRST_PACED || rate.as_bits() == 0 {
            self.next_send_time = self.next_send_time.max(now);
            return;
        }
        if self.burst_left == 0 {
            self.burst_left = burst.max(1);
            // A late burst is compensated by up to half a packet's time, because timers are never early.
            let lateness = now.since(self.next_send_time);
            self.next_send_time = now;
            let packet_time = rate.time_for(u64::from(bytes));
            self.next_send_time = self.next_send_time - lateness.min(packet_time / 2);
        }
        self.burst_left -= 1;
        self.next_send_time += rate.time_for(u64::from(bytes));
    }

    /// Time until a new burst may begin.
    #[must_use]
    pub fn delay(&self, now: Instant) -> Span {
        self.next_send_time.since(now)
    }

    /// Whether a new burst may begin now, whatever is left of the current one.
    #[must_use]
    pub fn allows_burst(&self, now: Instant) -> bool {
        self.next_send_time <= now
    }

    /// Records that a super-segment of `bytes` is sent now; it is a separate burst.
    pub fn on_super_segment(&mut self, now: Instant, segments: u64, bytes: u64, rate: Rate) {
        self.sent_packets += segments;
        self.burst_left = 0;
        let lateness = now.since(self.next_send_time);
        self.next_send_time = self.next_send_time.max(now);
        if self.sent_packets >= FIRST_PACED && rate.as_bits() > 0 {
            let time = rate.time_for(bytes);
            self.next_send_time = self.next_send_time + time - lateness.min(time / 2);
        }
    }

    /// Records that a packet without data is sent now. It is not paced, but the next burst is not late any more by the
    /// time before it (Linux `tcp_wstamp_ns`).
    pub fn on_pure_ack(&mut self, now: Instant) {
        self.next_send_time = self.next_send_time.max(now);
    }

    /// Records the retransmission of a segment, one of a buffer of `segments` with `bytes`. The buffer is paced when it
    /// begins.
    pub fn on_retransmission(&mut self, now: Instant, segments: u32, bytes: u64, rate: Rate) {
        match self.burst_left.checked_sub(1) {
            Some(left) => self.burst_left = left,
            None => {
                self.on_super_segment(now, u64::from(segments), bytes, rate);
                self.burst_left = segments.saturating_sub(1);
            }
        }
    }

    /// Ends a burst, because there was nothing more to send.
    pub fn end_burst(&mut self) {
        self.burst_left = 0;
    }

    /// Packets per burst at `rate`, with `payload` bytes per packet; at least `least` packets.
    #[must_use]
    pub fn burst(rate: Rate, min_rtt: Span, payload: u32, least: u32) -> u32 {
        let shift = (min_rtt.as_micros() >> 9).min(63);
        let bytes = (rate.as_bits() / 8 / BURSTS_A_SECOND) + (OFFLOAD_BYTES >> shift);
        ((bytes.min(OFFLOAD_BYTES) / u64::from(payload.max(1))) as u32).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_the_pacing_rate() {
        let mut pacer = Pacer::default();
        let rate = Rate::from_mbit(100);
        let mut now = Instant::ZERO;
        for _ in 0..10_010 {
            now = now.max(pacer.next_send_time());
            pacer.on_sent(now, 1250, rate, 8);
        }
        // 10 000 paced packets of 0.1 ms; the last burst's time is still to be waited for.
        assert!(now.since(Instant::ZERO).as_millis().abs_diff(1000) <= 1, "{now:?}");
    }

    /// Linux 6.1.192, situation 221 of `cargo xtask kernel-drill --congestion bbr`.
    #[test]
    fn the_tenth_packet_is_the_first_one_that_is_paced() {
        let (rate, start) = (Rate::from_mbit(10), Instant::ZERO + Span::from_secs(1));
        let waits = |send: &dyn Fn(&mut Pacer)| {
            let mut pacer = Pacer::default();
            (0..10).map(|_| (send(&mut pacer), pacer.delay(start).as_micros()).1).collect::<Vec<_>>()
        };
        // 1250 bytes take a millisecond.
        let expected = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1000];
        assert_eq!(waits(&|pacer| pacer.on_sent(start, 1250, rate, 1)), expected);
        assert_eq!(waits(&|pacer| pacer.on_super_segment(start, 1, 1250, rate)), expected);
    }

    #[test]
    fn a_late_buffer_that_is_sent_again_gains_half_of_its_time() {
        let mut pacer = Pacer { sent_packets: FIRST_PACED, ..Pacer::default() };
        let (rate, start) = (Rate::from_mbit(10), Instant::ZERO + Span::from_secs(1));
        // 1250 bytes take a millisecond.
        pacer.on_retransmission(start, 2, 2500, rate);
        assert_eq!(pacer.next_send_time(), Instant::ZERO, "the second one follows at once");
        pacer.on_retransmission(start, 2, 2500, rate);
        assert_eq!(pacer.next_send_time().since(start), Span::from_millis(1));
    }

    /// Linux 6.1.192, situation 120 of `cargo xtask kernel-drill --congestion bbr`.
    #[test]
    fn a_packet_without_data_ends_the_lateness_of_the_next_burst() {
        let at = |us: u64| Instant::ZERO + Span::from_micros(us);
        let after = |pure_ack: Option<Instant>| {
            let mut pacer = Pacer { sent_packets: FIRST_PACED, next_send_time: at(1000), ..Pacer::default() };
            pure_ack.into_iter().for_each(|ack_at| pacer.on_pure_ack(ack_at));
            pacer.on_super_segment(at(3000), 1, 1250, Rate::from_mbit(10));
            pacer.delay(at(3000)).as_micros()
        };
        assert_eq!([after(None), after(Some(at(2800)))], [500, 800], "a millisecond a packet");
    }

    #[test]
    fn burst_is_a_millisecond_of_data_on_long_paths() {
        assert_eq!(Pacer::burst(Rate::from_mbit(100), Span::from_millis(50), 1448, 2), 8);
        let slow = |least| Pacer::burst(Rate::from_mbit(1), Span::from_millis(50), 1448, least);
        assert_eq!([slow(2), slow(1)], [2, 1]);
    }
}
