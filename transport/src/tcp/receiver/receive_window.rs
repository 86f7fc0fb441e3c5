//! The receive window and its autotuning (Linux 6.1 `tcp_rcv_space_adjust`, `__tcp_select_window`).
//!
//! The share of the buffer that is window follows the kernel's rule ([`tuning`]). Segments that wait for earlier ones,
//! or for the application to read them, occupy the buffer. Only data that has been read drives the tuning.

use super::ReceiverConfig;
use super::tuning::{self, HALF, window_of};
use control::LinuxRelease;
use std::ops::Range;
use units::{Instant, Span};

/// Maximum value of the window field in a header.
const MAX_FIELD: u64 = 65_535;
/// Maximum shift of window scaling (RFC 7323 section 2.3).
const MAX_SHIFT: u32 = 14;
/// Linux's `net.core.rmem_max`, bytes; window scaling is chosen for at least a buffer of that size.
const RMEM_MAX: u64 = 212_992;

/// The unit in which a connection offers its window, bytes: a power of two, so that 16 bits can express its largest
/// buffer (RFC 7323 section 2.2; Linux `tcp_select_initial_window`).
fn window_unit(max_buffer: u64) -> u64 {
    1 << max_buffer.max(RMEM_MAX).ilog2().saturating_sub(15).min(MAX_SHIFT)
}

/// The first window of a host that has received the SYN, bytes: whole segments, as far as an unscaled field can say (RFC 7323
/// section 2.2; Linux `tcp_select_initial_window`). A window beyond any scaled one is no limit, as at ns-2's sinks.
fn initial_window(mss: u64, buffer: u64) -> u64 {
    let half = buffer / 2;
    let half = if half > mss { half / mss * mss } else { half };
    if half > MAX_FIELD << MAX_SHIFT { half } else { half.min(MAX_FIELD) }
}

/// The data that arrived in order at one instant (Linux `sk_receive_queue`). The application reads it after the last of
/// it.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiveQueue {
    time: Instant,
    /// The segments below have been read; those below `end` have arrived.
    read: u64,
    /// End of the first packet that has not been read.
    first_end: u64,
    end: u64,
    memory: u64,
}

/// A window that the buffer allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selected {
    /// The window, bytes.
    pub(crate) window: u64,
    /// Whether more than half of the buffer is occupied.
    pub(crate) is_half_occupied: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    mss: u64,
    release: LinuxRelease,
    /// Memory of a received packet, bytes.
    truesize: u64,
    /// The share of the buffer that is window, in 256ths.
    ratio: u64,
    /// The unit of the offered window, bytes; a power of two.
    unit: u64,
    buffer: u64,
    max_buffer: u64,
    window_clamp: u64,
    /// Slow start of the advertised window, bytes.
    rcv_ssthresh: u64,
    /// Right edge of the advertised window, which never moves back, bytes.
    rcv_wnd_edge: u64,
    /// The receiver's RTT estimate from timestamps, in eighths of a microsecond.
    rtt_us8: u64,
    last_tsecr: u32,
    /// Start of the measurement of the RTT without timestamps, and the right edge, bytes, whose arrival ends it.
    rtt_start: Option<Instant>,
    rtt_edge: u64,
    /// The current measurement (Linux `rcvq_space`): start, first byte, and the bytes read in the previous one.
    measurement_start: Instant,
    measurement_start_bytes: u64,
    prior_copied: u64,
    queue: ReceiveQueue,
}

impl ReceiveWindow {
    pub(crate) fn new(config: &ReceiverConfig) -> Self {
        let ReceiverConfig { mss, option_bytes, buffer: [buffer, max_buffer], release, .. } = *config;
        let (mss, full_mss) = (u64::from(mss), u64::from(mss + option_bytes));
        let initial_window = initial_window(full_mss, buffer);
        // One segment is reserved until the buffer grows (`tcp_init_buffer_space`).
        let window_clamp = (buffer / 2).saturating_sub(full_mss).max(2 * full_mss);
        let max_buffer = max_buffer.max(buffer);
        Self {
            mss,
            release,
            truesize: tuning::truesize(release, mss),
            ratio: HALF,
            unit: window_unit(max_buffer),
            buffer,
            max_buffer,
            window_clamp,
            rcv_ssthresh: initial_window.min(window_clamp),
            rcv_wnd_edge: initial_window,
            rtt_us8: 0,
            last_tsecr: 0,
            rtt_start: None,
            rtt_edge: 0,
            measurement_start: Instant::ZERO,
            measurement_start_bytes: 0,
            prior_copied: initial_window.min(10 * full_mss),
            queue: ReceiveQueue::default(),
        }
    }

    /// The receiver's RTT estimate; zero before the first sample.
    pub(crate) fn rtt(&self) -> Span {
        Span::from_micros(self.rtt_us8 >> 3)
    }

