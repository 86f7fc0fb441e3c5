//! The sending end of a connection.

use crate::config::KeepaliveConfig;
use crate::keepalive::Keepalive;
use crate::liveness::Liveness;
use crate::path_assigner::PathAssigner;
use schedule::Scheduler;
use units::{Instant, PathId};
use wire::gre;

/// Status of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathStatus {
    /// Whether the path carries packets.
    pub up: bool,
    /// Number of times that the path went down.
    pub failures: u64,
}

#[derive(Debug)]
struct Path {
    liveness: Liveness,
    up: bool,
    failures: u64,
}

/// Distributes packets over the paths that are up, and sends keepalives.
#[derive(Debug)]
pub struct Sender {
    path_assigner: PathAssigner,
    paths: Vec<Path>,
    keepalive: [u8; Keepalive::LEN],
    no_path_packets: u64,
    deadline: Instant,
}

impl Sender {
    /// A sender that has sent nothing. All paths are up, as in MPT. Without `keepalive`, paths never go down.
    #[must_use]
    pub fn new(
        scheduler: Box<dyn Scheduler>,
        paths: usize,
        addresses: Keepalive,
        keepalive: Option<KeepaliveConfig>,
    ) -> Self {
        let path = || Path { liveness: Liveness::new(keepalive), up: true, failures: 0 };
        let mut sender = Self {
            path_assigner: PathAssigner::new(scheduler, paths),
            paths: (0..paths).map(|_| path()).collect(),
            keepalive: addresses.to_bytes(),
            no_path_packets: 0,
            deadline: Instant::NEVER,
        };
        sender.update_deadline();
        sender
    }

    /// The path and the GRE header of the next packet, of at most `bytes` and this EtherType. `None` if no path is up.
    pub fn assign(&mut self, now: Instant, bytes: u32, protocol: u16) -> Option<(PathId, gre::Header)> {
        let Some((sequence, path)) = self.path_assigner.assign(now, bytes) else {
            self.no_path_packets += 1;
            return None;
        };
        Some((path, gre::Header { protocol, sequence: Some(sequence as u32), ..gre::Header::default() }))
    }

    /// Packets that no path could carry.
    #[must_use]
    pub fn no_path_packets(&self) -> u64 {
        self.no_path_packets
    }

    /// A datagram of the peer was received on a path.
    pub fn on_received(&mut self, now: Instant, path: PathId) {
        self.update_liveness(path, |liveness| liveness.on_received(now));
    }

    /// The interface of a path refused a datagram: the path is suspended for a second.
    pub fn suspend(&mut self, now: Instant, path: PathId) {
        self.update_liveness(path, |liveness| liveness.suspend(now));
    }

    /// The interface of a path is up or down.
    pub fn set_link(&mut self, path: PathId, up: bool) {
        self.update_liveness(path, |liveness| liveness.is_link_up = up);
    }

    /// When [`poll_keepalive`](Self::poll_keepalive) is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// A path on which a [`keepalive`](Self::keepalive) is to be sent now; to be called until there is none.
    pub fn poll_keepalive(&mut self, now: Instant) -> Option<PathId> {
        for path in (0..self.paths.len() as u16).map(PathId) {
            if self.paths[path.index()].liveness.deadline() > now {
                continue;
            }
            let mut is_due = false;
            self.update_liveness(path, |liveness| is_due = liveness.on_timeout(now));
            if is_due {
                return Some(path);
            }
        }
        None
    }

    /// The UDP payload of a keepalive.
    #[must_use]
    pub fn keepalive(&self) -> &[u8; Keepalive::LEN] {
        &self.keepalive
    }

    /// Status of a path.
    #[must_use]
    pub fn status(&self, path: PathId) -> PathStatus {
        let Path { up, failures, .. } = self.paths[path.index()];
        PathStatus { up, failures }
    }

    /// Updates the liveness of a path, and whether the path assigner may use it.
    fn update_liveness(&mut self, id: PathId, operation: impl FnOnce(&mut Liveness)) {
        let path = &mut self.paths[id.index()];
        operation(&mut path.liveness);
        let up = path.liveness.is_up();
        if up != path.up {
            path.up = up;
            path.failures += u64::from(!up);
            self.path_assigner.set_usable(id, up);
        }
        self.update_deadline();
    }

    fn update_deadline(&mut self) {
        self.deadline = self.paths.iter().map(|path| path.liveness.deadline()).min().unwrap_or(Instant::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::net::IpAddr;
    use units::Span;

    fn millis(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn sender() -> Sender {
        sender_with(Some(KeepaliveConfig::new(Span::from_millis(100))))
    }

    fn sender_with(keepalive: Option<KeepaliveConfig>) -> Sender {
        let entry = schedule::find("packet-round-robin").expect("registered");
        let scheduler = entry.scheduler(&[1, 1], 0, &BTreeMap::new()).expect("no parameters");
        let [sender, receiver] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        Sender::new(scheduler, 2, Keepalive { sender, receiver }, keepalive)
    }

    #[test]
    fn without_keepalives_nothing_is_ever_due() {
        assert_eq!(sender_with(None).deadline(), Instant::NEVER);
        assert_eq!(sender().deadline(), Instant::ZERO);
    }

    #[test]
    fn packets_avoid_a_path_without_keepalives_until_one_arrives() {
        let mut sender = sender();
        let keepalives: Vec<_> = std::iter::from_fn(|| sender.poll_keepalive(millis(0))).collect();
        assert_eq!(keepalives, [PathId(0), PathId(1)]);
        assert_eq!(sender.deadline(), millis(100));
        sender.on_received(millis(250), PathId(1));
        while sender.poll_keepalive(millis(300)).is_some() {}
        let paths = |sender: &mut Sender| -> Vec<_> {
            (0..4).filter_map(|_| sender.assign(millis(300), 1400, gre::IPV4)).map(|(path, _)| path.0).collect()
        };
        assert_eq!(paths(&mut sender), [1, 1, 1, 1]);
        assert_eq!(sender.status(PathId(0)).failures, 1);
        sender.on_received(millis(310), PathId(0));
        assert!(paths(&mut sender).contains(&0));
    }

    #[test]
    fn without_a_path_packets_are_counted_and_no_number_is_used() {
        let mut sender = sender();
        [PathId(0), PathId(1)].into_iter().for_each(|path| sender.set_link(path, false));
        assert_eq!(sender.assign(millis(1), 1400, gre::IPV6), None);
        sender.set_link(PathId(1), true);
        let (path, header) = sender.assign(millis(1), 1400, gre::IPV6).expect("a path is up");
        assert_eq!((path, header.sequence, header.protocol), (PathId(1), Some(0), gre::IPV6));
        assert_eq!(sender.no_path_packets(), 1);
    }
}
