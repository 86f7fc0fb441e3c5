//! The capacity of the paths of an experiment.

use super::{Directions, Experiment, Path};

impl Experiment {
    /// The capacity of all paths together from the sending to the receiving side during the run, headers included, Mbit/s.
    /// For each path this is the rate of its slowest link times the share of packets that its links neither lose nor
    /// corrupt.
    ///
    /// `None` if a path has no rate, if two paths share a link, or if an event changes the capacity of a link.
    #[must_use]
    pub fn capacity_mbps(&self) -> Option<f64> {
        let mut links: Vec<usize> = self.paths.iter().flat_map(|path| &path.links).copied().collect();
        links.sort_unstable();
        let is_shared = links.windows(2).any(|pair| pair[0] == pair[1]);
        let is_changed = self.events.iter().any(|event| {
            event.directions != Directions::Reverse
                && (event.up.is_some() || event.rate.is_some() || event.loss.is_some())
        });
        if is_shared || is_changed {
            return None;
        }
        self.paths.iter().map(|path| self.path_capacity_mbps(path)).sum()
    }

    fn path_capacity_mbps(&self, path: &Path) -> Option<f64> {
        let links = || path.links.iter().map(|link| &self.links[*link].forward);
        let slowest = links().filter_map(|link| link.sustained_rate(self.duration)).min()?;
        Some(slowest.as_mbps() * links().map(|link| (1.0 - link.loss.mean()) * (1.0 - link.corrupt)).product::<f64>())
    }
}
