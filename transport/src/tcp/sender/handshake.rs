//! Opening the connection. The handshake's packets matter to a tunnel: they take their turns in its striping.

use super::{Config, Recovery, Sender};
use crate::tcp::{Ack, Kind, Segment, timestamp};
use control::{Event, PathInfo, Reduction};
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

impl Sender {
    pub(super) fn connect(&mut self, now: Instant) {
        if self.handshake != Handshake::Closed {
            return;
        }
        if self.config.handshake {
            self.handshake = Handshake::Opening;
        } else {
            // What the receiver offers is not known before its first acknowledgement.
            self.window_end = u64::from(self.config.initial_window);
            self.handshake = Handshake::Open;
            self.start(now, None);
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
        self.handshake = Handshake::Answered;
        self.start(now, rtt);
    }

    /// Data may flow.
    fn start(&mut self, now: Instant, rtt: Option<Span>) {
        self.last_sent = now;
        self.usage.restart(now);
        let Config { mss, initial_window, tick, recovery, window: clamp, .. } = self.config;
        let reduction = match recovery {
            Recovery::Rack => Reduction::Proportional,
            Recovery::Fack => Reduction::Halving,
        };
        self.notify(now, &Event::PathUp(PathInfo { mss, initial_window, rtt, tick, clamp, reduction }));
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

    /// When the SYN is sent again: the wait is doubled at each try.
    pub(super) fn syn_deadline(&self) -> Instant {
        match self.handshake {
            Handshake::Waiting { sent, tries } => sent + self.config.initial_timeout * (1 << (tries - 1).min(6)),
            _ => Instant::NEVER,
        }
    }
}
