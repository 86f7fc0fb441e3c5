//! What a path of MPT is held for: by its peer's keepalives, its interface, and people.

use crate::plane::setup::Keepalive;
use units::{Instant, Span};

/// A path whose interface refused a packet rests this long.
const REST: Span = Span::from_millis(1000);

/// What is known of a path's life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    keepalive: Option<Keepalive>,
    /// Its interface works, as netlink says.
    pub(super) link: bool,
    /// Nobody took it out of use.
    pub(super) enabled: bool,
    /// The peer was heard of lately.
    alive: bool,
    /// When anything came from the peer.
    heard: Option<Instant>,
    /// It rests until then, because its interface refused a packet.
    rests_until: Option<Instant>,
    next_sign: Instant,
    last_hope: Instant,
}

impl Life {
    /// A path that may be used from the start, as in MPT.
    pub(super) fn new(keepalive: Option<Keepalive>) -> Self {
        Self {
            keepalive,
            link: true,
            enabled: true,
            alive: true,
            heard: None,
            rests_until: None,
            next_sign: if keepalive.is_some() { Instant::ZERO } else { Instant::NEVER },
            last_hope: keepalive.map_or(Instant::NEVER, |keepalive| Instant::ZERO + keepalive.dead),
        }
    }

    /// Whether it carries packets.
    pub(super) fn is_up(&self) -> bool {
        self.alive && self.link && self.enabled && self.rests_until.is_none()
    }

    /// When the peer was heard of.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Something came from the peer. MPT counts keepalives alone; data is as good a sign.
    pub(super) fn hear(&mut self, now: Instant) {
        self.alive = true;
        self.heard = Some(now);
        if let Some(keepalive) = self.keepalive {
            self.last_hope = now + keepalive.dead;
        }
    }

    /// Its interface refused a packet.
    pub(super) fn rest(&mut self, now: Instant) {
        self.rests_until = Some(now + REST);
    }

    /// When [`Self::on_timeout`] is due.
    pub(super) fn deadline(&self) -> Instant {
        let hope = if self.alive { self.last_hope } else { Instant::NEVER };
        self.next_sign.min(hope).min(self.rests_until.unwrap_or(Instant::NEVER))
    }

    /// Whether a keepalive is to be sent now.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        self.rests_until = self.rests_until.filter(|until| *until > now);
        self.alive &= now < self.last_hope;
        let Some(keepalive) = self.keepalive.filter(|_| now >= self.next_sign) else { return false };
        self.next_sign = now + keepalive.interval;
        self.link && self.enabled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_path_goes_down_after_the_dead_time_and_comes_back_with_the_first_sign() {
        let at = |ms: u64| Instant(ms * 1_000_000);
        let keepalive = Keepalive { interval: Span::from_millis(100), dead: Span::from_millis(250) };
        let mut life = Life::new(Some(keepalive));
        assert!(life.on_timeout(at(0)), "the first sign at once");
        assert!(!life.on_timeout(at(50)), "too early for the second");
        assert_eq!(life.deadline(), at(100));
        assert!(life.on_timeout(at(249)) && life.is_up());
        life.on_timeout(at(250));
        assert!(!life.is_up());
        life.hear(at(1000));
        assert!(life.is_up());
        life.rest(at(1000));
        assert!(!life.is_up());
        life.on_timeout(at(2000));
        assert!(!life.is_up(), "it has rested, but 250 ms have passed without a sign");
    }
}
