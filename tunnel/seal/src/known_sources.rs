//! The sources from which peers recently authenticated. Initiations from them have a budget of their own, so that
//! strangers cannot lock out a known peer.

use std::collections::{BTreeMap, VecDeque};

use units::Instant;

use crate::device::PeerId;
use crate::rate_limit::{Rate, TokenBucket};
use crate::source::Source;

/// Number of sources remembered for each peer: one for each path of a tunnel.
const SOURCES_PER_PEER: usize = 16;
/// Initiations per second from one source; also the burst. Others may share a peer's address, and on another port that
/// of a network address translator.
const SOURCE_LIMIT: Rate = Rate::per_second(10);

/// The latest sources of each peer.
#[derive(Default)]
pub(crate) struct KnownSources {
    /// Sources with their port, and addresses without one.
    known: BTreeMap<Source, KnownSource>,
    /// The latest sources of each peer, the oldest one first.
    latest: BTreeMap<PeerId, VecDeque<Source>>,
}

#[derive(Default)]
struct KnownSource {
    /// Entries of `latest` that have this source.
    references: usize,
    bucket: TokenBucket,
}

impl KnownSources {
    /// A peer authenticated from `source`. Its least recent source is forgotten if there are too many.
    pub(crate) fn remember(&mut self, peer: PeerId, source: Source) {
        let latest = self.latest.entry(peer).or_default();
        if let Some(position) = latest.iter().position(|known| *known == source) {
            latest.remove(position);
            latest.push_back(source);
            return;
        }
        latest.push_back(source);
        let forgotten = (latest.len() > SOURCES_PER_PEER).then(|| latest.pop_front()).flatten();
        for key in [source, source.address()] {
            self.known.entry(key).or_default().references += 1;
        }
        forgotten.into_iter().for_each(|source| self.release(source));
    }

    /// Forgets the sources of a peer.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        for source in self.latest.remove(&peer).unwrap_or_default() {
            self.release(source);
        }
    }

    fn release(&mut self, source: Source) {
        for key in [source, source.address()] {
            if let Some(known) = self.known.get_mut(&key) {
                known.references -= 1;
                if known.references == 0 {
                    self.known.remove(&key);
                }
            }
        }
    }

    /// Whether a peer recently authenticated from `source`.
    pub(crate) fn contains(&self, source: &Source) -> bool {
        self.known.contains_key(source)
    }

    /// Charges an initiation to `source`, or to its address if only that is known. Returns what was charged; `None` if
    /// neither is known or has a token.
    pub(crate) fn take(&mut self, now: Instant, source: &Source) -> Option<Source> {
        let mut keys = [*source, source.address()].into_iter();
        keys.find(|key| self.known.get_mut(key).is_some_and(|known| known.bucket.take(now, SOURCE_LIMIT)))
    }

    /// Takes back a charge.
    pub(crate) fn refund(&mut self, charged: &Source) {
        if let Some(known) = self.known.get_mut(charged) {
            known.bucket.refund(SOURCE_LIMIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_000_000_000);

    fn source(host: u8, port: u8) -> Source {
        Source::new(&[192, 0, 2, host, 0, port])
    }

    #[test]
    fn the_latest_sixteen_sources_of_each_peer_are_known() {
        let mut known = KnownSources::default();
        known.remember(PeerId(1), source(200, 1));
        for host in 0..100 {
            known.remember(PeerId(0), source(host, 1));
            known.remember(PeerId(0), source(50, 1));
        }
        let is_known = |known: &mut KnownSources, host| known.take(NOW, &source(host, 1)).is_some();
        let latest: Vec<u8> = (0..100).filter(|host| is_known(&mut known, *host)).collect();
        assert!(latest.iter().copied().eq(std::iter::once(50).chain(85..100)), "{latest:?}");
        assert!(is_known(&mut known, 200), "a peer cannot displace another's");
        assert_eq!(known.known.len(), 2 * 17);
        known.forget(PeerId(0));
        known.forget(PeerId(1));
        assert!(known.known.is_empty() && known.latest.is_empty());
    }

    #[test]
    fn who_shares_the_address_by_another_port_cannot_use_up_the_sources_budget() {
        let mut known = KnownSources::default();
        known.remember(PeerId(0), source(1, 1));
        let neighbour = (0..1000).filter(|_| known.take(NOW, &source(1, 2)).is_some()).count();
        assert_eq!(neighbour, 10);
        assert_eq!((0..1000).filter(|_| known.take(NOW, &source(1, 1)).is_some()).count(), 10);
    }
}
