//! How well the paths work that answer: each is compared with its own last day.
//!
//! Once a second a path's rate, loss and round trip are taken from its status. What is usual is kept in slots of a
//! quarter of an hour, for a day at most. A path is
//!
//! - *slow* if it carried less than half of its usual rate in each of the last [`SAMPLES`] seconds in which packets
//!   waited for it, until it carries 70 % again;
//! - *lossy* if it lost more than 5 % in ten seconds and in each of five of them, and three times as much as usual, until
//!   it loses half of that: the end of a slow start is a burst of losses;
//! - *delayed* if each round trip in ten seconds without load was longer than twice the usual one and 20 ms, until one
//!   is within one and a half times that and 10 ms;
//! - *flapping* if it went down three times in five minutes, until it has stayed up for five minutes.
//!
//! What is found holds for ten seconds at least. A path without packets keeps what was found for ten minutes.

use super::monitor::{PathKey, path_key};
use crate::event::{Cause, CauseKind, Event, EventKind, EventLevel};
use crate::show::{bits, percent};
use crate::status::{PathState, PathStatus, PeerStatus, TunnelStatus};
use std::collections::{BTreeMap, VecDeque};

/// Seconds in which packets waited, of which the greatest and the median rate count.
const SAMPLES: usize = 5;
/// Age from which such a second no longer counts, s.
const MAX_SAMPLE_AGE_S: f64 = 30.0;
/// Seconds over which loss and round trips are taken.
const WINDOW: usize = 10;
/// The share of its congestion window in flight from which the path is in full use.
const FULL_WINDOW: f64 = 0.9;
/// Length of a slot of the day, s, and their number.
const SLOT_S: f64 = 900.0;
const SLOTS: usize = 96;
/// Packets from which a loss is judged.
const MIN_PACKETS: u64 = 200;
/// Loss from which a path may be lossy.
const MIN_LOSS: f64 = 0.05;
/// Seconds of the window in which it has to lose so much.
const LOSSY_SECONDS: usize = 5;
/// Failures within [`FLAPPING_S`] that are flapping.
const FLAPS: usize = 3;
const FLAPPING_S: f64 = 300.0;
/// How long a finding holds: at least, and without packets.
const HOLD_S: [f64; 2] = [10.0, 600.0];

/// How well a path works.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Quality {
    /// Why it works badly; `None` if it does not.
    pub(super) cause: Option<Cause>,
    /// The rate that it can carry to the peer, bit/s; `None` if packets have not waited for it.
    pub(super) capacity_bps: Option<u64>,
}

/// The paths of a tunnel.
#[derive(Debug, Default)]
pub(super) struct QualityWatch(BTreeMap<PathKey, WatchedQuality>);

impl QualityWatch {
    /// Compares the paths of a status, one of each second. Returns the events of those that got worse or recovered.
    pub(super) fn update(&mut self, status: &TunnelStatus) -> Vec<Event> {
        let mut events = Vec::new();
        let mut watched = BTreeMap::new();
        for (peer, path) in status.paths() {
            let key = path_key(peer.public_key.as_deref(), path);
            let mut quality = self.0.remove(&key).unwrap_or_default();
            let waits = peer.ingress_queue.backlog_packets > 0;
            events.extend(quality.update(status.uptime_s, path, waits).map(|event| of_path(event, peer, path)));
            watched.insert(key, quality);
        }
        self.0 = watched;
        events
    }

    /// What was found.
    pub(super) fn qualities(&self) -> BTreeMap<PathKey, Quality> {
        self.0.iter().map(|(key, watched)| (key.clone(), watched.quality.clone())).collect()
    }
}

fn of_path(event: Event, peer: &PeerStatus, path: &PathStatus) -> Event {
    Event { peer: peer.public_key.clone(), peer_name: peer.name.clone(), path: Some(path.name.clone()), ..event }
}

/// The counters of a path at one time.
#[derive(Clone, Copy, Debug)]
struct Counters {
    uptime_s: f64,
    bytes: u64,
    packets: u64,
    lost: u64,
    failures: u64,
}

/// What is usual in a quarter of an hour.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    rate_bps: Option<f64>,
    rtt_ms: Option<f64>,
    loss: Option<f64>,
}

/// What was seen of a path.
#[derive(Debug, Default)]
struct WatchedQuality {
    last: Option<Counters>,
    /// Times and rates of seconds in which packets waited.
    full: VecDeque<(f64, f64)>,
    /// Packets sent and lost in each second.
    packets: VecDeque<(u64, u64)>,
    /// Round trips of seconds in which none waited, ms.
    rtts_ms: VecDeque<f64>,
    /// When it failed.
    failures: VecDeque<f64>,
    /// The number of the latest slot, and the slots of the day.
    slot: u64,
    day: VecDeque<Slot>,
    /// When what is wrong was found, and when packets last confirmed it.
    found_s: f64,
    confirmed_s: f64,
    quality: Quality,
}

