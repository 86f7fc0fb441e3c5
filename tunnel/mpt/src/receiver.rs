//! The receiving end of a connection.

use crate::config::ReorderConfig;
use crate::keepalive::{Keepalive, is_control};
use crate::resequencer::{Resequencer, ResequencerCounters};
use crate::sequence::{Sequence, SequenceDecoder};
use units::Instant;
use wire::{Malformed, gre};

/// The content of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A keepalive.
    Keepalive,
    /// An inner packet.
    Packet {
        /// Offset of the packet, which extends to the end of the datagram.
        start: usize,
        /// The low 32 bits of its sequence number; a packet without one is always in order (RFC 2890, section 2.2).
        sequence: Option<u32>,
    },
}

impl Content {
    /// Parses the UDP payload of a datagram.
    ///
    /// # Errors
    /// As [`gre::Header::parse`] and [`Keepalive::parse`]; `Version` for what is neither an IP packet nor a message.
    pub fn parse(datagram: &[u8]) -> Result<Self, Malformed> {
        let (header, payload) = gre::Header::parse(datagram)?;
        if is_control(payload) {
            return Keepalive::parse(payload).map(|_| Self::Keepalive);
        }
        match payload.first().map(|first| first >> 4) {
            Some(4 | 6) => Ok(Self::Packet { start: datagram.len() - payload.len(), sequence: header.sequence }),
            _ => Err(Malformed::Version),
        }
    }
}

/// Delivers packets, put back into order if so configured.
#[derive(Debug)]
pub struct Receiver<P> {
    reorder: Option<(SequenceDecoder, Resequencer<P>)>,
}

impl<P> Receiver<P> {
    /// A receiver that has received nothing. Without `reorder`, packets are delivered as they arrive.
    #[must_use]
    pub fn new(reorder: Option<ReorderConfig>) -> Self {
        let reorder = reorder.map(|config| (SequenceDecoder::new(config.window), Resequencer::new(config)));
        Self { reorder }
    }

    /// A packet arrived. The packets that are in order now are passed to `deliver`.
    pub fn handle(&mut self, now: Instant, sequence: Option<u32>, packet: P, mut deliver: impl FnMut(P)) {
        let (Some((decoder, resequencer)), Some(sequence)) = (&mut self.reorder, sequence) else {
            return deliver(packet);
        };
        let mut deliver = |delivery: crate::Delivery<P>| deliver(delivery.packet);
        match decoder.decode(sequence) {
            Sequence::Number(number) => resequencer.handle(now, number, packet, deliver),
            Sequence::Restart(number) => {
                resequencer.restart(now, number, &mut deliver);
                resequencer.handle(now, number, packet, deliver);
            }
            Sequence::Stale => {}
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.reorder.as_ref().map_or(Instant::NEVER, |(_, resequencer)| resequencer.deadline())
    }

    /// Passes the packets whose timeout has passed to `deliver`.
    pub fn on_timeout(&mut self, now: Instant, mut deliver: impl FnMut(P)) {
        if let Some((_, resequencer)) = &mut self.reorder {
            resequencer.on_timeout(now, |delivery| deliver(delivery.packet));
        }
    }

    /// Counters of the resequencer, if there is one.
    #[must_use]
    pub fn counters(&self) -> Option<&ResequencerCounters> {
        self.reorder.as_ref().map(|(_, resequencer)| resequencer.counters())
    }

    /// Packets in the reorder buffer.
    #[must_use]
    pub fn buffered_packets(&self) -> u64 {
        self.reorder.as_ref().map_or(0, |(_, resequencer)| resequencer.buffered_packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::Span;

    #[test]
    fn packets_are_delivered_in_order_and_those_without_a_number_at_once() {
        let config = ReorderConfig { window: 100, timeout: Span::from_millis(100), deliver_late: false };
        let mut receiver = Receiver::new(Some(config));
        let mut delivered = Vec::new();
        for (packet, sequence) in [(0, Some(0)), (2, Some(2)), (9, None), (1, Some(1))] {
            receiver.handle(Instant::ZERO, sequence, packet, |packet| delivered.push(packet));
        }
        assert_eq!(delivered, [0, 9, 1, 2]);
    }

    /// Checks that the offset of a parsed packet is right, and that a keepalive is encoded to the same.
    fn check(datagram: &[u8]) {
        match Content::parse(datagram) {
            Ok(Content::Packet { start, .. }) => assert!(matches!(datagram[start] >> 4, 4 | 6)),
            Ok(Content::Keepalive) => {
                let (_, payload) = gre::Header::parse(datagram).expect("parsed above");
                let keepalive = Keepalive::parse(payload).expect("parsed above");
                assert_eq!(Keepalive::parse(&keepalive.to_bytes()[4..]), Ok(keepalive));
            }
            Err(_) => {}
        }
    }

    #[test]
    fn the_saved_inputs_of_fuzzing_are_parsed_or_rejected() {
        testing::saved_inputs("gre").iter().for_each(|input| check(input));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_rejected(data in proptest::collection::vec(any::<u8>(), 0..100), message: bool) {
            let start: &[u8] = if message { &[0, 0, 8, 0, 0xa1] } else { &[] };
            check(&[start, &data].concat());
        }
    }
}
