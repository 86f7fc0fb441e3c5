//! The send buffer. In upstream Linux the application's data is in page fragments (`mptcp_data_frag`). The buffer is
//! filled beyond its size up to the end of a fragment, and each fragment goes to one subflow. An application that has
//! filled the buffer waits until a third of it is free (`sk_stream_is_writeable`). Its size follows the subflows' own
//! buffers, so that the share of a slow subflow blocks the others.

use super::{MptcpStack, SendBufferRule, Sender, SubflowState};
use schedule::Fill;
use std::collections::VecDeque;
use units::{Instant, Span};

/// Size of a page from which fragments are cut, bytes (`SKB_FRAG_PAGE_ORDER`).
const PAGE: u64 = 32 << 10;
/// Bytes of the page that a fragment takes in addition to its data (`struct mptcp_data_frag`).
const FRAGMENT_OVERHEAD: u64 = 40;
/// Minimum room of a page for another fragment (`mptcp_page_frag_refill`).
const MIN_FRAGMENT: u64 = FRAGMENT_OVERHEAD + 32;
/// Bytes that an application with more data writes at once, like iperf3; a write begins a fragment.
const WRITE_BYTES: u64 = 128 << 10;
/// Time from the acknowledgement that makes room until the application writes. All other events of the same instant
/// come first.
const WAKE_UP: Span = Span::from_micros(1);

/// A fragment that is not yet completely assigned.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    /// The first segment beyond the fragment.
    end: u64,
    bytes: u32,
}

/// The data that the application has written.
#[derive(Clone, Debug, Default)]
pub(super) struct SendBuffer {
    fragments: VecDeque<Fragment>,
    /// The first segment that is not yet written.
    end: u64,
    /// Bytes written.
    written: u64,
    /// Offset in the page of the next fragment.
    page_offset: u64,
    /// Size, bytes (`sk_sndbuf`).
    size: u64,
    /// Whether a subflow's own buffer has grown, or a subflow has come or gone, since the size was set.
    is_size_outdated: bool,
    /// Set while the application waits for memory: [`Instant::NEVER`] while there is too little, or the time at which
    /// it runs again.
    blocked_until: Option<Instant>,
}

impl SendBuffer {
    /// Called when a subflow has come or gone; the size changes with the next acknowledgement.
    pub(super) fn on_membership_change(&mut self) {
        self.is_size_outdated = true;
    }

    /// The first segment that is not yet written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// True if the application waits for memory.
    pub(super) fn is_full(&self) -> bool {
        self.blocked_until.is_some()
    }

    /// Time at which the application continues to write.
    pub(super) fn deadline(&self) -> Instant {
        self.blocked_until.unwrap_or(Instant::NEVER)
    }

    /// Adds a fragment, up to the end of a write, of a page, or of the data.
    fn add_fragment(&mut self, mss: u64, write_seq: u64) {
        if self.page_offset + MIN_FRAGMENT > PAGE {
            self.page_offset = 0;
        }
        let room = (PAGE - self.page_offset - FRAGMENT_OVERHEAD).max(mss);
        let unwritten = write_seq.saturating_mul(mss) - self.written;
        let bytes = room.min(WRITE_BYTES - self.written % WRITE_BYTES).min(unwritten);
        self.page_offset += FRAGMENT_OVERHEAD + bytes.next_multiple_of(8);
        self.written += bytes;
        self.end = self.written.div_ceil(mss);
        self.fragments.push_back(Fragment { end: self.end, bytes: bytes as u32 });
    }
}

impl Sender {
    /// Lets the application write as much as the send buffer holds.
    pub(super) fn fill_send_buffer(&mut self, now: Instant) {
        let (snd_una, mss) = (self.queue.snd_una(), u64::from(self.config.tcp.mss));
        if self.config.stack == MptcpStack::OutOfTree {
            self.send_buffer.end = self.send_buffer.end.max(snd_una + self.config.tcp.send_buffer_segments());
            return;
        }
        self.send_buffer.blocked_until.take_if(|time| *time <= now);
        if self.send_buffer.blocked_until.is_some() {
            return;
        }
        let write_seq = self.queue.write_seq();
        let buffer = &mut self.send_buffer;
        let size = buffer.size.max(self.config.tcp.initial_send_buffer);
        while buffer.end < write_seq {
            if (buffer.end - snd_una) * mss >= size {
                buffer.blocked_until = Some(Instant::NEVER);
                return;
            }
            buffer.add_fragment(mss, write_seq);
        }
    }

