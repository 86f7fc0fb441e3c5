//! Path validation by pings (as RFC 9000, section 8.2, with PATH_CHALLENGE).
//!
//! A path is used after the first pong over it, which also proves that the peer receives at its address. It fails after
//! a few round trips without acknowledgement or pong; a failed path is still pinged, and used again after the first pong.
//!
//! Acknowledgements come by any path, so that a peer may acknowledge what somebody else gets at its former address. While
//! data is acknowledged, a path is therefore pinged every few seconds, and only pongs count: without one it fails after
//! [`MAX_REVALIDATION_INTERVAL`] and [`MAX_UNANSWERED_PINGS`] times a ping timeout of [`MAX_REVALIDATION_PING_TIMEOUT`] at
//! most, 6.5 s, and with round trips up to 100 ms after 4.1 s.

use super::pmtud::PmtuSearch;
use crate::entropy::Entropy;
use units::{Instant, Span};

/// Unanswered pings in a row after which a path has failed.
const MAX_MISSED_PINGS: u32 = 3;
/// Unanswered pings in a row after which a path has failed whose data is acknowledged: more, because it may lose many
/// packets. Where half of the pings have no answer, each validation fails with probability 1/256.
const MAX_UNANSWERED_PINGS: u32 = 8;
/// Minimum time from a ping to the next on a path whose data is acknowledged.
const MIN_REVALIDATION_INTERVAL: Span = Span::from_millis(1500);
/// Maximum of that time, which is random.
const MAX_REVALIDATION_INTERVAL: Span = Span::from_millis(2500);
/// Minimum ping timeout on a path whose data is acknowledged: queues may grow.
const MIN_REVALIDATION_PING_TIMEOUT: Span = Span::from_millis(200);
/// Maximum of that timeout, whatever round trips the peer has feigned. Late pongs count.
const MAX_REVALIDATION_PING_TIMEOUT: Span = Span::from_millis(500);
/// Maximum number of outstanding pings.
const MAX_OUTSTANDING: usize = 12;
/// Ping timeout before the first round trip is known.
const INITIAL_PING_TIMEOUT: Span = Span::from_millis(300);
/// Minimum ping timeout, for delays in the hosts.
const MIN_PING_TIMEOUT: Span = Span::from_millis(50);
/// Interval of pings on a path that does not work, while the tunnel is in use.
const FAILED_PATH_PING_INTERVAL: Span = Span::from_millis(250);
/// Interval of pings on any path while the tunnel is idle, to keep the mappings of NATs (RFC 4787, REQ-5: two minutes
/// at least, but many keep half a minute and less) and to notice failures.
const KEEPALIVE_INTERVAL: Span = Span::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct Ping {
    /// Random, echoed in the pong.
    data: u64,
    sent: Instant,
    /// Size of the datagram if it probes the path MTU, bytes.
    probe_size: Option<u32>,
}

/// A pong to an outstanding ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pong {
    /// When the ping was sent.
    pub(super) sent: Instant,
    pub(super) rtt: Span,
    /// Whether the path was down before.
    pub(super) was_down: bool,
    /// The path MTU, if it grew, bytes.
    pub(super) plpmtu: Option<u32>,
}

/// Validation of one path.
#[derive(Clone, Debug)]
pub(super) struct PathValidation {
    pub(super) up: bool,
    outstanding: Vec<Ping>,
    /// When the latest acknowledgement or pong arrived.
    last_ack_or_pong: Instant,
    /// When data was last acknowledged.
    last_ack: Instant,
    last_ping: Option<Instant>,
    /// Time from the latest ping to the next one if data is acknowledged in that time.
    revalidation_interval: Span,
    /// Unanswered pings since the latest acknowledgement or pong.
    missed_pings: u32,
    /// Unanswered pings since the latest pong.
    unanswered_pings: u32,
    pub(super) latest_rtt: Option<Span>,
    pub(super) dplpmtud: PmtuSearch,
    pub(super) failures: u64,
}

/// When paths are pinged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingPolicy {
    /// Whether inner packets were sent lately: all paths are then pinged often.
    pub(crate) tunnel_in_use: bool,
    /// Interval of pings on a working path without traffic, while the tunnel is in use.
    pub(crate) interval: Span,
}

impl PathValidation {
    pub(super) fn new(max_plpmtu: u32) -> Self {
        Self {
            up: false,
            outstanding: Vec::with_capacity(MAX_OUTSTANDING),
            last_ack_or_pong: Instant::ZERO,
            last_ack: Instant::ZERO,
            last_ping: None,
            revalidation_interval: MAX_REVALIDATION_INTERVAL,
            missed_pings: 0,
            unanswered_pings: 0,
            latest_rtt: None,
            dplpmtud: PmtuSearch::new(max_plpmtu),
            failures: 0,
        }
    }

    /// A packet sent on the path was acknowledged.
    pub(super) fn on_delivered(&mut self, now: Instant) {
        (self.last_ack, self.last_ack_or_pong, self.missed_pings) = (now, now, 0);
    }

    /// A ping was answered.
    fn on_answer(&mut self, now: Instant) {
        (self.last_ack_or_pong, self.missed_pings, self.unanswered_pings) = (now, 0, 0);
    }

    /// Makes the next ping due now.
    pub(super) fn ping_now(&mut self) {
        self.last_ping = None;
    }

    /// Whether a ping has had no answer, and nothing came since.
    pub(super) fn has_missed_ping(&self) -> bool {
        self.missed_pings > 0
    }

