//! UDP at a constant rate.

use crate::packet::Body;
use crate::protocol::{Arrival, Counters, End, Host, Protocol, SenderCounters};
use link::EcnField;
use record::{Distribution, Flow, Gaps};
use units::{Instant, Rate, Span};

/// Both ends of a UDP flow of constant rate.
#[derive(Debug)]
pub(crate) struct Udp {
    /// Size of a datagram from the IP header on, bytes.
    packet: u32,
    interval: Span,
    sent: u64,
    received: u64,
    delay: Distribution,
    /// The gaps between its datagrams' arrivals.
    gaps: ArrivalGaps,
}

impl Udp {
    /// A flow of datagrams of `packet` bytes, with their IP and UDP headers.
    pub(crate) fn new(rate: Rate, packet: u32) -> Self {
        Self {
            packet,
            interval: rate.time_for(u64::from(packet)),
            sent: 0,
            received: 0,
            delay: Distribution::default(),
            gaps: ArrivalGaps::default(),
        }
    }

    fn delivered_bytes(&self) -> u64 {
        self.received * u64::from(self.packet)
    }
}

impl Protocol for Udp {
    fn wake(&mut self, end: End, host: &mut Host<'_>) {
        if end == End::Receiver || host.now() >= host.stop {
            return;
        }
        let body = Body::Udp { sent: host.now(), number: self.sent };
        self.sent += 1;
        host.send(end, body, 0, host.route, self.packet, EcnField::NotEct);
        host.wake_at(end, host.now() + self.interval);
    }

    fn receive(&mut self, _end: End, arrival: Arrival, host: &mut Host<'_>) {
        let &Body::Udp { sent, number } = host.body(arrival) else { return };
        host.network.delivered_data_packets += 1;
        self.received += 1;
        self.delay.add(host.now().since(sent));
        self.gaps.on_arrival(host.now(), number);
    }

    fn counters(&self) -> Counters {
        let bytes = self.delivered_bytes();
        let sender = SenderCounters { sent: self.sent, ..SenderCounters::default() };
        Counters { delivered_bytes: bytes, arrived_bytes: bytes, sender, ..Counters::default() }
    }

    fn record(&self, _start: Instant, end: Instant, flow: Flow) -> Flow {
        Flow {
            protocol: record::Protocol::Udp,
            one_way_delay_ms: Some(self.delay.summary()),
            gaps: Some(Gaps {
                longest_gap_ms: self.gaps.longest(end).as_millis_f64(),
                longest_loss_packets: self.gaps.longest_loss(),
            }),
            ..flow
        }
    }

    fn distributions(&self) -> Vec<(&'static str, &Distribution)> {
        vec![("one_way_delay_ms", &self.delay)]
    }

    fn leave_out_distributions(&mut self) {
        self.delay.turn_off();
    }
}

/// Gaps at the receiver of a UDP flow. A datagram that later ones have overtaken counts as lost: an application that plays
/// data on arrival has moved on.
#[derive(Debug, Default)]
struct ArrivalGaps {
    latest: Option<Instant>,
    /// The datagram that follows the newest one that arrived.
    next: u64,
    longest: Span,
    longest_loss: u64,
}

impl ArrivalGaps {
    /// Called when datagram `number`, counted from zero, has arrived.
    fn on_arrival(&mut self, now: Instant, number: u64) {
        self.longest = self.longest(now);
        self.latest = Some(now);
        if number >= self.next {
            self.longest_loss = self.longest_loss.max(number - self.next);
            self.next = number + 1;
        }
    }

    /// The longest time between two arrivals, or from the latest until `end`; zero before the first.
    fn longest(&self, end: Instant) -> Span {
        self.longest.max(self.latest.map_or(Span::ZERO, |latest| end.since(latest)))
    }

    /// The greatest number of datagrams in a row that had not arrived when a later one did.
    fn longest_loss(&self) -> u64 {
        self.longest_loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_between_arrivals_and_what_is_overtaken_is_lost() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut gaps = ArrivalGaps::default();
        assert_eq!((gaps.longest(at(500)), gaps.longest_loss()), (Span::ZERO, 0), "none before the first arrival");
        for (ms, number) in [(520, 0), (540, 1), (620, 4), (621, 2), (622, 3), (640, 5)] {
            gaps.on_arrival(at(ms), number);
        }
        assert_eq!((gaps.longest(at(650)), gaps.longest_loss()), (Span::from_millis(80), 2));
        assert_eq!(gaps.longest(at(790)), Span::from_millis(150), "the flow was on until then");
    }
}
