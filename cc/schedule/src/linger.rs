//! Minimum linger time: the default scheduler of the upstream Linux kernel.
//!
//! Packets are assigned to the paths up to the size of their send buffers. The linger time of a path is the time that
//! it needs to send all buffered data:
//!
//! ```text
//! linger = bytes buffered / average pacing rate
//! ```
//!
//! The path with the minimum linger time is picked for a burst of 65428 bytes, or as many as the receive window allows.
//! Each burst updates the path's average pacing rate with the current one:
//!
//! ```text
//! average <- (average * buffered + rate * burst) / (buffered + burst)
//! ```
//!
//! If the send buffer of that path is full, data wait for it, even if another path has room.
//!
//! Source: Linux 6.1 `net/mptcp/protocol.c`. The buffered bytes are the memory in use by the socket's send buffer,
//! including data in flight. Deviations: outside of MPTCP they are packets times the size of the next packet. The
//! linger time of a path without a rate is zero, so that it gets one.

use crate::{Constructor, Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};
use units::{PathId, Rate, Span};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "linger",
    aliases: &["upstream"],
    title: "minimum time to send all data buffered at the path, in bursts",
    source: "Linux 6.1, net/mptcp/protocol.c",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::SendBuffer,
    parameters: &[Parameter {
        name: "burst",
        description: "bytes of a burst",
        kind: ParamKind::Number { default: 65428.0, min: 1.0, max: 1e9 },
    }],
    constructor: Constructor::Function(|setup| Box::new(Linger::new(setup.params.number("burst") as u64))),
};

/// The scheduler (Linux `mptcp_subflow_get_send`).
#[derive(Clone, Debug)]
pub struct Linger {
    burst_bytes: u64,
    /// Average pacing rate of each path (Linux `avg_pacing_rate`).
    avg_pacing_rates: Vec<Rate>,
    current_burst: Option<Burst>,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    path: PathId,
    /// Bytes left of the burst. The fragment that crosses its end still belongs to it.
    bytes_left: u64,
}

impl Linger {
    /// A scheduler with bursts of `burst_bytes`.
    #[must_use]
    pub fn new(burst_bytes: u64) -> Self {
        Self { burst_bytes, avg_pacing_rates: Vec::new(), current_burst: None }
    }

    /// Bytes in the path's send buffer. If its memory is not counted, its packets times `bytes`.
    fn buffered_bytes(path: &PathView, bytes: u64) -> u64 {
        path.buffered_memory.unwrap_or(u64::from(path.buffered_packets()) * bytes)
    }

    fn linger_time(&self, id: PathId, path: &PathView, bytes: u64) -> Span {
        let is_known = |rate: &Rate| rate.0 > 0;
        let rate = Some(self.avg_pacing_rates[id.index()]).filter(is_known).or(Some(path.pacing_rate)).filter(is_known);
        rate.map_or(Span::ZERO, |rate| rate.time_for(Self::buffered_bytes(path, bytes)))
    }

    /// Begins a burst on the path with the minimum linger time, if it has room.
    fn begin_burst(&mut self, view: &SchedulerView<'_>) -> Option<Burst> {
        self.avg_pacing_rates.resize(view.paths.len(), Rate(0));
        let bytes = u64::from(view.packet_bytes);
        let (path, path_view) = view.usable_paths().min_by_key(|(id, path)| self.linger_time(*id, path, bytes))?;
        if !path_view.has_room {
            return None;
        }
        let burst_bytes = self.burst_bytes.min(view.rwnd_left_packets.saturating_mul(bytes));
        let average = &mut self.avg_pacing_rates[path.index()];
        *average = match average.0 {
            0 => path_view.pacing_rate,
            _ => weighted_mean(*average, Self::buffered_bytes(path_view, bytes), path_view.pacing_rate, burst_bytes),
        };
        Some(Burst { path, bytes_left: burst_bytes })
    }
}

