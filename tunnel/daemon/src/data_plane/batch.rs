//! A batch of datagrams that one system call sends (UDP GSO).

use super::address::PathAddress;

/// The largest batch, bytes: the largest payload of UDP over IPv4.
pub(super) const MAX_BYTES: usize = 65_507;
/// Bytes allocated for a batch: a single datagram may be larger than a batch of several.
const CAPACITY: usize = 1 << 16;
/// Maximum number of datagrams of one batch (Linux `UDP_MAX_SEGMENTS`; newer kernels take 128).
pub(super) const MAX_SEGMENTS: usize = 64;
/// Maximum padding of a datagram, bytes. A packet's fragments have equal lengths, except that the last one is shorter
/// by less than the number of fragments.
const MAX_PADDING: usize = 64;

/// Datagrams of equal size, destination and TOS. The last one may be shorter.
#[derive(Debug)]
pub(super) struct TransmitBatch {
    bytes: Box<[u8]>,
    len: usize,
    segment_size: usize,
    tos: u8,
    /// Whether a shorter datagram has ended the batch.
    is_closed: bool,
    address: PathAddress,
}

impl TransmitBatch {
    /// An empty batch to `address`.
    pub(super) fn new(address: PathAddress) -> Self {
        let bytes = vec![0; CAPACITY].into();
        Self { bytes, len: 0, segment_size: 0, tos: 0, is_closed: false, address }
    }

    /// Whether a datagram of `len` bytes can be added.
    pub(super) fn fits(&self, len: usize, tos: u8) -> bool {
        self.is_empty()
            || !self.is_closed
                && self.tos == tos
                && len <= self.segment_size
                && self.len + len <= MAX_BYTES
                && self.len < MAX_SEGMENTS * self.segment_size
    }

    /// The length to which a datagram of `len` bytes is padded, so that one a few bytes shorter does not end the batch.
    pub(super) fn padded_len(&self, len: usize) -> usize {
        let is_slightly_shorter =
            !self.is_empty() && len <= self.segment_size && self.segment_size - len <= MAX_PADDING;
        if is_slightly_shorter { self.segment_size } else { len }
    }

    /// Adds a datagram of at most `max_len` bytes, which must [fit](Self::fits). `write` fills it in and returns its
    /// length; 0 adds none.
    ///
    /// # Panics
    /// If `max_len` exceeds the payload of a UDP datagram.
    pub(super) fn push(&mut self, max_len: usize, tos: u8, write: impl FnOnce(&mut [u8]) -> usize) {
        debug_assert!(self.fits(max_len, tos));
        let len = write(&mut self.bytes[self.len..self.len + max_len]);
        if self.is_empty() {
            (self.segment_size, self.tos) = (len, tos);
        }
        self.is_closed = len < self.segment_size;
        self.len += len;
    }

    /// Empties the batch and sets its destination.
    pub(super) fn reset(&mut self, address: PathAddress) {
        (self.len, self.is_closed, self.address) = (0, false, address);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All datagrams, concatenated.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Bytes of each datagram except the last (`gso_size`).
    pub(super) fn segment_size(&self) -> usize {
        self.segment_size
    }

    /// The TOS or traffic class byte of all datagrams.
    pub(super) fn tos(&self) -> u8 {
        self.tos
    }

    pub(super) fn address(&self) -> &PathAddress {
        &self.address
    }

    /// The number of datagrams from byte `start` on.
    pub(super) fn datagrams_from(&self, start: usize) -> usize {
        (self.len - start).div_ceil(self.segment_size.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> TransmitBatch {
        TransmitBatch::new(PathAddress::to_remote(([127, 0, 0, 1], 9).into()))
    }

    #[test]
    fn a_batch_holds_64_equal_datagrams_and_one_shorter_ends_it() {
        let mut many = batch();
        (0..64).for_each(|_| many.push(1000, 2, |_| 1000));
        assert!(!many.fits(1000, 2), "64 is the maximum");
        let mut short = batch();
        short.push(1000, 2, |_| 1000);
        assert!(!short.fits(1001, 2), "larger than the first");
        assert!(!short.fits(1000, 3), "another TOS");
        short.push(1000, 2, |_| 999);
        assert!(!short.fits(999, 2), "a shorter one was the last");
        assert_eq!((short.datagrams_from(0), short.datagrams_from(1000)), (2, 1));
    }

    #[test]
    fn a_batch_ends_before_udp_does() {
        let mut large = batch();
        (0..7).for_each(|_| large.push(9000, 0, |_| 9000));
        assert!(!large.fits(9000, 0), "72000 bytes are more than a datagram of UDP");
        assert!(large.fits(2000, 0), "65000 bytes are allowed");
    }

    #[test]
    fn a_datagram_a_few_bytes_short_is_padded_so_that_the_batch_continues() {
        let mut batch = batch();
        assert_eq!(batch.padded_len(1000), 1000, "a lone one need not be");
        batch.push(1000, 0, |_| 1000);
        assert_eq!([1000, 999, 936, 935, 1001].map(|len| batch.padded_len(len)), [1000, 1000, 1000, 935, 1001]);
    }
}
