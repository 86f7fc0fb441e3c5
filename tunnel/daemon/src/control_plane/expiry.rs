//! Tokens and clients whose time ends. The server's clock decides.

use super::handle::DataPlaneHandle;
use super::reload::Reloader;
use super::server::Request;
use crate::config::{ConfiguredPeer, TunnelConfig, unix_time};
use crate::event::{Event, EventKind, EventLevel};
use std::collections::BTreeMap;

/// A client's end is announced when less than these times are left, in seconds: a week, and a day.
const NOTICES: [u64; 2] = [7 * 86_400, 86_400];
/// By how much the clock goes back, seconds, before clients that were left out are looked at again.
const STEP_BACK: u64 = 60;

/// What was reported, and the latest time of the clock.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    /// The number of notices about the end of a peer's time, by the peer's name.
    told: BTreeMap<(String, u64), usize>,
    latest: u64,
}

impl Expiry {
    /// The events about clients whose time ends soon, each notice once.
    fn notices(&mut self, config: &TunnelConfig, now: u64) -> Vec<Event> {
        let mut events = Vec::new();
        for peer in &config.peers {
            let (Some(name), Some(end)) = (&peer.name, peer.expires.filter(|end| *end > now)) else { continue };
            let due = NOTICES.iter().filter(|before| end - now <= **before).count();
            let told = self.told.entry((name.clone(), end)).or_default();
            if due > *told {
                *told = due;
                let message = format!("its time ends in {}", span(end - now));
                let remedy = format!("`ropewalk setup server --expire {name}=90d` gives it more time");
                let event = Event { remedy: Some(remedy), ..of_peer(peer, EventLevel::Warn, message) };
                events.push(event);
            }
        }
        self.told.retain(|(name, end), _| {
            config.peers.iter().any(|peer| peer.name.as_ref() == Some(name) && peer.expires == Some(*end))
        });
        events
    }
}

/// `3 days`, or `5 h`.
fn span(seconds: u64) -> String {
    if seconds >= 2 * 86_400 { format!("{} days", seconds / 86_400) } else { format!("{} h", seconds.div_ceil(3600)) }
}

fn of_peer(peer: &ConfiguredPeer, level: EventLevel, message: String) -> Event {
    let key = peer.public_key.map(|key| key.to_string());
    Event { peer: key, peer_name: peer.name.clone(), ..Event::new(level, EventKind::Enrolment, message) }
}

/// Whether the time of a peer, or of its token, is over.
pub(super) fn is_over(peer: &ConfiguredPeer, now: u64) -> bool {
    [peer.token_expires, peer.expires].into_iter().flatten().any(|end| end <= now)
}

impl Reloader {
    /// Removes the peers whose time is over, so that their keys open no session, and reports those whose time ends soon. After
    /// a clock was set back, clients that were left out have their time again.
    pub(super) async fn expire(&mut self, data_plane: &dyn DataPlaneHandle) -> Vec<Event> {
        let now = unix_time();
        let went_back = now + STEP_BACK < self.expiry.latest;
        self.expiry.latest = now;
        if went_back && self.control.config.interface.peers_file.is_some() {
            // Its own event would repeat at each step of a clock that is wrong.
            let _ = self.handle(&Request::Reload, data_plane).await;
        }
        let mut events = self.expiry.notices(&self.control.config, now);
        let over: Vec<_> = self.control.config.peers.iter().filter(|peer| is_over(peer, now)).cloned().collect();
        if over.is_empty() {
            return events;
        }
        let mut config = self.control.config.clone();
        config.peers.retain(|peer| !is_over(peer, now));
        let failure = self.change_to(config, data_plane).await.err();
        events.extend(over.iter().map(|peer| ended(peer, failure.as_deref())));
        events
    }
}

/// The event about a peer whose time is over.
fn ended(peer: &ConfiguredPeer, failure: Option<&str>) -> Event {
    let name = peer.name.as_deref().unwrap_or("a peer");
    let what = if peer.token_expires.is_some() {
        format!("the token of {name} has expired")
    } else {
        format!("the time of {name} is over: its session ends")
    };
    match failure {
        None => of_peer(peer, EventLevel::Info, what),
        Some(error) => of_peer(peer, EventLevel::Warn, format!("{what}, but it is not removed: {}", error.trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_notice_is_given_once_and_again_for_another_end() {
        let text = "[interface]\naddress = \"10.77.0.1/24\"\nprivate-key = \"PRIVATE\"\nlisten-port = 4754\n\
                    [[peer]]\nname = \"a\"\npublic-key = \"PUBLIC\"\nallowed-ips = \"10.77.0.2/32\"\n";
        let private = crate::keys::genkey();
        let public = crate::keys::pubkey(&crate::keys::genkey()).unwrap();
        let text = text.replace("PRIVATE", private.trim()).replace("PUBLIC", public.trim());
        let mut config = crate::config::parse("a", &text, std::path::Path::new("a.toml")).unwrap();
        let end = 100 * 86_400;
        config.peers[0].expires = Some(end);
        let mut expiry = Expiry::default();
        let mut count = |config: &TunnelConfig, now| expiry.notices(config, now).len();
        let days = |number: u64| end - number * 86_400;
        assert_eq!([8, 7, 6, 2, 1, 1].map(|number| count(&config, days(number))), [0, 1, 0, 0, 1, 0]);
        assert_eq!(count(&config, end), 0, "it is over");
        assert!(is_over(&config.peers[0], end) && !is_over(&config.peers[0], end - 1));
        // More time, and its end.
        config.peers[0].expires = Some(end + 20 * 86_400);
        assert_eq!([count(&config, end), count(&config, end + 19 * 86_400)], [0, 1]);
    }
}
