//! The bounded log of events: kept for `GET /v1/events`, sent to subscribers, and written to the journal.

use super::metrics::EventCounts;
use crate::event::{Event, EventKind, EventLevel};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast;
use tracing::{error, info, warn};

/// Number of events that the log keeps, and by which a subscriber may fall behind.
pub const MAX_EVENTS: usize = 512;

/// The events of a daemon, the latest [`MAX_EVENTS`].
#[derive(Debug)]
pub struct EventLog {
    ring: Mutex<Ring>,
    subscribers: broadcast::Sender<Event>,
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Event>,
    latest_sequence: u64,
    counts: EventCounts,
}

impl Default for EventLog {
    fn default() -> Self {
        Self { ring: Mutex::default(), subscribers: broadcast::Sender::new(MAX_EVENTS) }
    }
}

impl EventLog {
    /// Numbers an event, dates it if it has no date, writes it to the journal, keeps it and sends it to the subscribers.
    pub fn push(&self, event: Event) {
        let unix_ms = if event.unix_ms == 0 { unix_ms() } else { event.unix_ms };
        let event = {
            // Poisoned only if this code panicked.
            let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
            ring.latest_sequence += 1;
            let event = Event { sequence: ring.latest_sequence, unix_ms, ..event };
            if ring.events.len() == MAX_EVENTS {
                ring.events.pop_front();
            }
            ring.events.push_back(event.clone());
            *ring.counts.entry((event.kind, event.level)).or_default() += 1;
            event
        };
        write_to_journal(&event);
        // It fails without subscribers.
        let _ = self.subscribers.send(event);
    }

    /// The kept events whose sequence is greater than `sequence`, the oldest first.
    #[must_use]
    pub fn since(&self, sequence: u64) -> Vec<Event> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.events.iter().filter(|event| event.sequence > sequence).cloned().collect()
    }

    /// The latest `count` events, the oldest first. Of events in a row that say the same, only the latest is among them, so
    /// that one that repeats does not hide the others.
    #[must_use]
    pub fn latest(&self, count: usize) -> Vec<Event> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latest: Vec<Event> = Vec::with_capacity(count);
        for event in ring.events.iter().rev() {
            if latest.last().is_none_or(|newer| !newer.says_the_same(event)) {
                if latest.len() == count {
                    break;
                }
                latest.push(event.clone());
            }
        }
        latest.reverse();
        latest
    }

    /// The number of events since the start, by kind and level.
    #[must_use]
    pub fn counts(&self) -> EventCounts {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).counts.clone()
    }

    /// All events from now on. A receiver that falls behind by more than [`MAX_EVENTS`] gets the number of lost events.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.subscribers.subscribe()
    }
}

impl Event {
    /// An event without a subject, to be numbered and dated by [`EventLog::push`].
    #[must_use]
    pub fn new(level: EventLevel, kind: EventKind, message: impl Into<String>) -> Self {
        Self { level, kind, message: message.into(), ..Self::default() }
    }

    /// Whether the two differ in their number and time at most.
    fn says_the_same(&self, other: &Self) -> bool {
        Self { sequence: other.sequence, unix_ms: other.unix_ms, ..self.clone() } == *other
    }
}

/// Milliseconds since the Unix epoch.
pub(super) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
}

fn write_to_journal(event: &Event) {
    let Event { kind, peer, peer_name, path, message, remedy, .. } = event;
    let kind = kind.to_string();
    let (peer, name, path, remedy) = (peer.as_deref(), peer_name.as_deref(), path.as_deref(), remedy.as_deref());
    match event.level {
        EventLevel::Info => info!(kind, peer, name, path, remedy, "{message}"),
        EventLevel::Warn => warn!(kind, peer, name, path, remedy, "{message}"),
        EventLevel::Error => error!(kind, peer, name, path, remedy, "{message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize) -> Event {
        Event::new(EventLevel::Info, EventKind::Reload, number.to_string())
    }

    #[test]
    fn the_log_keeps_the_latest_events_and_numbers_all() {
        let log = EventLog::default();
        let mut subscriber = log.subscribe();
        (1..=MAX_EVENTS + 3).for_each(|number| log.push(event(number)));
        let kept = log.since(0);
        assert_eq!(kept.len(), MAX_EVENTS);
        assert_eq!((kept[0].sequence, kept[0].message.as_str()), (4, "4"));
        assert_eq!(log.since(MAX_EVENTS as u64 + 2), log.latest(1));
        assert!(log.since(MAX_EVENTS as u64 + 3).is_empty());
        assert_eq!(subscriber.try_recv(), Err(broadcast::error::TryRecvError::Lagged(3)));
        assert_eq!(subscriber.try_recv().map(|event| event.sequence), Ok(4));
    }

    #[test]
    fn an_event_that_repeats_does_not_hide_the_others_among_the_latest() {
        let log = EventLog::default();
        [1, 2, 3, 3, 3, 4, 4, 3].iter().for_each(|number| log.push(event(*number)));
        let latest = |count| log.latest(count).iter().map(|event| event.sequence).collect::<Vec<_>>();
        assert_eq!((latest(4), latest(1), latest(9)), (vec![2, 5, 7, 8], vec![8], vec![1, 2, 5, 7, 8]));
    }
}