    /// Begins the first measurement, when the connection is established.
    pub(crate) fn establish(&mut self, now: Instant) {
        if self.measurement_start == Instant::ZERO {
            self.measurement_start = now;
        }
    }

    /// Adds data that arrived in order: the first of `segments`, which may fill a hole before the others. The
    /// application reads it at once, after the last segment of the same instant. `continues` if it arrived in one
    /// packet with the previous segment.
    #[inline]
    pub(crate) fn enqueue(&mut self, now: Instant, segments: Range<u64>, continues: bool) {
        self.finish_reading(now);
        self.queue.time = now;
        let is_first = self.queue.read == self.queue.end;
        if is_first || (continues && self.queue.first_end == self.queue.end) {
            self.queue.first_end = segments.start + 1;
        }
        self.queue.end = segments.end;
        let first = if continues && !is_first { self.mss } else { self.truesize };
        self.queue.memory += first + (segments.end - segments.start - 1) * self.truesize;
    }

    /// True if data arrived at this instant that has not been read yet.
    pub(crate) fn has_unread(&self, now: Instant) -> bool {
        self.queue.time == now
    }

    /// Lets the application read what arrived before this instant.
    #[inline]
    pub(crate) fn finish_reading(&mut self, now: Instant) {
        if self.queue.time < now {
            self.read_received();
        }
    }

    /// Records that the application has read the data of the queue's instant. Linux measures after each packet; if the
    /// first one does not end a measurement, the others do not either.
    fn read_received(&mut self) {
        let ReceiveQueue { time, read, first_end, end, .. } = self.queue;
        if read < end {
            self.on_read(time, first_end);
            self.queue.read = end;
            self.queue.memory = 0;
        }
    }

    /// Handles data that arrived in order, up to segment `next`. `acked` is the acknowledgement last sent.
    #[inline]
    pub(crate) fn on_data(&mut self, now: Instant, next: u64, acked: u64) {
        self.measure_ratio();
        self.measure_window_rtt(now, next * self.mss, acked);
    }

    /// Handles new data, in order or not; `waiting` segments are out of order or not read. Returns whether the window
    /// has grown, which Linux acknowledges at once (`tcp_grow_window`).
    #[inline]
    pub(crate) fn grow(&mut self, now: Instant, waiting: u64) -> bool {
        self.finish_reading(now);
        self.raise_ssthresh(waiting * self.truesize + self.queue.memory)
    }

    /// As [`Self::on_data`] and [`Self::grow`], for an MPTCP connection whose application has read up to segment
    /// `next`. `rtt` is the maximum RTT of its subflows.
    pub(crate) fn on_data_of_subflows(&mut self, now: Instant, next: u64, rtt: Span) {
        self.rtt_us8 = rtt.as_micros() << 3;
        self.measure_ratio();
        self.raise_ssthresh(self.truesize);
        self.on_read(now, next);
    }

    /// Gives a subflow of upstream Linux's MPTCP the connection's buffer, which alone is tuned.
    pub(crate) fn share_buffer(&mut self, connection: &Self) {
        (self.buffer, self.window_clamp, self.ratio) = (connection.buffer, connection.window_clamp, connection.ratio);
        self.measurement_start = Instant::NEVER;
    }

    /// The window that a subflow, whose next segment is `subflow_next`, offers beyond segment `next` of its
    /// `connection`, bytes. Each subflow has its own slow start and never takes back an offer. The farthest edge
    /// applies to all (Linux `mptcp_set_rwin`).
    pub(crate) fn advertise_subflow(
        &mut self,
        connection: &mut Self,
        next: u64,
        out_of_order: u64,
        subflow_next: u64,
    ) -> u64 {
        let (left_edge, subflow_left_edge) = (next * self.mss, subflow_next * self.mss);
        let known = self.in_units(self.rcv_wnd_edge.saturating_sub(subflow_left_edge));
        self.share_buffer(connection);
        let window = self.select(out_of_order, 0, false).window.max(known);
        connection.rcv_wnd_edge = connection.rcv_wnd_edge.max(left_edge + window);
        let window = connection.rcv_wnd_edge - left_edge;
        self.rcv_wnd_edge = subflow_left_edge + window;
        window.min(MAX_FIELD * self.unit)
    }

    /// Raises the window by two segments, as far as the buffer has room in addition to the `occupied` bytes.
    #[inline]
    fn raise_ssthresh(&mut self, occupied: u64) -> bool {
        let space = window_of(self.buffer.saturating_sub(occupied), self.ratio);
        let limit = self.window_clamp.min(space);
        let has_room = self.rcv_ssthresh < limit;
        if has_room {
            self.rcv_ssthresh = (self.rcv_ssthresh + 2 * self.mss).min(limit);
        }
        has_room
    }

