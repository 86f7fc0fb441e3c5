//! Opening the connection. The handshake's packets matter to a tunnel: they take their turns in its striping.

use super::{Config, Sender};
use crate::tcp::{Ack, Kind, Segment, timestamp};
use control::{Event, PathInfo};
use units::{Instant, Span};

/// Where opening stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Handshake {
    /// Not asked for yet.
    #[default]
    Closed,
    /// The SYN is to be sent.
    Opening,
    /// The SYN was sent.
    Waiting { sent: Instant, tries: u32 },
    /// Answered; the third packet is to be sent.
    Answered,
    /// Data may flow.
    Open,
}

/// Wait for an answer to the first SYN (RFC 6298: 1 s), doubled at each try.
const SYN_TIMEOUT: Span = Span::from_secs(1);

impl Sender {
    pub(super) fn connect(&mut self, _now: Instant) {
        if self.handshake == Handshake::Closed {
            self.handshake = Handshake::Opening;
        }
    }

    /// The SYN was answered.
    pub(super) fn on_handshake(&mut self, now: Instant, ack: &Ack) {
        let Handshake::Waiting { sent, tries } = self.handshake else { return };
        let rtt = (tries == 1).then(|| now.since(sent));
        if let Some(rtt) = rtt {
            self.min_rtt.update(super::ack::MIN_RTT_WINDOW, now, rtt);
            self.round_trip.add(rtt, 0, 0);
        }
        self.window_end = ack.window / u64::from(self.config.mss);
        self.echo = ack.timestamp;
        self.last_sent = now;
        self.usage.restart(now);
        self.handshake = Handshake::Answered;
        let Config { mss, initial_window, tick, .. } = self.config;
        let path = PathInfo { mss, initial_window, rtt, tick };
        self.notify(now, &Event::PathUp(path));
    }

    /// The handshake's next packet, if one is due.
    pub(super) fn poll_handshake(&mut self, now: Instant) -> Option<Segment> {
        let kind = match self.handshake {
            Handshake::Opening => {
                self.handshake = Handshake::Waiting { sent: now, tries: 1 };
                Kind::Syn
            }
            Handshake::Waiting { tries, .. } if self.syn_deadline() <= now => {
                self.handshake = Handshake::Waiting { sent: now, tries: tries + 1 };
                Kind::Syn
            }
            Handshake::Answered => {
                self.handshake = Handshake::Open;
                Kind::HandshakeAck
            }
            _ => return None,
        };
        Some(Segment {
            kind,
            seq: 0,
            timestamp: timestamp(now),
            echo: self.echo,
            reduced: false,
            retransmission: false,
        })
    }

    /// When the SYN is sent again.
    pub(super) fn syn_deadline(&self) -> Instant {
        match self.handshake {
            Handshake::Waiting { sent, tries } => sent + SYN_TIMEOUT * (1 << (tries - 1).min(6)),
            _ => Instant::NEVER,
        }
    }
}
