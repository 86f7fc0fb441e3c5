//! MPT's life signs: what a keepalive looks like, and what a path is held for by them.
//!
//! A keepalive is a GRE packet without a sequence number whose payload begins with 0xA1, which is no IP packet
//! (draft-lencse-tsvwg-mpt, and the published implementation): 44 bytes, not answered, not authenticated.

use super::super::setup::Keepalive;
use std::net::{IpAddr, Ipv6Addr};
use units::{Instant, Span};
use wire::gre;

/// Payloads from this first byte on are control messages, not IP packets.
pub(super) const CONTROL: u8 = 0xa0;
const KEEPALIVE: u8 = 0xa1;
/// Bytes of a keepalive.
pub(super) const LEN: usize = 44;
/// A path whose interface refused a packet rests this long.
const REST: Span = Span::from_millis(1000);

/// The keepalive from tunnel address `local` to `remote`.
pub(super) fn message(local: IpAddr, remote: IpAddr) -> [u8; LEN] {
    let (protocol, version) = if local.is_ipv4() { (gre::IPV4, 4) } else { (gre::IPV6, 6) };
    let mut message = [0; LEN];
    message[2..4].copy_from_slice(&protocol.to_be_bytes());
    (message[4], message[9]) = (KEEPALIVE, version);
    message[12..28].copy_from_slice(&mapped(local));
    message[28..].copy_from_slice(&mapped(remote));
    message
}

/// Whether this payload of a GRE packet is a keepalive.
pub(super) fn is_keepalive(payload: &[u8]) -> bool {
    payload.first() == Some(&KEEPALIVE) && payload.len() == LEN - 4
}

/// IPv4 addresses stand as `::ffff:a.b.c.d`.
fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => Ipv6Addr::octets(&v6),
    }
}

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
    fn the_published_keepalive() {
        let message = message([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut expected = vec![0, 0, 8, 0, 0xa1, 0, 0, 0, 0, 4, 0, 0];
        for last in [1, 2] {
            expected.extend([0; 10]);
            expected.extend([0xff, 0xff, 10, 0, 0, last]);
        }
        assert_eq!(message[..], expected);
        assert!(is_keepalive(&message[4..]) && !is_keepalive(&message[4..43]));
    }

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
