//! What differs between two configurations of a running tunnel, and what of it can change without a restart.

use super::{Config, Path, Peer};

/// One step from the old configuration to the new one.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The path of this name goes.
    RemovePath(String),
    /// A new path, or one bound otherwise than the old one of its name, which was removed before.
    AddPath(Path),
    /// The path of this name stays bound, and has other properties.
    SetPath(Path),
    /// The peer at this place of the list has other networks, another endpoint or another preshared key.
    SetPeer(usize, Peer),
    /// A new peer, at the end of the list.
    AddPeer(Peer),
    /// The peer with this key goes.
    RemovePeer(Peer),
    /// These keys changed, which only a restart can do.
    NeedsRestart(Vec<&'static str>),
}

/// The steps from `old` to `new`, in the order in which they are made; none if nothing differs.
#[must_use]
pub fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let mut steps = paths(&old.paths, &new.paths);
    steps.extend(peers(&old.peers, &new.peers));
    let fixed = [
        ("interface.mode", old.mode != new.mode),
        ("interface", old.interface != new.interface),
        ("tunnel", old.carriage != new.carriage),
    ];
    let fixed: Vec<_> = fixed.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect();
    if !fixed.is_empty() {
        steps.push(Change::NeedsRestart(fixed));
    }
    steps
}

fn paths(old: &[Path], new: &[Path]) -> Vec<Change> {
    let named = |paths: &[Path], name: &str| paths.iter().find(|path| path.name == name).cloned();
    let stays = |path: &Path| named(new, &path.name).is_some_and(|other| is_same_socket(path, &other));
    let removed = old.iter().filter(|path| !stays(path)).map(|path| Change::RemovePath(path.name.clone()));
    let kept = new.iter().filter_map(|path| match named(old, &path.name) {
        Some(before) if before == *path => None,
        Some(before) if is_same_socket(&before, path) => Some(Change::SetPath(path.clone())),
        _ => Some(Change::AddPath(path.clone())),
    });
    removed.chain(kept).collect()
}

/// Both can live on the same socket.
fn is_same_socket(a: &Path, b: &Path) -> bool {
    (&a.interface, a.source, a.listen_port, &a.endpoint) == (&b.interface, b.source, b.listen_port, &b.endpoint)
}

fn peers(old: &[Peer], new: &[Peer]) -> Vec<Change> {
    let place = |peers: &[Peer], peer: &Peer| peers.iter().position(|it| it.public_key == peer.public_key);
    let removed = old.iter().filter(|peer| place(new, peer).is_none()).map(|peer| Change::RemovePeer(peer.clone()));
    let kept = new.iter().filter_map(|peer| match place(old, peer) {
        Some(at) if old[at] == *peer => None,
        Some(at) => Some(Change::SetPeer(at, peer.clone())),
        None => Some(Change::AddPeer(peer.clone())),
    });
    removed.chain(kept).collect()
}