/// The mean of two rates, weighted by bytes.
fn weighted_mean(first: Rate, first_bytes: u64, second: Rate, second_bytes: u64) -> Rate {
    let product = |rate: Rate, bytes: u64| u128::from(rate.0) * u128::from(bytes);
    let bytes = u128::from(first_bytes) + u128::from(second_bytes);
    Rate(((product(first, first_bytes) + product(second, second_bytes)) / bytes.max(1)) as u64)
}

impl Scheduler for Linger {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        let can_continue =
            |burst: &Burst| burst.bytes_left > 0 && view.paths_with_room().any(|(id, _)| id == burst.path);
        let burst = self.current_burst.filter(can_continue).or_else(|| self.begin_burst(view))?;
        self.current_burst =
            Some(Burst { bytes_left: burst.bytes_left.saturating_sub(u64::from(view.fragment_bytes)), ..burst });
        Some(Pick::next(burst.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{VIEW, pick};

    fn buffered(queued: u32, rate: Rate) -> PathView {
        PathView { queued, pacing_rate: rate, ..PathView::without_measurements() }
    }

    #[test]
    fn ten_packets_at_100_mbit_linger_for_less_than_one_at_5_mbit() {
        let paths = [buffered(1, Rate::from_mbit(5)), buffered(10, Rate::from_mbit(100))];
        let mut scheduler = Linger { avg_pacing_rates: vec![Rate(0); 2], ..Linger::new(65428) };
        let linger_time = [0, 1].map(|id| scheduler.linger_time(PathId(id), &paths[usize::from(id)], 1448).as_micros());
        assert_eq!(linger_time, [2316, 1158], "microseconds: 1448 * 8 / 5 and 14480 * 8 / 100");
        assert_eq!(pick(&mut scheduler, &paths), Some(Pick::next(PathId(1))));
    }

    #[test]
    fn the_turn_lasts_for_the_packets_of_one_burst() {
        let mut scheduler = Linger::new(65428);
        let mut paths = [buffered(0, Rate::from_mbit(10)); 2];
        let mut lengths = [0; 2];
        for _ in 0..92 {
            let path = pick(&mut scheduler, &paths).expect("has room").path.index();
            paths[path].queued += 1;
            lengths[path] += 1;
            assert!(path == 0 || lengths[0] == 46, "the first burst is over before the second begins");
        }
        assert_eq!(lengths, [46; 2], "65428 / 1448 = 45.2");
    }

    #[test]
    fn the_far_ends_window_shortens_the_burst() {
        let paths = [buffered(0, Rate::from_mbit(10))];
        let mut scheduler = Linger::new(65428);
        scheduler.pick(&SchedulerView { rwnd_left_packets: 2, paths: &paths, ..VIEW });
        assert_eq!(scheduler.current_burst.expect("begun").bytes_left, 1448);
    }

    #[test]
    fn the_average_takes_in_the_present_rate_by_bytes() {
        let mbit = Rate::from_mbit;
        assert_eq!(weighted_mean(mbit(100), 65428, mbit(50), 65428), mbit(75));
        assert_eq!(weighted_mean(mbit(100), 3 * 65428, mbit(20), 65428), mbit(80));
        let mut scheduler = Linger { avg_pacing_rates: vec![mbit(100)], ..Linger::new(14480) };
        pick(&mut scheduler, &[buffered(10, mbit(50))]);
        assert_eq!(scheduler.avg_pacing_rates, [mbit(75)]);
    }

    #[test]
    fn data_wait_for_a_full_path_with_the_minimum_linger_time_until_it_dies() {
        let full_path = PathView { has_room: false, ..buffered(10, Rate::from_mbit(100)) };
        let other_path = buffered(1, Rate::from_mbit(5));
        let mut scheduler = Linger::new(65428);
        assert_eq!(pick(&mut scheduler, &[full_path, other_path]), None);
        assert_eq!(
            pick(&mut scheduler, &[PathView { active: false, ..full_path }, other_path]),
            Some(Pick::next(PathId(1)))
        );
    }
}
