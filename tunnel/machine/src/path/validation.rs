//! Path validation by pings (as RFC 9000, section 8.2, with PATH_CHALLENGE).
//!
//! A path is used once a ping over it was answered, which also shows that the peer's address is its own. It fails when
//! data or pings go unanswered for a few of its round trips. Acknowledged data shows that a path works, so that a busy
//! path is not pinged; a failed one is pinged on, and used again after the first answer.

use super::pmtud::PmtuSearch;
use units::{Instant, RngStream, Span};

/// Unanswered pings in a row after which a path has failed.
const MAX_MISSED_PINGS: u32 = 3;
/// Most pings outstanding at once.
const MAX_OUTSTANDING: usize = 8;
/// Ping timeout before the first round trip is known.
const INITIAL_PING_TIMEOUT: Span = Span::from_millis(300);
/// Least ping timeout: hosts are slow at times.
const MIN_PING_TIMEOUT: Span = Span::from_millis(50);
/// Interval of pings on a path that does not work, while the tunnel is in use.
const RETRY_INTERVAL: Span = Span::from_millis(250);
/// Interval of pings on any path while the tunnel is idle, to keep the mappings of NATs (RFC 4787, REQ-5: two minutes
/// at least, but many keep half a minute and less) and to notice failures.
const KEEPALIVE_INTERVAL: Span = Span::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct Ping {
    token: u64,
    sent: Instant,
    /// Size of the datagram if it probes the path MTU, bytes.
    probe_size: Option<u32>,
}

/// The answer to a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PingAnswer {
    pub(super) rtt: Span,
    /// The path did not work until now.
    pub(super) came_up: bool,
    /// The path MTU, if it grew, bytes.
    pub(super) plpmtu: Option<u32>,
}

/// Validation of one path.
#[derive(Clone, Debug)]
pub(super) struct PathValidation {
    pub(super) up: bool,
    outstanding: Vec<Ping>,
    /// When data or a ping was last answered.
    last_answer: Instant,
    last_ping: Option<Instant>,
    missed_pings: u32,
    pub(super) rtt: Option<Span>,
    pub(super) pmtud: PmtuSearch,
    pub(super) failures: u64,
}

/// When paths are pinged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbePolicy {
    /// The tunnel is in use, so that the state of every path is to be known.
    pub(crate) busy: bool,
    /// Interval of pings on a working path without traffic, while the tunnel is in use.
    pub(crate) interval: Span,
}

impl PathValidation {
    pub(super) fn new(max_plpmtu: u32) -> Self {
        Self {
            up: false,
            outstanding: Vec::with_capacity(MAX_OUTSTANDING),
            last_answer: Instant::ZERO,
            last_ping: None,
            missed_pings: 0,
            rtt: None,
            pmtud: PmtuSearch::new(max_plpmtu),
            failures: 0,
        }
    }

    /// Something sent on the path was acknowledged.
    pub(super) fn on_delivered(&mut self, now: Instant) {
        (self.last_answer, self.missed_pings) = (now, 0);
    }

    /// Makes the next ping due now.
    pub(super) fn probe_now(&mut self) {
        self.last_ping = None;
    }

    fn ping_timeout(&self) -> Span {
        self.rtt.map_or(INITIAL_PING_TIMEOUT, |rtt| Span(rtt.0 * 2).max(MIN_PING_TIMEOUT))
    }

    /// When the next ping is due, for validation or path MTU discovery.
    pub(super) fn due(&self, policy: ProbePolicy) -> Instant {
        self.validation_due(policy).min(self.pmtud.due())
    }

    fn validation_due(&self, policy: ProbePolicy) -> Instant {
        let Some(last) = self.last_ping else { return Instant::ZERO };
        let ping_outstanding = self.outstanding.iter().any(|ping| ping.probe_size.is_none());
        let interval = match (self.up, policy.busy) {
            (_, false) if !(self.up && ping_outstanding) => KEEPALIVE_INTERVAL,
            (true, _) if ping_outstanding => return last + self.ping_timeout(),
            (true, _) => return self.last_answer.max(last) + policy.interval,
            (false, _) => RETRY_INTERVAL,
        };
        last + interval
    }

    /// The token of a ping to send now, and the datagram's size if it probes the path MTU, bytes. `None` if nothing is
    /// due, or if the path has just failed: [`up`](Self::up) is then false.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        policy: ProbePolicy,
        rng: &mut RngStream,
    ) -> Option<(u64, Option<u32>)> {
        if self.validation_due(policy) <= now {
            let ping_outstanding = self.outstanding.iter().any(|ping| ping.probe_size.is_none());
            if self.up && ping_outstanding {
                self.missed_pings += 1;
                if self.missed_pings >= MAX_MISSED_PINGS {
                    self.fail();
                    return None;
                }
            }
            self.last_ping = Some(now);
            return Some((self.ping(now, None, rng), None));
        }
        let timeout = self.ping_timeout();
        let size = self.pmtud.poll(now, timeout)?;
        Some((self.ping(now, Some(size), rng), Some(size)))
    }

    fn ping(&mut self, now: Instant, probe_size: Option<u32>, rng: &mut RngStream) -> u64 {
        if self.outstanding.len() == MAX_OUTSTANDING {
            self.outstanding.remove(0);
        }
        let token = rng.bits();
        self.outstanding.push(Ping { token, sent: now, probe_size });
        token
    }

    /// A ping was answered; `None` if it was none of the outstanding ones.
    pub(super) fn on_pong(&mut self, now: Instant, token: u64) -> Option<PingAnswer> {
        let index = self.outstanding.iter().position(|ping| ping.token == token)?;
        let ping = self.outstanding.remove(index);
        let rtt = now.since(ping.sent);
        self.rtt = Some(rtt);
        // Older pings need no answer any more.
        self.outstanding.retain(|other| other.probe_size.is_some() || other.sent > ping.sent);
        self.on_delivered(now);
        let came_up = !std::mem::replace(&mut self.up, true);
        if came_up {
            self.pmtud.start(now);
        }
        let plpmtu = ping.probe_size.filter(|size| self.pmtud.on_answer(now, *size));
        Some(PingAnswer { rtt, came_up, plpmtu })
    }

    /// The path has failed.
    pub(super) fn fail(&mut self) {
        self.up = false;
        self.missed_pings = 0;
        self.failures += 1;
        self.outstanding.clear();
        self.last_ping = None;
        self.pmtud.stop();
    }
}
