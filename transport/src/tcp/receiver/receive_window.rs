//! The receive window and its autotuning (Linux 6.1 `tcp_rcv_space_adjust`, `__tcp_select_window`).
//!
//! Half of the buffer is window (`tcp_adv_win_scale` 1). Segments that wait for earlier ones, or for the application to
//! read them, occupy the buffer; only what was read drives the tuning.

use units::{Instant, Span};

/// Memory that Linux charges for one received packet, bytes (`skb->truesize`): `sk_buff` and the head of a 2 KiB
/// buffer.
pub(crate) const TRUESIZE: u64 = 2304;
/// Window scaling of a 6 MiB buffer: the window is offered in units of 2^7 bytes.
const SCALE: u64 = 1 << 7;

#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    mss: u64,
    buffer: u64,
    max_buffer: u64,
    /// Slow start of the advertised window, bytes.
    rcv_ssthresh: u64,
    /// Right edge of the window advertised so far, which never moves back, bytes.
    rcv_wnd_edge: u64,
    /// Receiver's RTT estimate, from timestamps: eighths of a microsecond.
    rtt_us8: u64,
    last_tsecr: u32,
    /// Present measurement (Linux `rcvq_space`): start, first byte, and the bytes read in the previous one.
    measurement_start: Instant,
    measurement_start_bytes: u64,
    prior_copied: u64,
    /// What came last, in order, and will have been read when the next comes.
    unread: Option<(Instant, u64)>,
}

impl ReceiveWindow {
    pub(crate) fn new(mss: u32, [buffer, max_buffer]: [u64; 2]) -> Self {
        let mss = u64::from(mss);
        let initial_window = buffer / 2 / mss * mss;
        Self {
            mss,
            buffer,
            max_buffer: max_buffer.max(buffer),
            rcv_ssthresh: initial_window,
            rcv_wnd_edge: 0,
            rtt_us8: 0,
            last_tsecr: 0,
            measurement_start: Instant::ZERO,
            measurement_start_bytes: 0,
            prior_copied: initial_window.min(10 * mss),
            unread: None,
        }
    }

    /// The receiver's RTT estimate; zero before the first sample.
    pub(crate) fn rtt(&self) -> Span {
        Span::from_micros(self.rtt_us8 >> 3)
    }

    /// Data came in order. `tsecr` is the segment's timestamp echo. Returns whether the window has grown, which Linux
    /// acknowledges at once (`tcp_grow_window`).
    pub(crate) fn on_data(&mut self, now: Instant, tsecr: u32) -> bool {
        if let Some((time, read)) = self.unread.take_if(|(time, _)| *time < now) {
            self.on_read(time, read);
        }
        self.measure_rtt(now, tsecr);
        self.raise_ssthresh()
    }

    /// As [`Self::on_data`], for an MPTCP connection, whose application has read up to segment `next`; `rtt` is the
    /// maximum RTT of its subflows.
    pub(crate) fn on_data_of_subflows(&mut self, now: Instant, next: u64, rtt: Span) {
        self.rtt_us8 = rtt.as_micros() << 3;
        self.raise_ssthresh();
        self.on_read(now, next);
    }

    /// The packet that has just come occupies the buffer: what is less below the clamp than its memory is no room.
    fn raise_ssthresh(&mut self) -> bool {
        let (window_clamp, occupied) = (self.buffer / 2, TRUESIZE / 2);
        let has_room = self.rcv_ssthresh + occupied < window_clamp;
        if has_room {
            self.rcv_ssthresh = (self.rcv_ssthresh + 2 * self.mss).min(window_clamp);
        }
        has_room
    }

    /// The application will read up to segment `next`: what arrives at one instant is read at once, after the last.
    pub(crate) fn read_after(&mut self, now: Instant, next: u64) {
        self.unread = Some((now, next));
    }

    /// The application has read up to segment `read`.
    pub(crate) fn on_read(&mut self, now: Instant, read: u64) {
        self.adjust_buffer(now, read * self.mss);
    }