    /// Records that the application has read up to segment `read`.
    #[inline]
    pub(crate) fn on_read(&mut self, now: Instant, read: u64) {
        self.adjust_buffer(now, read * self.mss);
    }

    /// Measures the RTT by a segment's timestamp echo. Takes a lower sample as it is, and smooths a higher one (Linux 6.1.192
    /// `tcp_rcv_rtt_update`).
    pub(crate) fn measure_rtt(&mut self, now: Instant, tsecr: u32) {
        if tsecr == 0 || tsecr == self.last_tsecr {
            return;
        }
        self.last_tsecr = tsecr;
        let sample_us = u64::from(crate::tcp::timestamp(now).saturating_sub(tsecr)).max(1) * 1000;
        let is_lowest = self.rtt_us8 == 0 || sample_us << 3 < self.rtt_us8;
        self.rtt_us8 = if is_lowest { sample_us << 3 } else { self.rtt_us8 - (self.rtt_us8 >> 3) + sample_us };
    }

    /// Measures how long the sender takes to fill the window, which is at least an RTT: lower samples count (Linux
    /// `tcp_rcv_rtt_measure`). `arrived` is the end of the data, bytes.
    #[inline]
    fn measure_window_rtt(&mut self, now: Instant, arrived: u64, acked: u64) {
        if let Some(start) = self.rtt_start {
            if arrived < self.rtt_edge {
                return;
            }
            let sample = now.since(start).as_micros().max(1) << 3;
            if self.rtt_us8 == 0 || sample < self.rtt_us8 {
                self.rtt_us8 = sample;
            }
        }
        self.rtt_start = Some(now);
        self.rtt_edge = arrived + self.offered(acked);
    }

    /// Measures on the first packet which share of its memory is payload (Linux `tcp_measure_rcv_mss`).
    #[inline]
    fn measure_ratio(&mut self) {
        let ratio = tuning::ratio(self.release, self.mss);
        if ratio != self.ratio {
            self.ratio = ratio;
            self.window_clamp = window_of(self.buffer, ratio);
        }
    }

    /// Adjusts the buffer once per RTT: if the application read more than in the previous RTT, it grows to twice that.
    fn adjust_buffer(&mut self, now: Instant, read_bytes: u64) {
        if self.rtt_us8 > 0 && now.since(self.measurement_start) >= self.rtt() {
            self.grow_buffer(now, read_bytes);
        }
    }

    #[inline(never)]
    fn grow_buffer(&mut self, now: Instant, read_bytes: u64) {
        let copied = read_bytes - self.measurement_start_bytes;
        if copied > self.prior_copied {
            let buffer =
                tuning::buffer(self.release, self.mss, self.ratio, copied, self.prior_copied).min(self.max_buffer);
            if buffer > self.buffer {
                self.buffer = buffer;
                self.window_clamp = window_of(buffer, self.ratio);
            }
            self.prior_copied = copied;
        }
        self.measurement_start_bytes = read_bytes;
        self.measurement_start = now;
    }

    /// Offers a window beyond segment `next`, bytes; an offer is never taken back. Returns the window with what remains of
    /// the latest offer.
    pub(crate) fn advertise(&mut self, next: u64, window: u64) -> u64 {
        let left_edge = next * self.mss;
        let known = self.in_units(self.rcv_wnd_edge.saturating_sub(left_edge));
        let window = window.max(known);
        self.rcv_wnd_edge = left_edge + window;
        window
    }

    /// The window that was offered beyond the acknowledged segment, bytes.
    pub(crate) fn offered(&self, acked: u64) -> u64 {
        self.rcv_wnd_edge.saturating_sub(acked * self.mss)
    }

    /// The right edge of the offered window, bytes.
    pub(crate) fn edge(&self) -> u64 {
        self.rcv_wnd_edge
    }

    /// The window that the buffer allows while `out_of_order` segments are out of order and `unread` segments are in order
    /// but not read. `before_reading` if the application has not read the latest data yet.
    pub(crate) fn select(&self, out_of_order: u64, unread: u64, before_reading: bool) -> Selected {
        let queued = if before_reading { self.queue.memory } else { 0 };
        self.selected((out_of_order + unread) * self.truesize + queued)
    }

    /// The window that the buffer allows while `occupied` bytes of it are in use. If that is more than half of it, the
    /// window is zero if it would be less than a segment or a sixteenth of the buffer's window (RFC 9293 section
    /// 3.8.6.2.2, with Linux's fraction).
    fn selected(&self, occupied: u64) -> Selected {
        let (free, allowed) =
            (window_of(self.buffer.saturating_sub(occupied), self.ratio), window_of(self.buffer, self.ratio));
        let most = self.window_clamp.min(allowed);
        if free >= most / 2 {
            let window = self.in_units(free.min(self.rcv_ssthresh));
            return Selected { window, is_half_occupied: false };
        }
        // Scaling is not to raise what is free.
        let free = free & !(self.unit - 1);
        let is_closed = free < allowed / 16 || free < self.mss.min(most);
        let window = if is_closed { 0 } else { self.in_units(free.min(self.rcv_ssthresh)) };
        Selected { window, is_half_occupied: true }
    }

