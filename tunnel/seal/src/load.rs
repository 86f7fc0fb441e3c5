//! Floods. While few ask, everybody is served. When more initiations arrive in a second than we would serve, each asker
//! must first show that it can read what is sent to its address: it gets a cookie, which we can compute again and so need
//! not remember (WireGuard white paper, section 5.3). Who has shown it gets a share by network, so that one address
//! cannot take all, and all together no more than a multiple of the first limit.

use units::{Instant, Span};

use crate::entropy::{Entropy, draw};
use crate::mac::{MAC, MacKey};

/// A secret makes cookies for so long (white paper, section 5.4.7: two minutes).
pub(crate) const COOKIE_LIFE: Span = Span::from_secs(120);

/// Initiations a second from one network when many ask.
const SHARE: u8 = 10;

/// All that have shown a cookie get so many times the limit.
const CEILING: u32 = 8;

/// What to do with an initiation whose mac1 is right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Serve it.
    Serve,
    /// Send this cookie, and forget it.
    Demand([u8; MAC]),
    /// Nothing.
    Drop,
}

/// How many ask at present, and the secret that cookies are made with.
pub(crate) struct Load {
    limit: u32,
    second: u64,
    asked: u32,
    shown: u32,
    /// Initiations of this second by hash of their network.
    shares: [u8; 256],
    secret: Option<(MacKey, Instant)>,
}

impl Load {
    /// Serves `limit` initiations a second without asking for a cookie.
    pub(crate) const fn new(limit: u32) -> Self {
        Self { limit, second: 0, asked: 0, shown: 0, shares: [0; 256], secret: None }
    }

    /// Judges an initiation from `source`: `covered` is what its `mac2` covers.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        source: &[u8],
        (covered, mac2): (&[u8], &[u8]),
    ) -> Admission {
        self.begin_second(now);
        self.asked = self.asked.saturating_add(1);
        if self.asked <= self.limit {
            return Admission::Serve;
        }
        let secret = self.secret(now, entropy);
        let cookie = secret.mac(source);
        let share = usize::from(secret.sign(&[b"share", network(source)])[0]);
        if !MacKey::new(&cookie).verify(covered, mac2) {
            return Admission::Demand(cookie);
        }
        self.shown += 1;
        self.shares[share] = self.shares[share].saturating_add(1);
        let fair = self.shares[share] <= SHARE && self.shown <= self.limit.saturating_mul(CEILING);
        if fair { Admission::Serve } else { Admission::Drop }
    }

    fn begin_second(&mut self, now: Instant) {
        let second = now.0 / Span::from_secs(1).as_nanos();
        if second != self.second {
            (self.second, self.asked, self.shown, self.shares) = (second, 0, 0, [0; 256]);
        }
    }

    fn secret(&mut self, now: Instant, entropy: &mut dyn Entropy) -> &MacKey {
        let old = |(_, born): &(MacKey, Instant)| now.since(*born) >= COOKIE_LIFE;
        if self.secret.as_ref().is_none_or(old) {
            self.secret = Some((MacKey::new(&draw::<32>(entropy)), now));
        }
        let (key, _) = self.secret.as_ref().expect("it was made above");
        key
    }
}

/// The part of an address that one customer has: an IPv4 address, or 64 bits of an IPv6 one. A port may follow.
fn network(source: &[u8]) -> &[u8] {
    let length = if source.len() >= 16 { 8 } else { 4 };
    &source[..length.min(source.len())]
}
