//! Is the path there? Pings and their answers.
//!
//! A path is used once a ping over it was answered, which also shows that the peer's address is its own. It is taken to have
//! failed when data or pings go unanswered for a few of its round trips. Data counts as a sign of life, so that a busy path
//! is not pinged; a failed one is pinged on, and used again with the first answer.

use super::search::Search;
use units::{Instant, Span, Stream};

/// Unanswered pings in a row that make a path fail.
const MOST_MISSED: u32 = 3;
/// Pings that may be unanswered at once.
const MOST_OPEN: usize = 8;
/// Patience for the first ping of all.
const FIRST_PATIENCE: Span = Span::from_millis(300);
/// The least patience with pings: hosts are slow at times.
const LEAST_PATIENCE: Span = Span::from_millis(50);
/// A failed or unproven path is pinged so often while the tunnel is in use...
const RETRY: Span = Span::from_millis(250);
/// ... and any path so often when it is not, to keep the mappings of middleboxes (RFC 4787, REQ-5: two minutes at least, but
/// many keep half a minute and less) and know of failures.
const IDLE: Span = Span::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct Ping {
    token: u64,
    at: Instant,
    /// Bytes of the datagram, where its size is the question.
    size: Option<u32>,
}

/// What an answer said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) rtt: Span,
    /// The path was not known to work.
    pub(super) revived: bool,
    /// The largest datagram that passes grew to this.
    pub(super) grown: Option<u32>,
}

/// Pings and answers of one path.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) up: bool,
    open: Vec<Ping>,
    /// The latest sign that what is sent on the path arrives.
    confirmed: Instant,
    last_ping: Option<Instant>,
    missed: u32,
    pub(super) rtt: Option<Span>,
    pub(super) search: Search,
    pub(super) failures: u64,
}

/// What the pings of a path depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// The tunnel is in use, and every path is to be known.
    pub(crate) busy: bool,
    /// Silence that is probed while it is.
    pub(crate) probe: Span,
}

impl Life {
    pub(super) fn new(largest: u32) -> Self {
        Self {
            up: false,
            open: Vec::with_capacity(MOST_OPEN),
            confirmed: Instant::ZERO,
            last_ping: None,
            missed: 0,
            rtt: None,
            search: Search::new(largest),
            failures: 0,
        }
    }

    /// What was sent on the path has arrived.
    pub(super) fn on_confirmed(&mut self, now: Instant) {
        (self.confirmed, self.missed) = (now, 0);
    }

    /// The next ping is due now.
    pub(super) fn hurry(&mut self) {
        self.last_ping = None;
    }

    fn patience(&self) -> Span {
        self.rtt.map_or(FIRST_PATIENCE, |rtt| Span(rtt.0 * 2).max(LEAST_PATIENCE))
    }

    /// When the next ping is due: for life, or for size.
    pub(super) fn due(&self, habits: Habits) -> Instant {
        self.life_due(habits).min(self.search.due())
    }

    fn life_due(&self, habits: Habits) -> Instant {
        let Some(last) = self.last_ping else { return Instant::ZERO };
        let waiting = self.open.iter().any(|ping| ping.size.is_none());
        let interval = match (self.up, habits.busy) {
            (_, false) if !(self.up && waiting) => IDLE,
            (true, _) if waiting => return last + self.patience(),
            (true, _) => return self.confirmed.max(last) + habits.probe,
            (false, _) => RETRY,
        };
        last + interval
    }

    /// The token of a ping that leaves now, and the datagram's size where that is the question. `None`: nothing is due,
    /// or the path has just failed, as [`up`](Self::up) then tells.
    pub(super) fn poll(&mut self, now: Instant, habits: Habits, random: &mut Stream) -> Option<(u64, Option<u32>)> {
        if self.life_due(habits) <= now {
            let waited = self.open.iter().any(|ping| ping.size.is_none());
            if self.up && waited {
                self.missed += 1;
                if self.missed >= MOST_MISSED {
                    self.fail();
                    return None;
                }
            }
            self.last_ping = Some(now);
            return Some((self.ping(now, None, random), None));
        }
        let patience = self.patience();
        let size = self.search.poll(now, patience)?;
        Some((self.ping(now, Some(size), random), Some(size)))
    }

    fn ping(&mut self, now: Instant, size: Option<u32>, random: &mut Stream) -> u64 {
        if self.open.len() == MOST_OPEN {
            self.open.remove(0);
        }
        let token = random.bits();
        self.open.push(Ping { token, at: now, size });
        token
    }

    /// A ping was answered; `None` if it was none of the open ones.
    pub(super) fn on_pong(&mut self, now: Instant, token: u64) -> Option<Answer> {
        let index = self.open.iter().position(|ping| ping.token == token)?;
        let ping = self.open.remove(index);
        let rtt = now.since(ping.at);
        self.rtt = Some(rtt);
        // Whatever was asked before this one needs no answer any more.
        self.open.retain(|other| other.size.is_some() || other.at > ping.at);
        self.on_confirmed(now);
        let revived = !std::mem::replace(&mut self.up, true);
        if revived {
            self.search.start(now);
        }
        let grown = ping.size.filter(|size| self.search.on_answer(now, *size));
        Some(Answer { rtt, revived, grown })
    }

    /// The path does not work.
    pub(super) fn fail(&mut self) {
        self.up = false;
        self.missed = 0;
        self.failures += 1;
        self.open.clear();
        self.last_ping = None;
        self.search.stop();
    }
}