    /// Rounded up to whole units.
    fn in_units(&self, window: u64) -> u64 {
        (window + self.unit - 1) & !(self.unit - 1)
    }

    /// Whether reading has opened the window so far that the sender should be told at once: to twice the advertised
    /// window (Linux `tcp_cleanup_rbuf`). Arguments as for [`select`](Self::select).
    pub(crate) fn has_opened(&self, next: u64, out_of_order: u64, unread: u64) -> bool {
        let known = self.offered(next);
        2 * known <= self.window_clamp && {
            let window = self.select(out_of_order, unread, false).window;
            window > 0 && window >= 2 * known
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::Ecn;

    /// A window for segments of 1448 bytes.
    fn receive_window(buffer: [u64; 2], release: LinuxRelease) -> ReceiveWindow {
        ReceiveWindow::new(&ReceiverConfig {
            mss: 1448,
            option_bytes: 0,
            timestamps: true,
            sack: true,
            quick_ack: false,
            gro: 1,
            buffer,
            release,
            ecn: Ecn::Classic,
            tick: Span::from_millis(1),
        })
    }

    /// The greatest window of a receiver with these buffers, to which data comes ever faster.
    fn greatest_window(buffer: [u64; 2], release: LinuxRelease) -> u64 {
        let mut window = receive_window(buffer, release);
        let (mut next, mut tsecr) = (0, 0);
        for ms in 0..2000u64 {
            next += 1 + ms * 3; // ever faster
            tsecr += 1;
            let now = Instant(ms * 1_000_000 + 50_000_000);
            window.measure_rtt(now, tsecr);
            window.on_data(now, next, 0);
            window.grow(now, 0);
            window.on_read(now, next);
        }
        let selected = window.select(0, 0, false).window;
        window.advertise(next, selected)
    }

    #[test]
    fn the_window_of_linux_6_1_is_at_most_half_of_the_maximum_buffer() {
        assert_eq!(greatest_window([131_072, 6_291_456], LinuxRelease::V6_1), 3 * 1024 * 1024);
    }

    /// A public measurement (github.com/acooks/jittertrap): `SO_RCVBUF` of 262144 bytes, which the kernel doubles, and segments
    /// of 1448 bytes.
    #[test]
    fn the_window_since_linux_6_5_is_the_payloads_share_of_the_buffer() {
        for release in [LinuxRelease::V6_12, LinuxRelease::V6_18] {
            assert_eq!(greatest_window([524_288; 2], release), 313_344);
        }
        let half = greatest_window([524_288; 2], LinuxRelease::V6_1);
        assert_eq!(half, 262_144u64.saturating_sub(1448).next_multiple_of(16), "a segment is reserved");
    }

    /// The shifts that Linux shows for these largest buffers (`tcp_rmem[2]`), from RFC 7323 and the kernel's rule.
    #[test]
    fn the_unit_of_the_window_follows_from_the_largest_buffer() {
        const KIB: u64 = 1 << 10;
        for (buffer, shift) in [(64 * KIB, 2), (6144 * KIB, 7), (16_384 * KIB, 9), (524_288 * KIB, 14), (1 << 40, 14)] {
            assert_eq!(window_unit(buffer), 1 << shift, "{buffer} bytes");
        }
    }

    /// `cargo xtask kernel-drill --side receiver` on Linux 6.1.192: a buffer of 1 MiB offers 65535 bytes at first.
    #[test]
    fn the_first_window_fits_an_unscaled_field() {
        let buffers = [2860, 65_536, 131_072, 1 << 20, 1 << 40];
        let windows = buffers.map(|buffer| initial_window(1448, buffer));
        assert_eq!(windows, [1430, 22 * 1448, 45 * 1448, 65_535, (1 << 39) / 1448 * 1448]);
    }

    #[test]
    fn the_edge_never_moves_back() {
        let mut window = receive_window([131_072, 6_291_456], LinuxRelease::V6_1);
        let offer = |window: &mut ReceiveWindow, out_of_order| {
            let selected = window.select(out_of_order, 0, false).window;
            window.advertise(0, selected)
        };
        let first = offer(&mut window, 0);
        assert_eq!(first, 65_280, "45 segments of 1448 bytes, as in a SYN-ACK of Linux, rounded up to 128");
        assert_eq!(offer(&mut window, 40), first);
    }
}
