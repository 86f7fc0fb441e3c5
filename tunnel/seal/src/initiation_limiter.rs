//! Protection against floods of initiations. In a second with more initiations than the threshold the host is under
//! load, and the rest of them need a valid mac2: the initiator gets a cookie reply first, which shows that it can read
//! what is sent to its address. The cookie can be computed again and need not be stored (WireGuard white paper, section
//! 5.3). Initiations with a valid mac2 are limited by network, so that one address cannot take all, and all together to
//! a multiple of the threshold.

use units::{Instant, Span};

use crate::entropy::{Entropy, random_bytes};
use crate::mac::{MAC_LEN, MacKey};

/// Lifetime of the secret that cookies are computed with (white paper, section 5.4.7: two minutes).
pub(crate) const COOKIE_LIFETIME: Span = Span::from_secs(120);

/// Initiations a second from one network while under load.
const NETWORK_LIMIT: u8 = 10;

/// Initiations a second with a valid mac2, as a multiple of the threshold.
const TOTAL_LIMIT_FACTOR: u32 = 8;

/// The treatment of an initiation whose mac1 is valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Process it.
    Accept,
    /// Send a cookie reply with this cookie, and keep no state.
    CookieReply([u8; MAC_LEN]),
    /// Drop it.
    Drop,
}

/// The counts of initiations in the current second, and the secret of the cookies.
pub(crate) struct InitiationLimiter {
    threshold: u32,
    second: u64,
    initiations: u32,
    /// Initiations with a valid mac2.
    validated: u32,
    /// Initiations with a valid mac2, by hash of their network.
    per_network: [u8; 256],
    secret: Option<(MacKey, Instant)>,
}

impl InitiationLimiter {
    /// Accepts `threshold` initiations a second without a cookie.
    pub(crate) const fn new(threshold: u32) -> Self {
        Self { threshold, second: 0, initiations: 0, validated: 0, per_network: [0; 256], secret: None }
    }

    /// Decides on an initiation from `source`; `mac2` authenticates the bytes `authenticated`.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        source: &[u8],
        (authenticated, mac2): (&[u8], &[u8]),
    ) -> Admission {
        self.begin_second(now);
        self.initiations = self.initiations.saturating_add(1);
        if self.initiations <= self.threshold {
            return Admission::Accept;
        }
        let secret = self.secret(now, entropy);
        let cookie = secret.mac(source);
        let bucket = usize::from(secret.sign(&[b"share", network(source)])[0]);
        if !MacKey::new(&cookie).verify(authenticated, mac2) {
            return Admission::CookieReply(cookie);
        }
        self.validated += 1;
        self.per_network[bucket] = self.per_network[bucket].saturating_add(1);
        let is_within_limits = self.per_network[bucket] <= NETWORK_LIMIT
            && self.validated <= self.threshold.saturating_mul(TOTAL_LIMIT_FACTOR);
        if is_within_limits { Admission::Accept } else { Admission::Drop }
    }

    fn begin_second(&mut self, now: Instant) {
        let second = now.0 / Span::from_secs(1).as_nanos();
        if second != self.second {
            (self.second, self.initiations, self.validated, self.per_network) = (second, 0, 0, [0; 256]);
        }
    }

    fn secret(&mut self, now: Instant, entropy: &mut dyn Entropy) -> &MacKey {
        let is_expired = |(_, created): &(MacKey, Instant)| now.since(*created) >= COOKIE_LIFETIME;
        if self.secret.as_ref().is_none_or(is_expired) {
            self.secret = Some((MacKey::new(&random_bytes::<32>(entropy)), now));
        }
        let (key, _) = self.secret.as_ref().expect("created above");
        key
    }
}

/// The part of a source address that one customer has: an IPv4 address, or 64 bits of an IPv6 address. A port may
/// follow.
fn network(source: &[u8]) -> &[u8] {
    let length = if source.len() >= 16 { 8 } else { 4 };
    &source[..length.min(source.len())]
}
