//! Notifications of events: by a program of the operator (a hook), a request to a web server, or both.
//!
//! The tunnel never waits for notifications: events wait in bounded queues, and those that do not fit are counted.

mod hook;
mod webhook;

pub use hook::run_hooks;
pub(crate) use hook::{HookPipe, start_runner};
pub use webhook::Webhook;

use crate::event::{Event, EventKind};
use serde::Serialize;
use std::time::Duration;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

/// Maximum burst of notifications; beyond it one is sent per [`REFILL`].
const BURST: u32 = 10;
const REFILL: Duration = Duration::from_secs(60);
/// Maximum number of notifications that wait for a slow web server.
const MAX_WAITING: usize = 32;

/// A notification. Hook and web server get its JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Notification {
    version: u32,
    interface: String,
    host: String,
    /// Notifications that were left out before this one, because there were too many.
    suppressed: u64,
    event: Event,
}

/// The events that cause notifications, and their receivers.
pub(crate) struct Notifier {
    pub(crate) interface: String,
    pub(crate) events: Vec<EventKind>,
    pub(crate) hook: Option<HookPipe>,
    pub(crate) webhook: Option<Webhook>,
}

/// A token bucket.
struct Limiter {
    tokens: u32,
    refilled: Instant,
    suppressed: u64,
}

impl Limiter {
    fn new(now: Instant) -> Self {
        Self { tokens: BURST, refilled: now, suppressed: 0 }
    }

    /// The number of notifications left out before this one, if it may be sent.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let periods = (now - self.refilled).as_secs() / REFILL.as_secs();
        self.refilled += REFILL * u32::try_from(periods).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(u32::try_from(periods).unwrap_or(u32::MAX)).min(BURST);
        if self.tokens == 0 {
            self.suppressed += 1;
            return None;
        }
        self.tokens -= 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

impl Notifier {
    /// Sends notifications until the tunnel ends.
    pub(crate) async fn run(self, mut events: Receiver<Event>) {
        let Self { interface, events: kinds, mut hook, webhook } = self;
        let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let webhook = webhook.map(|webhook| {
            let (sender, receiver) = mpsc::channel(MAX_WAITING);
            tokio::spawn(webhook.run(receiver));
            sender
        });
        let mut limiter = Limiter::new(Instant::now());
        loop {
            let event = match events.recv().await {
                Ok(event) if kinds.contains(&event.kind) => event,
                Ok(_) | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
            let Some(suppressed) = limiter.admit(Instant::now()) else { continue };
            let notification =
                Notification { version: 1, interface: interface.clone(), host: host.clone(), suppressed, event };
            let text = serde_json::to_string(&notification).unwrap_or_default();
            if let Some(Err(error)) = hook.as_mut().map(|hook| hook.send(&text)) {
                warn!("a notification did not reach the hook: {error}");
            }
            if webhook.as_ref().is_some_and(|webhook| webhook.try_send(text).is_err()) {
                warn!("a notification is not sent to the webhook: {MAX_WAITING} others wait for its server");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_notifications_follow_each_other_and_then_one_a_minute_says_how_many_were_left_out() {
        let start = Instant::now();
        let mut limiter = Limiter::new(start);
        let admitted = (0..25).filter(|_| limiter.admit(start).is_some()).count();
        assert_eq!(admitted, 10);
        assert_eq!(limiter.admit(start + REFILL), Some(15));
        assert_eq!(limiter.admit(start + REFILL), None);
        assert_eq!(limiter.admit(start + REFILL * 100), Some(1));
        assert_eq!((0..25).filter(|_| limiter.admit(start + REFILL * 100).is_some()).count(), 9);
    }
}
