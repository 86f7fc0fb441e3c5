//! Liveness of an MPT path, from the peer's keepalives and the state of the interface.

use crate::config::KeepaliveConfig;
use units::{Instant, Span};

/// Duration of the suspension of a path whose interface refused a packet.
const SUSPENSION: Span = Span::from_millis(1000);

/// Liveness of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Liveness {
    keepalive: Option<KeepaliveConfig>,
    /// Whether netlink reports its interface up.
    pub(crate) is_link_up: bool,
    /// Whether a datagram of the peer arrived within the dead time.
    is_alive: bool,
    /// The end of a suspension.
    suspended_until: Option<Instant>,
    next_keepalive: Instant,
    dead_deadline: Instant,
}

impl Liveness {
    /// A path that is up from the start, as in MPT.
    pub(crate) fn new(keepalive: Option<KeepaliveConfig>) -> Self {
        Self {
            keepalive,
            is_link_up: true,
            is_alive: true,
            suspended_until: None,
            next_keepalive: if keepalive.is_some() { Instant::ZERO } else { Instant::NEVER },
            dead_deadline: keepalive.map_or(Instant::NEVER, |keepalive| Instant::ZERO + keepalive.dead_time),
        }
    }

    /// Whether the path carries packets.
    pub(crate) fn is_up(&self) -> bool {
        self.is_alive && self.is_link_up && self.suspended_until.is_none()
    }

    /// A datagram of the peer was received. MPT counts keepalives only; data shows the same.
    pub(crate) fn on_received(&mut self, now: Instant) {
        self.is_alive = true;
        if let Some(keepalive) = self.keepalive {
            self.dead_deadline = now + keepalive.dead_time;
        }
    }

    /// The path's interface refused a packet.
    pub(crate) fn suspend(&mut self, now: Instant) {
        self.suspended_until = Some(now + SUSPENSION);
    }

    /// When [`Self::on_timeout`] is due.
    pub(crate) fn deadline(&self) -> Instant {
        let dead_deadline = if self.is_alive { self.dead_deadline } else { Instant::NEVER };
        self.next_keepalive.min(dead_deadline).min(self.suspended_until.unwrap_or(Instant::NEVER))
    }

    /// Updates the state; returns whether a keepalive is due.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        self.suspended_until = self.suspended_until.filter(|until| *until > now);
        self.is_alive &= now < self.dead_deadline;
        let Some(keepalive) = self.keepalive.filter(|_| now >= self.next_keepalive) else { return false };
        self.next_keepalive = now + keepalive.keepalive_time;
        self.is_link_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_path_goes_down_after_the_dead_time_and_up_with_the_next_datagram() {
        let millis = |ms: u64| Instant(ms * 1_000_000);
        let keepalive = KeepaliveConfig { keepalive_time: Span::from_millis(100), dead_time: Span::from_millis(250) };
        let mut liveness = Liveness::new(Some(keepalive));
        assert!(liveness.on_timeout(millis(0)), "the first keepalive at once");
        assert!(!liveness.on_timeout(millis(50)), "too early for the second");
        assert_eq!(liveness.deadline(), millis(100));
        assert!(liveness.on_timeout(millis(249)) && liveness.is_up());
        liveness.on_timeout(millis(250));
        assert!(!liveness.is_up());
        liveness.on_received(millis(1000));
        assert!(liveness.is_up());
        liveness.suspend(millis(1000));
        assert!(!liveness.is_up());
        liveness.on_timeout(millis(2000));
        assert!(!liveness.is_up(), "the suspension has ended, but 250 ms have passed without a datagram");
    }
}
