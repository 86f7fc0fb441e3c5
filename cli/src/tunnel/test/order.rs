//! The measurements of a test, and the order in which they are made: random, so that no path or direction is always measured
//! at the same position, and an uplink that changes during the test favours none of them.

use super::measure::Direction;
use units::RngStream;

/// One measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// The path that is alone; `None`: all together.
    pub(super) path: Option<String>,
    pub(super) direction: Direction,
}

/// Each path alone, then all together, down and up: the order in which results are shown.
pub(super) fn tasks(alone: Vec<String>) -> Vec<Task> {
    let paths = alone.into_iter().map(Some).chain([None]);
    let directions = [Direction::Down, Direction::Up];
    paths.flat_map(|path| directions.map(|direction| Task { path: path.clone(), direction })).collect()
}

/// The numbers from 0 to `count` - 1 in the order of measurement.
pub(super) fn random(seed: u64, count: usize) -> Vec<usize> {
    let mut stream = RngStream::named(seed, "order of the speed test");
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|_| stream.bits());
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_and_all_together_are_measured_once_in_each_direction() {
        let tasks = tasks(vec!["fibre".into(), "lte".into()]);
        let shown: Vec<_> = tasks.iter().map(|task| (task.path.as_deref(), task.direction.name())).collect();
        let expected = [Some("fibre"), Some("lte"), None].map(|path| [(path, "down"), (path, "up")]);
        assert_eq!(shown, expected.concat());
    }

    /// Of 6000 orders each task has each of six places about 1000 times, with a standard deviation of 29.
    #[test]
    fn every_measurement_is_as_likely_at_every_place() {
        let mut counts = [[0_i32; 6]; 6];
        for seed in 0..6000 {
            random(seed, 6).iter().enumerate().for_each(|(place, task)| counts[*task][place] += 1);
        }
        assert!(counts.iter().flatten().all(|count| (count - 1000).abs() < 150), "five deviations: {counts:?}");
        assert_eq!(random(7, 6), random(7, 6));
    }
}