impl WatchedQuality {
    fn update(&mut self, now_s: f64, path: &PathStatus, waits: bool) -> Option<Event> {
        let now = Counters {
            uptime_s: now_s,
            bytes: path.sent.bytes,
            packets: path.sent.packets,
            lost: path.lost_packets,
            failures: path.failures,
        };
        let last = self.last.replace(now)?;
        let seconds = now_s - last.uptime_s;
        if seconds <= 0.0 || now.packets < last.packets {
            return None;
        }
        let failed = now.failures.saturating_sub(last.failures).min(FLAPS as u64);
        self.failures.extend((0..failed).map(|_| now_s));
        self.failures.retain(|at| now_s - at < FLAPPING_S);
        if path.state == PathState::Up {
            self.take(now_s, seconds, path, waits, (&last, &now));
        } else {
            self.full.clear();
            self.packets.clear();
            self.rtts_ms.clear();
        }
        self.judge(now_s, path.state)
    }

    /// Takes the numbers of a second in which the path worked.
    fn take(&mut self, now_s: f64, seconds: f64, path: &PathStatus, waits: bool, (last, now): (&Counters, &Counters)) {
        let (sent, lost) = (now.packets - last.packets, now.lost.saturating_sub(last.lost));
        let rate_bps = now.bytes.saturating_sub(last.bytes) as f64 * 8.0 / seconds;
        let is_window_full =
            path.cwnd_bytes.is_some_and(|cwnd| path.in_flight_bytes as f64 >= cwnd as f64 * FULL_WINDOW);
        let is_full = sent > 0 && (waits && !path.backup && !path.secondary || is_window_full);
        push(&mut self.packets, (sent, lost), WINDOW);
        if is_full {
            let delivered = (1.0 - lost as f64 / sent as f64).max(0.0);
            push(&mut self.full, (now_s, rate_bps * delivered), SAMPLES);
        } else if let Some(rtt_ms) =
            path.probe_rtt_ms.filter(|_| rate_bps < self.usual(|slot| slot.rate_bps).unwrap_or(f64::MAX) / 4.0)
        {
            push(&mut self.rtts_ms, rtt_ms, WINDOW);
        }
        self.full.retain(|(at, _)| now_s - at < MAX_SAMPLE_AGE_S);
        if let Some(median_bps) = self.median_rate_bps() {
            self.quality.capacity_bps = Some(median_bps as u64);
        }
        // What goes through fits.
        self.quality.capacity_bps = self.quality.capacity_bps.map(|capacity| capacity.max(path.send_rate_bps));
        self.note(now_s);
    }

    /// Notes what is usual.
    fn note(&mut self, now_s: f64) {
        let slot = (now_s / SLOT_S) as u64;
        if self.day.is_empty() || slot != self.slot {
            self.slot = slot;
            push(&mut self.day, Slot::default(), SLOTS);
        }
        let (rate_bps, rtt_ms, loss) = (self.median_rate_bps(), self.least_rtt_ms(), self.loss());
        let Some(now) = self.day.back_mut() else { return };
        now.rate_bps = now.rate_bps.into_iter().chain(rate_bps).reduce(f64::max);
        now.rtt_ms = now.rtt_ms.into_iter().chain(rtt_ms).reduce(f64::min);
        now.loss = now.loss.into_iter().chain(loss).reduce(f64::min);
    }

    /// The median of what was usual in the day.
    fn usual(&self, value: fn(&Slot) -> Option<f64>) -> Option<f64> {
        median(self.day.iter().filter_map(value))
    }

    fn median_rate_bps(&self) -> Option<f64> {
        median(self.full.iter().map(|(_, rate)| *rate)).filter(|_| self.full.len() == SAMPLES)
    }

    fn least_rtt_ms(&self) -> Option<f64> {
        self.rtts_ms.iter().copied().reduce(f64::min).filter(|_| self.rtts_ms.len() == WINDOW)
    }

    fn loss(&self) -> Option<f64> {
        let (sent, lost) = self.packets.iter().fold((0, 0), |(sent, lost), now| (sent + now.0, lost + now.1));
        (sent >= MIN_PACKETS).then(|| (lost as f64 / sent as f64).min(1.0))
    }

