//! The three-way handshake. Its packets matter to a tunnel that distributes packets over paths in turn.

use super::{LossRecovery, Output, Sender, SenderConfig};
use crate::path::ControllerHandle;
use crate::tcp::{Ack, Segment, SegmentKind, timestamp};
use control::{PathInfo, Reduction};
use units::{Instant, Span};

/// State of the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Handshake {
    /// The handshake has not begun.
    #[default]
    Closed,
    /// The SYN must be sent.
    SynPending,
    /// The SYN was sent `transmissions` times so far, the last time at `sent`.
    SynSent { sent: Instant, transmissions: u32 },
    /// The SYN-ACK has arrived, and the third packet must be sent.
    AckPending,
    /// Established: data may be sent.
    Established,
}

impl Sender {
    pub(super) fn connect(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if self.handshake != Handshake::Closed {
            return;
        }
        if self.config.handshake {
            self.handshake = Handshake::SynPending;
        } else {
            // The receive window is unknown before the first acknowledgement.
            self.snd_wnd_end = u64::from(self.config.initial_window).max(self.snd_wnd_end);
            self.handshake = Handshake::Established;
            self.start(now, None, controller);
        }
    }

    /// Handles a SYN-ACK.
    pub(super) fn on_handshake(&mut self, now: Instant, ack: &Ack, controller: &mut ControllerHandle) {
        let Handshake::SynSent { sent, transmissions } = self.handshake else { return };
        let rtt = (transmissions == 1).then(|| now.since(sent));
        if let Some(rtt) = rtt {
            self.path.update_min_rtt(now, rtt);
            self.path.rtt.update(rtt, 0, 0);
        }
        (self.snd_wnd, self.snd_wnd_is_syns) = (ack.receive_window, true);
        self.snd_wnd_end = (ack.receive_window / u64::from(self.config.mss)).max(self.snd_wnd_end);
        self.write_queue.on_window(ack.receive_window);
        self.write_queue.on_ack();
        self.ts_recent = ack.tsval;
        self.handshake = Handshake::AckPending;
        self.start(now, rtt, controller);
    }

    /// Establishes the connection: the controller gets the path.
    fn start(&mut self, now: Instant, rtt: Option<Span>, controller: &mut ControllerHandle) {
        let SenderConfig { mss, initial_window, tick, recovery, window_clamp: cwnd_clamp, release, .. } = self.config;
        let reduction = match recovery {
            LossRecovery::Rack => Reduction::Proportional,
            LossRecovery::Fack => Reduction::Halving,
        };
        self.path.start(now, PathInfo { mss, initial_window, rtt, tick, cwnd_clamp, reduction, release }, controller);
        self.update_pacing_rate();
    }

    /// Returns the handshake's next packet if one is due.
    fn poll_handshake(&mut self, now: Instant) -> Option<Segment> {
        let kind = match self.handshake {
            Handshake::SynPending => {
                self.handshake = Handshake::SynSent { sent: now, transmissions: 1 };
                SegmentKind::Syn
            }
            Handshake::SynSent { transmissions, .. } if self.syn_deadline() <= now => {
                self.handshake = Handshake::SynSent { sent: now, transmissions: transmissions + 1 };
                SegmentKind::Syn
            }
            Handshake::AckPending => {
                self.handshake = Handshake::Established;
                SegmentKind::HandshakeAck
            }
            _ => return None,
        };
        Some(Segment {
            kind,
            seq: 0,
            tsval: timestamp(now),
            tsecr: self.ts_recent,
            cwr: false,
            retransmission: false,
            psh: false,
        })
    }

    /// As [`poll`](Self::poll), until the connection is established.
    #[cold]
    pub(super) fn poll_unestablished(&mut self, now: Instant) -> Output {
        match self.poll_handshake(now) {
            Some(segment) => Output::Transmit(segment),
            None => {
                self.account_handshake(now);
                Output::WaitUntil(self.deadline().min(self.syn_deadline()))
            }
        }
    }

    /// Time at which the SYN is retransmitted. The timeout doubles with each transmission.
    fn syn_deadline(&self) -> Instant {
        match self.handshake {
            Handshake::SynSent { sent, transmissions } => {
                sent + self.config.initial_rto * (1 << (transmissions - 1).min(6))
            }
            _ => Instant::NEVER,
        }
    }
}
