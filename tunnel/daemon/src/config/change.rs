//! What differs between two configurations of a running tunnel, and what of it can change without a restart.

use super::{Carriage, Config, Interface, Mode, Path, Peer};

/// One step from the old configuration to the new one.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The path of this name goes.
    RemovePath(String),
    /// A new path, or one that is bound or leads otherwise than the old one of its name, which was removed before.
    AddPath(Path),
    /// The path of this name stays where it is, and has other properties.
    SetPath(Path),
    /// The peer with this public key has other values under these keys.
    SetPeer(Peer, Vec<&'static str>),
    /// A new peer.
    AddPeer(Peer),
    /// The peer with this public key goes.
    RemovePeer(Peer),
    /// These keys of the device changed.
    SetInterface(Vec<&'static str>),
    /// These keys changed, which only a restart can do.
    NeedsRestart(Vec<&'static str>),
}

/// The steps from `old` to `new`; none if nothing differs. What needs a restart is the last one.
#[must_use]
pub fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let mut steps = paths(&old.paths, &new.paths);
    steps.extend(peers(&old.peers, &new.peers));
    let mut fixed = fixed(old, new);
    if matches!(new.mode, Mode::Mpt(_)) {
        fixed.extend(fixed_in_mpt(&steps));
    }
    let device = device(&old.interface, &new.interface);
    if !device.is_empty() {
        steps.push(Change::SetInterface(device));
    }
    if !fixed.is_empty() {
        steps.push(Change::NeedsRestart(fixed));
    }
    steps
}

/// The keys whose values differ.
fn differing<const N: usize>(keys: [(&'static str, bool); N]) -> Vec<&'static str> {
    keys.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}

fn device(old: &Interface, new: &Interface) -> Vec<&'static str> {
    differing([
        ("interface.address", old.addresses != new.addresses),
        ("interface.mtu", old.mtu != new.mtu),
        ("interface.routes", old.routes != new.routes),
    ])
}

/// What the process is made of. A listen-port is that of the paths.
fn fixed(old: &Config, new: &Config) -> Vec<&'static str> {
    let mode = match (&old.mode, &new.mode) {
        (Mode::Ropewalk { .. }, Mode::Ropewalk { .. }) => "interface.private-key",
        (Mode::Mpt(_), Mode::Mpt(_)) => "mpt",
        _ => "interface.mode",
    };
    let of_interface = |it: &Interface| (it.name.clone(), it.user.clone(), it.metrics);
    let (was, is) = (of_interface(&old.interface), of_interface(&new.interface));
    let mut keys = differing([
        (mode, old.mode != new.mode),
        ("interface.name", was.0 != is.0),
        ("interface.user", was.1 != is.1),
        ("interface.metrics", was.2 != is.2),
    ]);
    keys.extend(carriage(&old.carriage, &new.carriage));
    keys
}

fn carriage(old: &Carriage, new: &Carriage) -> Vec<&'static str> {
    differing([
        ("tunnel.congestion", old.congestion != new.congestion),
        ("tunnel.scheduler", old.scheduler != new.scheduler),
        ("tunnel.repair", old.repair != new.repair),
        ("tunnel.order", old.order != new.order),
        ("tunnel.late", old.late != new.late),
        ("tunnel.max-hold", old.max_hold != new.max_hold),
    ])
}

/// MPT's two halves have one numbering over a fixed set of paths, and nothing by which they could tell each other.
fn fixed_in_mpt(steps: &[Change]) -> Vec<&'static str> {
    let is_path = |step: &Change| matches!(step, Change::RemovePath(_) | Change::AddPath(_) | Change::SetPath(_));
    let path = steps.iter().any(is_path).then_some("path (in `mpt` mode)");
    let of_peer = steps.iter().flat_map(|step| match step {
        Change::SetPeer(_, keys) => keys.as_slice(),
        _ => &[],
    });
    path.into_iter().chain(of_peer.copied().filter(|key| *key != ALLOWED)).collect()
}

fn paths(old: &[Path], new: &[Path]) -> Vec<Change> {
    let named = |paths: &[Path], name: &str| paths.iter().find(|path| path.name == name).cloned();
    let stays = |path: &Path| named(new, &path.name).is_some_and(|other| is_same_way(path, &other));
    let removed = old.iter().filter(|path| !stays(path)).map(|path| Change::RemovePath(path.name.clone()));
    let kept = new.iter().filter_map(|path| match named(old, &path.name) {
        Some(before) if before == *path => None,
        Some(before) if is_same_way(&before, path) => Some(Change::SetPath(path.clone())),
        _ => Some(Change::AddPath(path.clone())),
    });
    removed.chain(kept).collect()
}

/// Both are bound alike and lead to the same place.
fn is_same_way(a: &Path, b: &Path) -> bool {
    (&a.interface, a.source, a.listen_port, &a.endpoint) == (&b.interface, b.source, b.listen_port, &b.endpoint)
}

const ALLOWED: &str = "peer.allowed-ips";

fn peers(old: &[Peer], new: &[Peer]) -> Vec<Change> {
    let find = |peers: &[Peer], peer: &Peer| peers.iter().find(|it| it.public_key == peer.public_key).cloned();
    let removed = old.iter().filter(|peer| find(new, peer).is_none()).map(|peer| Change::RemovePeer(peer.clone()));
    let kept = new.iter().filter_map(|peer| match find(old, peer) {
        Some(before) if before == *peer => None,
        Some(before) => Some(Change::SetPeer(peer.clone(), of_peer(&before, peer))),
        None => Some(Change::AddPeer(peer.clone())),
    });
    removed.chain(kept).collect()
}

fn of_peer(old: &Peer, new: &Peer) -> Vec<&'static str> {
    differing([
        (ALLOWED, old.allowed_ips != new.allowed_ips),
        ("peer.endpoint", old.endpoint != new.endpoint),
        ("peer.preshared-key", old.preshared_key != new.preshared_key),
        ("peer.address", old.address != new.address),
    ])
}
