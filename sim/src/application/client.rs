//! A client that asks, receives the answer, thinks, and asks again, as a browser does with one connection.
//!
//! A request is a packet on the way back, with what it meets there: queue, loss, delay. It opens the connection if there
//! is none yet: it then stands for the client's SYN, the sender's SYN is the server's answer to it, and the handshake's
//! acknowledgement brings the request proper, so that a first byte takes two round trips. It carries the client's
//! acknowledgement, and the client repeats it until something of the answer arrives.

use crate::distribution::Distribution;
use scenario::model::Requests;
use transport::recovery::RoundTrip;
use transport::tcp::{Ack, Kind, Segment};
use units::{Instant, Stream};

/// The client's end of a flow of requests.
#[derive(Debug)]
pub(crate) struct Client {
    model: Requests,
    luck: Stream,
    state: State,
    /// Number of the present request, from 1.
    number: u32,
    /// Requests that have reached the server.
    served: u32,
    asked: Instant,
    /// The acknowledgement on board of the request.
    carried: Option<Ack>,
    round_trip: RoundTrip,
    /// From a request to the last byte of its answer.
    pub times: Distribution,
}

/// What the client is doing.
#[derive(Clone, Copy, Debug)]
enum State {
    Thinking {
        until: Instant,
    },
    /// Nothing of the answer is there yet.
    Waiting {
        sent: Instant,
        tries: u32,
    },
    Receiving,
    Gone,
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A new request.
    New,
    /// The present one, once more.
    Again,
}

impl Client {
    pub(super) fn new(model: Requests, start: Instant, luck: Stream) -> Self {
        Self {
            model,
            luck,
            state: State::Thinking { until: start },
            number: 0,
            served: 0,
            asked: start,
            carried: None,
            round_trip: RoundTrip::default(),
            times: Distribution::default(),
        }
    }

    /// When it will send something, if nothing arrives.
    pub(crate) fn deadline(&self) -> Instant {
        match self.state {
            State::Thinking { until } => until,
            State::Waiting { sent, tries } => sent + self.round_trip.timeout() * (1 << (tries - 1).min(6)),
            State::Receiving | State::Gone => Instant::NEVER,
        }
    }

    /// What it sends now.
    pub(crate) fn wake(&mut self, now: Instant) -> Option<Ask> {
        if self.deadline() > now {
            return None;
        }
        let (ask, tries) = match self.state {
            State::Waiting { tries, .. } => (Ask::Again, tries + 1),
            _ => (Ask::New, 1),
        };
        if ask == Ask::New {
            self.number += 1;
            self.asked = now;
        }
        self.state = State::Waiting { sent: now, tries };
        Some(ask)
    }

    /// The present request's number.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The present request opens a connection of its own.
    pub(crate) fn reconnects(&self) -> bool {
        self.model.new_connections && self.number > 1
    }

    /// The size of the next answer, at least a byte.
    pub(crate) fn draw_size(&mut self) -> u64 {
        self.model.next_size(&mut self.luck)
    }

    /// What the present request carries.
    pub(crate) fn carry(&mut self, ack: Option<Ack>) {
        self.carried = ack;
    }

    /// A request reaches the server: the acknowledgement on board, if the request is new there.
    pub(crate) fn serve(&mut self, number: u32) -> Option<Option<Ack>> {
        if number <= self.served {
            return None;
        }
        self.served = number;
        Some(self.carried)
    }

    /// A segment arrives; `first` is the answer's first.
    #[inline]
    pub(crate) fn hear(&mut self, now: Instant, segment: &Segment, first: u64) {
        let State::Waiting { sent, tries } = self.state else { return };
        let answers = match segment.kind {
            Kind::Data => segment.seq >= first,
            Kind::Syn => first == 0,
            Kind::HandshakeAck => false,
        };
        if answers {
            if tries == 1 {
                let number = u64::from(self.number);
                self.round_trip.add(now.since(sent), number, number);
            }
            self.state = State::Receiving;
        }
    }

    /// The answer is complete.
    pub(crate) fn finish(&mut self, now: Instant) {
        if matches!(self.state, State::Receiving) {
            self.times.add(now.since(self.asked));
            self.state = State::Thinking { until: now + self.model.next_think(&mut self.luck) };
        }
    }

    /// It asks no more.
    pub(crate) fn leave(&mut self) {
        self.state = State::Gone;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::model::Draw;
    use units::Span;

    fn client() -> Client {
        let model = Requests { size: Draw::Fixed(5000.0), think: Draw::Fixed(2e6), new_connections: false };
        Client::new(model, Instant(1_000_000), Stream::named(1, "client"))
    }

    fn data(seq: u64) -> Segment {
        Segment { kind: Kind::Data, seq, timestamp: 0, echo: 0, reduced: false, retransmission: false }
    }

    #[test]
    fn it_asks_again_until_it_hears_of_the_answer_and_thinks_after_it() {
        let mut client = client();
        let ms = |ms: u64| Instant::ZERO + Span::from_millis(ms);
        assert_eq!((client.wake(ms(0)), client.wake(ms(1)), client.wake(ms(1))), (None, Some(Ask::New), None));
        // RFC 6298: a second, then doubled.
        assert_eq!((client.deadline(), client.wake(ms(1001))), (ms(1001), Some(Ask::Again)));
        assert_eq!(client.deadline(), ms(3001));
        client.hear(ms(1100), &data(6), 7);
        assert_eq!(client.deadline(), ms(3001), "that was a retransmission of the answer before");
        client.hear(ms(1100), &data(9), 7);
        client.finish(ms(1200));
        assert_eq!((client.deadline(), client.number()), (ms(1202), 1));
        assert_eq!(client.times.summary().max, 1199.0);
    }

    #[test]
    fn a_request_is_served_once() {
        let mut client = client();
        client.wake(client.deadline());
        assert_eq!((client.serve(1), client.serve(1)), (Some(None), None));
    }
}