    fn measure_rtt(&mut self, now: Instant, tsecr: u32) {
        if tsecr == 0 || tsecr == self.last_tsecr {
            return;
        }
        self.last_tsecr = tsecr;
        let sample_us = u64::from(crate::tcp::timestamp(now).saturating_sub(tsecr)).max(1) * 1000;
        self.rtt_us8 = if self.rtt_us8 == 0 { sample_us << 3 } else { self.rtt_us8 - (self.rtt_us8 >> 3) + sample_us };
    }

    /// Once a round trip: if the application read more than in the previous one, the buffer grows to twice that.
    fn adjust_buffer(&mut self, now: Instant, read_bytes: u64) {
        if self.rtt_us8 == 0 || now.since(self.measurement_start) < self.rtt() {
            return;
        }
        let copied = read_bytes - self.measurement_start_bytes;
        if copied > self.prior_copied {
            let mut window = 2 * copied + 16 * self.mss;
            // The sender is in slow start: it may double again meanwhile.
            window += 2 * (window * (copied - self.prior_copied) / self.prior_copied);
            let memory_per_packet = if TRUESIZE / 2 < self.mss { 2 * self.mss } else { TRUESIZE };
            let buffer = (window / self.mss * memory_per_packet).min(self.max_buffer);
            self.buffer = self.buffer.max(buffer);
            self.prior_copied = copied;
        }
        self.measurement_start_bytes = read_bytes;
        self.measurement_start = now;
    }

    /// The window to offer beyond segment `next`, bytes, while `out_of_order` segments are out of order and `unread` in
    /// order and not read.
    pub(crate) fn advertise(&mut self, next: u64, out_of_order: u64, unread: u64) -> u64 {
        let left_edge = next * self.mss;
        self.rcv_wnd_edge = self.rcv_wnd_edge.max(left_edge + self.window(out_of_order, unread));
        self.rcv_wnd_edge - left_edge
    }

    /// The window that the free buffer allows, bytes. With unread data none that is less than a segment or a sixteenth
    /// of the buffer's (RFC 9293 section 3.8.6.2.2, with Linux's share).
    fn window(&self, out_of_order: u64, unread: u64) -> u64 {
        let free = self.buffer.saturating_sub((out_of_order + unread) * TRUESIZE) / 2;
        if unread > 0 && free < self.mss.max(self.buffer / 2 / 16) {
            return 0;
        }
        free.min(self.rcv_ssthresh) / SCALE * SCALE
    }

    /// Whether reading has opened the window so far that the sender is to be told at once: to twice what it knows of
    /// (Linux `tcp_cleanup_rbuf`). Arguments as for [`advertise`](Self::advertise).
    pub(crate) fn has_opened(&self, next: u64, out_of_order: u64, unread: u64) -> bool {
        let known = self.rcv_wnd_edge.saturating_sub(next * self.mss);
        let window = self.window(out_of_order, unread);
        2 * known <= self.buffer / 2 && window > 0 && window >= 2 * known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_at_most_half_of_the_maximum_buffer() {
        let mut window = ReceiveWindow::new(1448, [131_072, 6_291_456]);
        let (mut next, mut tsecr) = (0, 0);
        for ms in 0..2000u64 {
            next += 1 + ms * 3; // ever faster
            tsecr += 1;
            let now = Instant(ms * 1_000_000 + 50_000_000);
            window.on_data(now, tsecr);
            window.on_read(now, next);
        }
        assert_eq!(window.advertise(next, 0, 0), 3 * 1024 * 1024);
    }

    #[test]
    fn the_edge_never_moves_back() {
        let mut window = ReceiveWindow::new(1448, [131_072, 6_291_456]);
        let first = window.advertise(0, 0, 0);
        assert_eq!(first, 65_160 / 128 * 128);
        assert_eq!(window.advertise(0, 40, 0), first);
    }
}
