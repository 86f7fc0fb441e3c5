//! The receive window and its autotuning (Linux 6.1 `tcp_rcv_space_adjust`, `__tcp_select_window`).
//!
//! Half of the buffer is window (`tcp_adv_win_scale` 1). The application reads at once, so only segments that wait for
//! earlier ones occupy the buffer; and only what was read in order drives the tuning.

use units::{Instant, Span};

/// Memory that Linux charges for one received packet, bytes (`skb->truesize`): `sk_buff` and the head of a 2 KiB
/// buffer.
pub(crate) const TRUE_SIZE: u64 = 2304;
/// Window scaling of a 6 MiB buffer: the window is offered in units of 2^7 bytes.
const SCALE: u64 = 1 << 7;

#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    mss: u64,
    buffer: u64,
    greatest_buffer: u64,
    /// Slow start of the window itself (`rcv_ssthresh`), bytes.
    threshold: u64,
    /// The right edge offered so far never moves back, bytes.
    edge: u64,
    /// Receiver's RTT estimate, from timestamps: eighths of a microsecond.
    rtt_us8: u64,
    last_echo: u32,
    /// Present measurement (Linux `rcvq_space`): start, first byte, and the bytes copied in the previous one.
    since: Instant,
    from: u64,
    copied_before: u64,
}

impl ReceiveWindow {
    pub(crate) fn new(mss: u32, [buffer, greatest_buffer]: [u64; 2]) -> Self {
        let mss = u64::from(mss);
        let initial = buffer / 2 / mss * mss;
        Self {
            mss,
            buffer,
            greatest_buffer: greatest_buffer.max(buffer),
            threshold: initial,
            edge: 0,
            rtt_us8: 0,
            last_echo: 0,
            since: Instant::ZERO,
            from: 0,
            copied_before: initial.min(10 * mss),
        }
    }

    /// The receiver's RTT estimate; zero before the first sample.
    pub(crate) fn rtt(&self) -> Span {
        Span::from_micros(self.rtt_us8 >> 3)
    }

    /// Data came in order up to segment `next`; the application has read it. `echo` is the segment's timestamp echo.
    pub(crate) fn on_data(&mut self, now: Instant, next: u64, echo: u32) {
        self.measure_rtt(now, echo);
        self.open(now, next);
    }

    /// The same for an MPTCP connection; `rtt` is the greatest RTT of its subflows.
    pub(crate) fn on_data_of_subflows(&mut self, now: Instant, next: u64, rtt: Span) {
        self.rtt_us8 = rtt.as_micros() << 3;
        self.open(now, next);
    }

    fn open(&mut self, now: Instant, next: u64) {
        let clamp = self.buffer / 2;
        if self.threshold < clamp {
            self.threshold = (self.threshold + 2 * self.mss).min(clamp);
        }
        self.tune(now, next * self.mss);
    }

    fn measure_rtt(&mut self, now: Instant, echo: u32) {
        if echo == 0 || echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let sample_us = u64::from(crate::tcp::timestamp(now).saturating_sub(echo)).max(1) * 1000;
        self.rtt_us8 = if self.rtt_us8 == 0 { sample_us << 3 } else { self.rtt_us8 - (self.rtt_us8 >> 3) + sample_us };
    }

    /// Once a round trip: if the application read more than in the one before, the buffer grows to hold twice of it.
    fn tune(&mut self, now: Instant, read: u64) {
        if self.rtt_us8 == 0 || now.since(self.since) < self.rtt() {
            return;
        }
        let copied = read - self.from;
        if copied > self.copied_before {
            let mut window = 2 * copied + 16 * self.mss;
            // The sender is in slow start: it may double again meanwhile.
            window += 2 * (window * (copied - self.copied_before) / self.copied_before);
            let per_packet = if TRUE_SIZE / 2 < self.mss { 2 * self.mss } else { TRUE_SIZE };
            let buffer = (window / self.mss * per_packet).min(self.greatest_buffer);
            self.buffer = self.buffer.max(buffer);
            self.copied_before = copied;
        }
        self.from = read;
        self.since = now;
    }

    /// The window to offer beyond segment `next` while `waiting` segments are out of order, bytes.
    pub(crate) fn offer(&mut self, next: u64, waiting: u64) -> u64 {
        let free = self.buffer.saturating_sub(waiting * TRUE_SIZE) / 2;
        let window = free.min(self.threshold) / SCALE * SCALE;
        let left = next * self.mss;
        self.edge = self.edge.max(left + window);
        self.edge - left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_tops_out_at_half_the_greatest_buffer() {
        let mut window = ReceiveWindow::new(1448, [131_072, 6_291_456]);
        let (mut next, mut echo) = (0, 0);
        for ms in 0..2000u64 {
            next += 1 + ms * 3; // ever faster
            echo += 1;
            window.on_data(Instant(ms * 1_000_000 + 50_000_000), next, echo);
        }
        assert_eq!(window.offer(next, 0), 3 * 1024 * 1024);
    }

    #[test]
    fn the_edge_never_moves_back() {
        let mut window = ReceiveWindow::new(1448, [131_072, 6_291_456]);
        let first = window.offer(0, 0);
        assert_eq!(first, 65_160 / 128 * 128);
        assert_eq!(window.offer(0, 40), first);
    }
}
