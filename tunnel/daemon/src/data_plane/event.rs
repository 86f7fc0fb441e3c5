//! Events of peers and paths, which are sent to the control thread as they happen.
//!
//! A data thread sends typed values with their time; the control thread turns them into text. A peer can cause any
//! number of events, so each peer has a budget: a queue that is not read holds a bounded number of events.

use ipnet::IpNet;
use machine::MAX_PATHS;
use seal::{Cipher, PublicKey};
use std::net::{IpAddr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use units::{Instant, Span};

/// The number of events that a peer may cause at once: all paths come up, go down and come up again twice.
const BURST: u32 = 6 * MAX_PATHS as u32;
/// After them, one in this time.
const EVENT_INTERVAL: Span = Span::from_millis(250);

/// Something that happened in the data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelEvent {
    /// When it happened: wall clock, milliseconds since the Unix epoch.
    pub unix_ms: u64,
    /// What happened.
    pub change: Change,
}

/// What happened in the data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A change of a peer.
    Peer(PeerName, PeerChange),
    /// A handshake was refused.
    Refused(Refusal),
}

/// The identity of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerName {
    /// The public key; `None` in `mpt` mode.
    pub public_key: Option<PublicKey>,
    /// The name in the configuration.
    pub name: Option<String>,
}

/// What happened to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerChange {
    /// A session was established.
    Established {
        /// Whether the peer has restarted, or this is its first session.
        restarted: bool,
        /// The cipher.
        cipher: Option<Cipher>,
    },
    /// A host took the session back from another one that has the same private key.
    KeyShared,
    /// The peer closed the tunnel.
    Closed,
    /// A reload removed the peer.
    Removed,
    /// The peer, one of several servers, carries the packets of these networks from now on.
    Active(Vec<IpNet>),
    /// A policy of congestion control or of the scheduler failed for this reason; CUBIC or `minrtt` has taken its place.
    ControllerFailed(String),
    /// Something happened to a path.
    Path(PathName, PathChange),
}

/// The identity of a path of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathName {
    /// The name.
    pub name: String,
    /// Whether the peer opened it; otherwise it is configured here.
    pub opened_by_peer: bool,
    /// The peer's address, if it is known.
    pub remote: Option<SocketAddr>,
    /// The device that it is bound to.
    pub interface: Option<String>,
    /// The address that it is bound to; for a path that the peer opened, the address of this host that the peer sends
    /// to.
    pub source: Option<IpAddr>,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// It is in the configuration that the daemon, or its peer, started with.
    Configured,
    /// A reload or the peer added it.
    Added,
    /// A reload or the peer removed it, or it was silent.
    Removed,
    /// It has another endpoint or socket now, and is validated again.
    Replaced,
    /// It works. The RTT of the probe, if it was measured.
    Up(Option<Span>),
    /// It stopped working.
    Down,
    /// It moved to its present address from this address of the peer.
    Moved(Option<SocketAddr>),
}

/// Why a handshake was refused, for reasons that a change of the configuration can fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// No peer has the public key.
    UnknownPeer,
    /// The other end has another public key for this one.
    OtherPublicKey,
    /// Its time is before that of the peer's latest one.
    Outdated,
    /// No cipher is accepted at both ends.
    NoCommonCipher,
}

/// A data thread's end of the channel of events.
#[derive(Clone, Debug)]
pub struct EventSender(UnboundedSender<TunnelEvent>);

/// The control thread's end of the channel of events.
pub type EventReceiver = UnboundedReceiver<TunnelEvent>;

/// A channel of events, from all data threads to the control thread.
#[must_use]
pub fn event_channel() -> (EventSender, EventReceiver) {
    let (sender, receiver) = unbounded_channel();
    (EventSender(sender), receiver)
}

impl EventSender {
    /// Sends an event that happens now.
    pub(super) fn send(&self, change: Change) {
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64);
        // At the end of the tunnel the receiver is gone.
        let _ = self.0.send(TunnelEvent { unix_ms, change });
    }
}

/// The events that a peer may still cause (token bucket).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    used: u32,
    since: Instant,
}

impl Budget {
    /// Takes one event; false if there is none left.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let earned = now.since(self.since).as_nanos() / EVENT_INTERVAL.as_nanos();
        if earned >= u64::from(self.used) {
            (self.used, self.since) = (0, now);
        } else {
            self.used -= earned as u32;
            self.since += Span(earned * EVENT_INTERVAL.as_nanos());
        }
        let has_one = self.used < BURST;
        self.used += u32::from(has_one);
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_flaps_without_end_causes_four_events_a_second() {
        let mut budget = Budget::default();
        let mut taken = |ms: u64| budget.take(Instant(ms * 1_000_000));
        let at_once = (0..1000).filter(|_| taken(0)).count();
        assert_eq!(at_once, BURST as usize);
        assert_eq!((1..=10_000).filter(|ms| taken(*ms)).count(), 40);
        assert_eq!((0..1000).filter(|_| taken(1_000_000)).count(), BURST as usize);
    }
}
