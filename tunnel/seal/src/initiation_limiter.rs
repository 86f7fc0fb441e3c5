//! Protection against floods of initiations. Above a certain rate the host is under load, and further initiations need
//! a valid mac2. The initiator first gets a cookie reply; its mac2 then shows that it can read messages sent to its
//! address. The cookie can be computed again and need not be stored (WireGuard white paper, section 5.3).
//!
//! Each initiation is charged before the first Curve25519 operation, and the charge is taken back if it gets a
//! response: the limits apply to initiations that fail. An initiation with a valid mac2 is charged to its source if a
//! peer recently authenticated from it, or else to the host and the site of its address. In both cases it is also
//! charged to the total budget of its kind. So an attacker with one network cannot use up the budget of others, and one
//! with many networks cannot use up that of known peers. An initiation without a valid mac2 may have a forged source,
//! and is never charged to it.

use units::{Instant, Span};

use crate::device::PeerId;
use crate::entropy::{Entropy, random_bytes};
use crate::known_sources::KnownSources;
use crate::mac::{MAC_LEN, MacKey};
use crate::rate_limit::{Rate, TokenBucket};
use crate::source::Source;

/// Lifetime of the secret that cookies are computed with (white paper, section 5.4.7: two minutes).
pub(crate) const COOKIE_LIFETIME: Span = Span::from_secs(120);

/// Initiations per second of one IPv4 address or IPv6 /64; also the burst.
const HOST_LIMIT: Rate = Rate::per_second(10);
/// Initiations per second of one IPv4 /24 or IPv6 /48; also the burst.
const SITE_LIMIT: Rate = Rate::per_second(40);
/// Initiations per second of all networks, as a multiple of the threshold.
const NETWORKS_FACTOR: u32 = 8;
/// Initiations per second of all known sources, as a multiple of the threshold.
const KNOWN_FACTOR: u32 = 2;
/// Buckets in each of the two rows of a table of networks.
const BUCKETS: usize = 1024;

/// The treatment of an initiation whose mac1 is valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Process it, and [refund](InitiationLimiter::refund) the charge if it gets a response.
    Accept(Charge),
    /// Send a cookie reply with this cookie, and keep no state.
    CookieReply([u8; MAC_LEN]),
    /// Drop it.
    Drop,
}

/// The budget that an initiation was charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// The budget of those without a cookie.
    WithoutCookie,
    /// A known source.
    Known(Source),
    /// The host and the site of an unknown source.
    Networks { host: Buckets, site: Buckets },
}

/// The budgets, and the secret of the cookies.
pub(crate) struct InitiationLimiter {
    threshold: u32,
    without_cookie: TokenBucket,
    known_sources: KnownSources,
    /// All known sources.
    known: TokenBucket,
    hosts: NetworkTable,
    sites: NetworkTable,
    /// All networks.
    networks: TokenBucket,
    secret: Option<(MacKey, Instant)>,
    /// Key of the hash by which networks are assigned to buckets. It keeps an attacker from choosing a network that
    /// shares another's buckets.
    bucket_key: Option<MacKey>,
}

impl InitiationLimiter {
    /// Accepts `threshold` initiations per second without a cookie.
    pub(crate) fn new(threshold: u32) -> Self {
        Self {
            threshold,
            without_cookie: TokenBucket::default(),
            known_sources: KnownSources::default(),
            known: TokenBucket::default(),
            hosts: NetworkTable::new(HOST_LIMIT),
            sites: NetworkTable::new(SITE_LIMIT),
            networks: TokenBucket::default(),
            secret: None,
            bucket_key: None,
        }
    }

    /// A peer authenticated from `source`.
    pub(crate) fn remember(&mut self, peer: PeerId, source: Source) {
        self.known_sources.remember(peer, source);
    }

    /// Whether a peer recently authenticated from `source`.
    pub(crate) fn knows(&self, source: &Source) -> bool {
        self.known_sources.contains(source)
    }

