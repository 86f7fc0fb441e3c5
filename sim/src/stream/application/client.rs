//! A client that sends a request, receives the response, pauses, and sends the next, as a browser does on one
//! connection.
//!
//! A request is a packet in the reverse direction, subject to queueing, loss and delay there. If there is no connection
//! yet it stands for the client's SYN, the sender's SYN for the server's SYN/ACK, and the handshake's acknowledgement
//! carries the request proper, so that the first byte takes two round trips. A request carries the client's
//! acknowledgement, and the client retransmits it until a segment of the response arrives. Over MPTCP it takes the first
//! subflow that is up, and with each retransmission the next one, on which later requests stay.

use record::Distribution;
use scenario::model::Requests;
use transport::recovery::RttEstimator;
use transport::tcp::SegmentKind;
use units::{Instant, RngStream};

/// The client of a flow of requests.
#[derive(Debug)]
pub(crate) struct Client {
    model: Requests,
    rng: RngStream,
    state: State,
    /// Number of the current request, from 1.
    request_number: u32,
    /// Retransmissions of all requests so far.
    retransmissions: u32,
    /// Number of requests that have reached the server.
    served: u32,
    /// Time of the first transmission of the current request.
    requested_at: Instant,
    rtt: RttEstimator,
    /// Times from each request to the last byte of its response.
    pub times: Distribution,
}

/// The client's state.
#[derive(Clone, Copy, Debug)]
enum State {
    Pausing {
        end: Instant,
    },
    /// A request has been sent, and nothing of the response has arrived.
    Waiting {
        sent: Instant,
        attempts: u32,
    },
    Receiving,
    Stopped,
}

/// A request to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A new request.
    New,
    /// The current request again.
    Retry,
}

impl Client {
    pub(super) fn new(model: Requests, start: Instant, rng: RngStream) -> Self {
        Self {
            model,
            rng,
            state: State::Pausing { end: start },
            request_number: 0,
            retransmissions: 0,
            served: 0,
            requested_at: start,
            rtt: RttEstimator::default(),
            times: Distribution::default(),
        }
    }

    /// The next time at which the client sends if nothing arrives.
    pub(crate) fn deadline(&self) -> Instant {
        match self.state {
            State::Pausing { end } => end,
            State::Waiting { sent, attempts } => sent + self.rtt.rto() * (1 << (attempts - 1).min(6)),
            State::Receiving | State::Stopped => Instant::NEVER,
        }
    }

    /// The request that the client sends now, if one is due.
    pub(crate) fn wake(&mut self, now: Instant) -> Option<RequestKind> {
        if self.deadline() > now {
            return None;
        }
        let (kind, attempts) = match self.state {
            State::Waiting { attempts, .. } => (RequestKind::Retry, attempts + 1),
            _ => (RequestKind::New, 1),
        };
        self.retransmissions += u32::from(kind == RequestKind::Retry);
        if kind == RequestKind::New {
            self.request_number += 1;
            self.requested_at = now;
        }
        self.state = State::Waiting { sent: now, attempts };
        Some(kind)
    }

    /// The current request's number.
    pub(crate) fn request_number(&self) -> u32 {
        self.request_number
    }

    /// Retransmissions of all requests so far.
    pub(crate) fn retransmissions(&self) -> u32 {
        self.retransmissions
    }

    /// Whether the current request opens a new connection.
    pub(crate) fn reconnects(&self) -> bool {
        self.model.new_connections && self.request_number > 1
    }

    /// Draws the size of the next response, bytes, at least one.
    pub(crate) fn draw_size(&mut self) -> u64 {
        self.model.next_size(&mut self.rng)
    }

    /// Called when a request reaches the server. Returns whether it is new.
    pub(crate) fn serve(&mut self, request_number: u32) -> bool {
        let is_new = request_number > self.served;
        self.served = self.served.max(request_number);
        is_new
    }

    /// Called when a segment with this number in the stream arrives; the response begins with `first_segment`.
    #[inline]
    pub(crate) fn on_segment(&mut self, now: Instant, kind: SegmentKind, number: u64, first_segment: u64) {
        let State::Waiting { sent, attempts } = self.state else { return };
        let is_response = match kind {
            SegmentKind::Data => number >= first_segment,
            SegmentKind::Syn => first_segment == 0,
            SegmentKind::HandshakeAck | SegmentKind::WindowProbe => false,
        };
        if is_response {
            if attempts == 1 {
                let packet_number = u64::from(self.request_number);
                self.rtt.update(now.since(sent), packet_number, packet_number);
            }
            self.state = State::Receiving;
        }
    }

    /// Called when the response is complete.
    pub(crate) fn finish(&mut self, now: Instant) {
        if matches!(self.state, State::Receiving) {
            self.times.add(now.since(self.requested_at));
            self.state = State::Pausing { end: now + self.model.next_think(&mut self.rng) };
        }
    }

    /// Stops sending requests.
    pub(crate) fn stop(&mut self) {
        self.state = State::Stopped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::model::Distribution;
    use units::Span;

    fn client() -> Client {
        let model =
            Requests { size: Distribution::Fixed(5000.0), think: Distribution::Fixed(2e6), new_connections: false };
        Client::new(model, Instant(1_000_000), RngStream::named(1, "client"))
    }

    #[test]
    fn a_request_is_retransmitted_until_the_response_begins_and_a_pause_follows_the_response() {
        let mut client = client();
        let ms = |ms: u64| Instant::ZERO + Span::from_millis(ms);
        assert_eq!((client.wake(ms(0)), client.wake(ms(1)), client.wake(ms(1))), (None, Some(RequestKind::New), None));
        // RFC 6298: a second, then doubled.
        assert_eq!((client.deadline(), client.wake(ms(1001))), (ms(1001), Some(RequestKind::Retry)));
        assert_eq!(client.deadline(), ms(3001));
        client.on_segment(ms(1100), SegmentKind::Data, 6, 7);
        assert_eq!(client.deadline(), ms(3001), "a retransmission of the previous response");
        client.on_segment(ms(1100), SegmentKind::Data, 9, 7);
        client.finish(ms(1200));
        assert_eq!((client.deadline(), client.request_number()), (ms(1202), 1));
        assert_eq!(client.times.summary().max, 1199.0);
    }

    #[test]
    fn a_request_is_served_once() {
        let mut client = client();
        client.wake(client.deadline());
        assert_eq!((client.serve(1), client.serve(1)), (true, false));
    }
}
