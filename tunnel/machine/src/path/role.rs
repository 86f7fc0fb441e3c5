//! How a path is used: what this end configures and what the peer says of it.

use super::TunnelPath;
use crate::config::PathClasses;
use wire::frame::{PathName, PathState};

/// When a path carries packets, the most often used first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathRole {
    /// Always.
    Regular,
    /// While the regular paths are full, or none works.
    Secondary,
    /// While no other path works.
    Backup,
}

impl TunnelPath {
    /// The role that either end gives the path; the less used one if they differ.
    #[inline]
    pub(crate) fn role(&self) -> PathRole {
        let is_backup = self.config.backup || self.config.metered;
        let own = match (is_backup, self.config.secondary) {
            (true, _) => PathRole::Backup,
            (false, true) => PathRole::Secondary,
            (false, false) => PathRole::Regular,
        };
        let peers = match self.peer_state {
            PathState::Backup | PathState::Metered => PathRole::Backup,
            PathState::Secondary => PathRole::Secondary,
            PathState::Regular | PathState::Removed => PathRole::Regular,
        };
        own.max(peers)
    }

    /// Whether the path's traffic costs money at either end.
    pub(crate) fn is_metered(&self) -> bool {
        self.config.metered || self.peer_state == PathState::Metered
    }

    /// What this end announces of its own use, whatever the peer says itself. The last state holds; a peer that does
    /// not know it ignores it, and has the one before.
    pub(crate) fn announced_states(&self) -> &'static [PathState] {
        match (self.config.metered, self.config.backup, self.config.secondary) {
            (true, _, _) => &[PathState::Backup, PathState::Metered],
            (false, true, _) => &[PathState::Backup],
            (false, false, true) => &[PathState::Regular, PathState::Secondary],
            (false, false, false) => &[PathState::Regular],
        }
    }

    /// This end's name of the path, which the peer gets.
    pub(crate) fn name(&self) -> Option<PathName> {
        self.config.name
    }

    /// Whether the path works and carries packets of the real-time class, or the others.
    #[inline]
    pub(crate) fn carries(&self, is_realtime: bool) -> bool {
        let excluded = if is_realtime { PathClasses::Bulk } else { PathClasses::Realtime };
        self.is_up() && self.config.classes != excluded
    }
}