    /// Whether data was acknowledged within the last second.
    pub(super) fn is_delivering(&self, now: Instant) -> bool {
        self.last_ack > Instant::ZERO && now.since(self.last_ack) < Span::from_secs(1)
    }

    fn ping_timeout(&self) -> Span {
        self.latest_rtt.map_or(INITIAL_PING_TIMEOUT, |rtt| Span(rtt.0 * 2).max(MIN_PING_TIMEOUT))
    }

    /// When the next ping is due, for validation or path MTU discovery.
    pub(super) fn ping_deadline(&self, policy: PingPolicy) -> Instant {
        self.validation_deadline(policy).min(self.dplpmtud.probe_deadline())
    }

    fn validation_deadline(&self, policy: PingPolicy) -> Instant {
        let Some(last_ping) = self.last_ping else { return Instant::ZERO };
        let is_outstanding = self.has_outstanding();
        let liveness = self.liveness_deadline(policy, last_ping, is_outstanding);
        liveness.min(self.revalidation_deadline(last_ping, is_outstanding))
    }

    /// Whether the answer to a ping for validation is outstanding.
    fn has_outstanding(&self) -> bool {
        self.outstanding.iter().any(|ping| ping.probe_size.is_none())
    }

    /// When a ping is due although data is acknowledged.
    fn revalidation_deadline(&self, last_ping: Instant, is_outstanding: bool) -> Instant {
        if !self.up || self.last_ack <= last_ping {
            return Instant::NEVER;
        }
        let timeout = self.ping_timeout().clamp(MIN_REVALIDATION_PING_TIMEOUT, MAX_REVALIDATION_PING_TIMEOUT);
        last_ping + if is_outstanding { timeout } else { self.revalidation_interval }
    }

    /// When a ping is due because nothing is acknowledged.
    fn liveness_deadline(&self, policy: PingPolicy, last_ping: Instant, is_outstanding: bool) -> Instant {
        let interval = match (self.up, policy.tunnel_in_use) {
            (_, false) if !(self.up && is_outstanding) => KEEPALIVE_INTERVAL,
            (true, _) if is_outstanding => return self.last_ack.max(last_ping) + self.ping_timeout(),
            (true, _) => return self.last_ack_or_pong.max(last_ping) + policy.interval,
            (false, _) => FAILED_PATH_PING_INTERVAL,
        };
        last_ping + interval
    }

    /// The data of a ping to send now (as in PATH_CHALLENGE), and the datagram's size if it probes the path MTU, bytes.
    /// `None` if nothing is due, or if the path has just failed: [`up`](Self::up) is then false.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        policy: PingPolicy,
        entropy: &mut Entropy,
    ) -> Option<(u64, Option<u32>)> {
        if self.validation_deadline(policy) <= now {
            if self.up && self.has_outstanding() {
                (self.missed_pings, self.unanswered_pings) = (self.missed_pings + 1, self.unanswered_pings + 1);
                if self.missed_pings >= MAX_MISSED_PINGS || self.unanswered_pings >= MAX_UNANSWERED_PINGS {
                    self.fail();
                    return None;
                }
            }
            self.last_ping = Some(now);
            let range = MAX_REVALIDATION_INTERVAL.0 - MIN_REVALIDATION_INTERVAL.0;
            self.revalidation_interval = MIN_REVALIDATION_INTERVAL + Span(entropy.bits() % range);
            return Some((self.ping(now, None, entropy), None));
        }
        let timeout = self.ping_timeout();
        let size = self.dplpmtud.poll(now, timeout)?;
        Some((self.ping(now, Some(size), entropy), Some(size)))
    }

    /// Sends a ping; returns its data.
    pub(super) fn ping(&mut self, now: Instant, probe_size: Option<u32>, entropy: &mut Entropy) -> u64 {
        if self.outstanding.len() == MAX_OUTSTANDING {
            self.outstanding.remove(0);
        }
        let data = entropy.bits();
        self.outstanding.push(Ping { data, sent: now, probe_size });
        data
    }

    /// Handles a pong; `None` if it belongs to none of the outstanding pings.
    pub(super) fn on_pong(&mut self, now: Instant, data: u64) -> Option<Pong> {
        let index = self.outstanding.iter().position(|ping| ping.data == data)?;
        let ping = self.outstanding.remove(index);
        let rtt = now.since(ping.sent);
        self.latest_rtt = Some(rtt);
        // A pong to an older ping would show nothing new.
        self.outstanding.retain(|outstanding| outstanding.probe_size.is_some() || outstanding.sent > ping.sent);
        self.on_answer(now);
        let was_down = !std::mem::replace(&mut self.up, true);
        if was_down {
            self.dplpmtud.start(now);
        }
        let plpmtu = ping.probe_size.filter(|size| self.dplpmtud.on_answer(now, *size));
        Some(Pong { sent: ping.sent, rtt, was_down, plpmtu })
    }

    /// The path has moved to another address, which answered a ping after `rtt`.
    pub(super) fn on_moved(&mut self, now: Instant, rtt: Span) {
        self.outstanding.clear();
        (self.last_ping, self.latest_rtt) = (Some(now), Some(rtt));
        self.on_answer(now);
    }

    /// The path works, and its MTU is not known.
    pub(super) fn restart_pmtud(&mut self, now: Instant) {
        self.up = true;
        self.dplpmtud.start(now);
    }

    /// The path has failed.
    pub(super) fn fail(&mut self) {
        self.up = false;
        (self.missed_pings, self.unanswered_pings) = (0, 0);
        self.failures += 1;
        self.outstanding.clear();
        self.last_ping = None;
        self.dplpmtud.stop();
    }
}