    /// Forgets the sources of a peer.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.known_sources.forget(peer);
    }

    /// Decides on an initiation from `source`; `mac2` authenticates the bytes `authenticated`.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        source: &[u8],
        (authenticated, mac2): (&[u8], &[u8]),
    ) -> Admission {
        if self.without_cookie.take(now, Rate::per_second(self.threshold)) {
            return Admission::Accept(Charge::WithoutCookie);
        }
        let cookie = self.secret(now, entropy).mac(source);
        if !MacKey::new(&cookie).verify(authenticated, mac2) {
            return Admission::CookieReply(cookie);
        }
        let source = Source::new(source);
        let charge = self.charge_known(now, &source).or_else(|| self.charge_networks(now, entropy, &source));
        charge.map_or(Admission::Drop, Admission::Accept)
    }

    /// Takes back the charge of an initiation that got a response.
    pub(crate) fn refund(&mut self, charge: &Charge) {
        match charge {
            Charge::WithoutCookie => self.without_cookie.refund(Rate::per_second(self.threshold)),
            Charge::Known(source) => {
                self.known.refund(self.known_limit());
                self.known_sources.refund(source);
            }
            Charge::Networks { host, site } => {
                self.networks.refund(self.networks_limit());
                self.hosts.refund(host);
                self.sites.refund(site);
            }
        }
    }

    const fn known_limit(&self) -> Rate {
        Rate::per_second(self.threshold.saturating_mul(KNOWN_FACTOR))
    }

    const fn networks_limit(&self) -> Rate {
        Rate::per_second(self.threshold.saturating_mul(NETWORKS_FACTOR))
    }

    fn charge_known(&mut self, now: Instant, source: &Source) -> Option<Charge> {
        if !self.known.has_token(now, self.known_limit()) {
            return None;
        }
        let charged = self.known_sources.take(now, source)?;
        self.known.take(now, self.known_limit());
        Some(Charge::Known(charged))
    }

    fn charge_networks(&mut self, now: Instant, entropy: &mut dyn Entropy, source: &Source) -> Option<Charge> {
        let key = self.bucket_key.get_or_insert_with(|| MacKey::new(&random_bytes::<32>(entropy)));
        let mut host = Buckets::of(key, b"host", source.host());
        let mut site = Buckets::of(key, b"site", source.site());
        let limit = self.networks_limit();
        if !(self.networks.has_token(now, limit)
            && self.hosts.has_token(now, &host)
            && self.sites.has_token(now, &site))
        {
            return None;
        }
        self.networks.take(now, limit);
        self.hosts.take(now, &mut host);
        self.sites.take(now, &mut site);
        Some(Charge::Networks { host, site })
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

/// The two buckets of a network, one in each row, and from which of them a token was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    positions: [usize; 2],
    taken: [bool; 2],
}

impl Buckets {
    fn of(key: &MacKey, label: &[u8], network: &[u8]) -> Self {
        let [a, b, c, d, ..] = key.sign(&[label, network]);
        let position = |bytes| usize::from(u16::from_be_bytes(bytes)) % BUCKETS;
        Self { positions: [position([a, b]), position([c, d])], taken: [false; 2] }
    }
}

/// Token buckets of networks: two rows by independent hashes. A network is out of tokens only if both of its buckets
/// are empty, and hardly any other network shares both (a count-min sketch: Cormode and Muthukrishnan, 2005).
struct NetworkTable {
    rows: [Box<[TokenBucket]>; 2],
    limit: Rate,
}

impl NetworkTable {
    fn new(limit: Rate) -> Self {
        let row = || vec![TokenBucket::default(); BUCKETS].into_boxed_slice();
        Self { rows: [row(), row()], limit }
    }

    fn has_token(&self, now: Instant, buckets: &Buckets) -> bool {
        let mut rows = self.rows.iter().zip(buckets.positions);
        rows.any(|(row, position)| row[position].has_token(now, self.limit))
    }

    fn take(&mut self, now: Instant, buckets: &mut Buckets) {
        for ((row, position), taken) in self.rows.iter_mut().zip(buckets.positions).zip(&mut buckets.taken) {
            *taken = row[position].take(now, self.limit);
        }
    }

    fn refund(&mut self, buckets: &Buckets) {
        for ((row, position), taken) in self.rows.iter_mut().zip(buckets.positions).zip(buckets.taken) {
            if taken {
                row[position].refund(self.limit);
            }
        }
    }
}