    /// Finds what is wrong, or that it no longer is.
    fn judge(&mut self, now_s: f64, state: PathState) -> Option<Event> {
        let before = self.quality.cause.as_ref().map(|cause| cause.kind);
        let found = [Self::flapping, Self::slow, Self::lossy, Self::delayed].iter().find_map(|find| find(self, before));
        let held_s = now_s - self.found_s;
        match (before, found) {
            (Some(_), None) if state == PathState::Up && !self.is_over(now_s, held_s) => None,
            (Some(_), None) => {
                self.quality.cause = None;
                // A path that is down has an event about that.
                (state == PathState::Up)
                    .then(|| Event::new(EventLevel::Info, EventKind::PathRecovered, "works as usual again"))
            }
            (_, Some(cause)) => {
                self.confirmed_s = now_s;
                let is_new = before != Some(cause.kind);
                let event = || {
                    let flaps = cause.kind == CauseKind::Flapping;
                    let kind = if flaps { EventKind::PathFlapping } else { EventKind::PathDegraded };
                    let event = Event::new(EventLevel::Warn, kind, cause.text.clone());
                    Event { remedy: Some(cause.remedy.clone()), ..event }
                };
                let event = is_new.then(event);
                if is_new {
                    self.found_s = now_s;
                }
                self.quality.cause = Some(cause);
                event
            }
            (None, None) => None,
        }
    }

    /// Whether a finding that is not confirmed any more is over: there were packets that show it, or none for long.
    fn is_over(&self, now_s: f64, held_s: f64) -> bool {
        let kind = self.quality.cause.as_ref().map(|cause| cause.kind);
        let is_seen = match kind {
            Some(CauseKind::Slow) => self.full.len() == SAMPLES || self.usual(|slot| slot.rate_bps).is_none(),
            Some(CauseKind::Lossy) => self.loss().is_some(),
            Some(CauseKind::Delayed) => self.least_rtt_ms().is_some(),
            _ => true,
        };
        held_s >= HOLD_S[0] && is_seen || now_s - self.confirmed_s >= HOLD_S[1]
    }

    fn flapping(&self, before: Option<CauseKind>) -> Option<Cause> {
        let least = if before == Some(CauseKind::Flapping) { 1 } else { FLAPS };
        (self.failures.len() >= least).then(|| Cause {
            kind: CauseKind::Flapping,
            text: format!("went down {} times in five minutes", self.failures.len()),
            remedy: "look at the plug, the antenna and the modem's log".into(),
        })
    }

    fn slow(&self, before: Option<CauseKind>) -> Option<Cause> {
        let usual_bps = self.usual(|slot| slot.rate_bps)?;
        let (median_bps, greatest_bps) =
            (self.median_rate_bps()?, self.full.iter().map(|(_, rate)| *rate).reduce(f64::max)?);
        let is_slow =
            if before == Some(CauseKind::Slow) { median_bps < usual_bps * 0.7 } else { greatest_bps < usual_bps / 2.0 };
        let (rate, usual) = (bits(median_bps as u64), bits(usual_bps as u64));
        is_slow.then(|| Cause {
            kind: CauseKind::Slow,
            text: format!("carries {rate}, usually {usual}"),
            remedy: "`ropewalk test` measures it alone; ask the line's provider if it stays so".into(),
        })
    }

    fn lossy(&self, before: Option<CauseKind>) -> Option<Cause> {
        let (loss, usual) = (self.loss()?, self.usual(|slot| slot.loss).unwrap_or(0.0));
        let limit = MIN_LOSS.max(usual * 3.0);
        let is_over = |(sent, lost): &&(u64, u64)| *lost as f64 > limit * *sent as f64;
        let is_lossy = match before {
            Some(CauseKind::Lossy) => loss > limit / 2.0,
            _ => loss > limit && self.packets.iter().filter(is_over).count() >= LOSSY_SECONDS,
        };
        is_lossy.then(|| Cause {
            kind: CauseKind::Lossy,
            text: format!("loses {} of its packets, usually {}", percent(loss), percent(usual)),
            remedy: "look at the signal of a radio, and at the cable of a wire".into(),
        })
    }

    fn delayed(&self, before: Option<CauseKind>) -> Option<Cause> {
        let (rtt_ms, usual_ms) = (self.least_rtt_ms()?, self.usual(|slot| slot.rtt_ms)?);
        let (factor, more_ms) = if before == Some(CauseKind::Delayed) { (1.5, 10.0) } else { (2.0, 20.0) };
        (rtt_ms > usual_ms * factor + more_ms).then(|| Cause {
            kind: CauseKind::Delayed,
            text: format!("its round trip takes {rtt_ms:.0} ms without load, usually {usual_ms:.0} ms"),
            remedy: "`traceroute` on this line tells where; others may fill the line, or its provider took another way"
                .into(),
        })
    }
}

fn push<T>(queue: &mut VecDeque<T>, value: T, limit: usize) {
    if queue.len() == limit {
        queue.pop_front();
    }
    queue.push_back(value);
}

/// The median; of an even number the lower one.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests;