    /// Enlarges the connection's send buffer as those of its subflows grow.
    fn update_send_buffer_size(&mut self) {
        let up_subflows = self.subflows.iter().filter(|subflow| subflow.state == SubflowState::Up);
        let buffers = up_subflows.map(|subflow| subflow.sender.send_buffer_bytes());
        let size = match self.config.send_buffer {
            SendBufferRule::Sum => buffers.sum(),
            SendBufferRule::Largest => buffers.max().unwrap_or(0),
        };
        self.send_buffer.is_size_outdated = false;
        self.send_buffer.size = size.min(self.config.tcp.send_buffer_segments() * u64::from(self.config.tcp.mss));
    }

    /// Bytes written and not acknowledged.
    fn buffered_bytes(&self) -> u64 {
        self.send_buffer.end.saturating_sub(self.queue.snd_una()) * u64::from(self.config.tcp.mss)
    }

    /// Called when the SYN-ACK of a subflow has arrived. For all but the first, the application writes if anything is
    /// free.
    pub(super) fn on_new_subflow(&mut self, now: Instant, index: usize) {
        self.subflows[index].sender.enlarge_send_buffer();
        if index > 0 {
            self.update_send_buffer_size();
            if self.buffered_bytes() < self.send_buffer.size {
                self.wake_writer(now);
            }
        }
    }

    fn wake_writer(&mut self, now: Instant) {
        if self.send_buffer.blocked_until == Some(Instant::NEVER) {
            self.send_buffer.blocked_until = Some(now + WAKE_UP);
        }
    }

    /// Called when a subflow has sent what an acknowledgement allows. Its send buffer may grow, and an application that
    /// waits for memory may continue (`tcp_check_space`).
    pub(super) fn check_space(&mut self, now: Instant, index: usize) {
        let sender = &mut self.subflows[index].sender;
        let prior_bytes = sender.send_buffer_bytes();
        sender.enlarge_send_buffer();
        self.send_buffer.is_size_outdated |= sender.send_buffer_bytes() != prior_bytes;
        if self.config.stack == MptcpStack::OutOfTree {
            return; // its buffer has a fixed size, and the application does not wait
        }
        if self.send_buffer.is_size_outdated {
            self.update_send_buffer_size();
        }
        let used = self.buffered_bytes();
        if self.send_buffer.size.saturating_sub(used) >= used / 2 {
            self.wake_writer(now);
        }
    }

    /// The end of the data that go to one subflow together: a fragment or a segment.
    pub(super) fn fragment_end(&mut self) -> u64 {
        let snd_nxt = self.queue.snd_nxt();
        let fragments = &mut self.send_buffer.fragments;
        while fragments.front().is_some_and(|fragment| fragment.end <= snd_nxt) {
            fragments.pop_front();
        }
        let fragment = fragments.front().filter(|_| self.fill == Fill::SendBuffer);
        fragment.map_or(snd_nxt + 1, |fragment| fragment.end)
    }

    /// Bytes of these data.
    pub(super) fn fragment_bytes(&mut self) -> u32 {
        if self.fill == Fill::Cwnd {
            return self.config.tcp.mss;
        }
        let left = (self.fragment_end() - self.queue.snd_nxt()) as u32 * self.config.tcp.mss;
        let is_whole = |fragment: &&Fragment| left.abs_diff(fragment.bytes) < self.config.tcp.mss;
        self.send_buffer.fragments.front().filter(is_whole).map_or(left, |fragment| fragment.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As captures of Linux 6.1 show: a page less 40 bytes, and what is left of a write of 128 KiB; the next write goes on in
    /// that page.
    #[test]
    fn fragments_end_with_a_page_and_with_a_write() {
        let mut buffer = SendBuffer::default();
        (0..12).for_each(|_| buffer.add_fragment(1424, u64::MAX));
        let bytes: Vec<u32> = buffer.fragments.iter().map(|fragment| fragment.bytes).collect();
        let (page, rest) = (32_728, 32_728 - 160 - 40);
        assert_eq!(bytes, [page, page, page, page, 160, rest, page, page, page, 360, 32_328, page]);
        assert_eq!(buffer.fragments[0].end, 23, "22 segments of 1424 bytes and one of 1400");
    }

    #[test]
    fn the_last_fragment_ends_with_the_data() {
        let mut buffer = SendBuffer::default();
        (0..2).for_each(|_| buffer.add_fragment(1000, 40));
        assert_eq!((buffer.end, buffer.written), (40, 40_000));
    }
}
