//! Least linger time: the scheduler of the upstream Linux kernel, whose MPTCP has had no other until it took programs.
//!
//! Packets are handed to the paths as far as their send buffers go. A path's linger time is what it needs to send all
//! that it holds:
//!
//! ```text
//! linger = bytes held / average pacing rate
//! ```
//!
//! The path with the least goes next and keeps the turn for a burst of 65428 bytes, or as much of it as the far end's
//! window lets out. With each burst its average takes in the present pacing rate:
//!
//! ```text
//! average <- (average * held + rate * burst) / (held + burst)
//! ```
//!
//! If the chosen path's buffer is full, data wait for it although another one may be open.
//!
//! Source: Linux 6.1 `net/mptcp/protocol.c`. Held is what the socket's buffer holds, in flight included. Deviations:
//! held bytes are packets times the size of the next one; a path without a rate lingers for no time, so that it gets
//! one.

use crate::{Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};
use units::{PathId, Rate, Span};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "linger",
    aliases: &["upstream"],
    title: "least time to send all that the path holds, in bursts",
    source: "Linux 6.1, net/mptcp/protocol.c",
    needs: Needs::Measurements,
    fill: Fill::SendBuffer,
    parameters: &[Parameter {
        name: "burst",
        description: "bytes for which a path keeps the turn",
        kind: ParamKind::Number { default: 65428.0, min: 1.0, max: 1e9 },
    }],
    constructor: |setup| Box::new(Linger::new(setup.params.number("burst") as u64)),
};

/// Average rates, and who has the turn.
#[derive(Clone, Debug)]
pub struct Linger {
    burst_bytes: u64,
    average_rates: Vec<Rate>,
    burst: Option<Burst>,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    path: PathId,
    /// Bytes left of the burst; the packet that crosses its end still belongs to it.
    left: u64,
}

impl Linger {
    /// A path keeps the turn for `burst` bytes.
    #[must_use]
    pub fn new(burst: u64) -> Self {
        Self { burst_bytes: burst, average_rates: Vec::new(), burst: None }
    }

    fn linger(&self, id: PathId, path: &PathView, bytes: u64) -> Span {
        let known = |rate: &Rate| rate.0 > 0;
        let rate = Some(self.average_rates[id.index()]).filter(known).or(Some(path.pacing_rate)).filter(known);
        rate.map_or(Span::ZERO, |rate| rate.time_for(u64::from(path.buffered_packets()) * bytes))
    }

    /// The next burst goes to the path that lingers least, if it is open.
    fn begin_burst(&mut self, view: &SchedulerView<'_>) -> Option<Burst> {
        self.average_rates.resize(view.paths.len(), Rate(0));
        let bytes = u64::from(view.packet_bytes);
        let (path, state) = view.usable_paths().min_by_key(|(id, path)| self.linger(*id, path, bytes))?;
        if !state.has_room {
            return None;
        }
        let burst = self.burst_bytes.min(view.rwnd_left.saturating_mul(bytes));
        let average = &mut self.average_rates[path.index()];
        *average = match average.0 {
            0 => state.pacing_rate,
            _ => mean(*average, u64::from(state.buffered_packets()) * bytes, state.pacing_rate, burst),
        };
        Some(Burst { path, left: burst })
    }
}

/// The mean of two rates with these weights, in bytes.
fn mean(one: Rate, of_one: u64, other: Rate, of_other: u64) -> Rate {
    let part = |rate: Rate, bytes: u64| u128::from(rate.0) * u128::from(bytes);
    let bytes = u128::from(of_one) + u128::from(of_other);
    Rate(((part(one, of_one) + part(other, of_other)) / bytes.max(1)) as u64)
}

impl Scheduler for Linger {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        let keeps = |burst: &Burst| burst.left > 0 && view.paths_with_room().any(|(id, _)| id == burst.path);
        let burst = self.burst.filter(keeps).or_else(|| self.begin_burst(view))?;
        self.burst = Some(Burst { left: burst.left.saturating_sub(u64::from(view.packet_bytes)), ..burst });
        Some(Pick::next(burst.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{VIEW, pick};

    fn holding(queued: u32, rate: Rate) -> PathView {
        PathView { queued, pacing_rate: rate, ..PathView::unmeasured() }
    }

    #[test]
    fn ten_packets_at_100_mbit_linger_for_less_than_one_at_5_mbit() {
        let paths = [holding(1, Rate::from_mbit(5)), holding(10, Rate::from_mbit(100))];
        let mut it = Linger { average_rates: vec![Rate(0); 2], ..Linger::new(65428) };
        let linger = [0, 1].map(|id| it.linger(PathId(id), &paths[usize::from(id)], 1448).as_micros());
        assert_eq!(linger, [2316, 1158], "microseconds: 1448 * 8 / 5 and 14480 * 8 / 100");
        assert_eq!(pick(&mut it, &paths), Some(Pick::next(PathId(1))));
    }

    #[test]
    fn the_turn_lasts_for_the_packets_of_one_burst() {
        let mut it = Linger::new(65428);
        let mut paths = [holding(0, Rate::from_mbit(10)); 2];
        let mut lengths = [0; 2];
        for _ in 0..92 {
            let path = pick(&mut it, &paths).expect("open").path.index();
            paths[path].queued += 1;
            lengths[path] += 1;
            assert!(path == 0 || lengths[0] == 46, "the first burst is over before the second begins");
        }
        assert_eq!(lengths, [46; 2], "65428 / 1448 = 45.2");
    }

    #[test]
    fn the_far_ends_window_shortens_the_burst() {
        let paths = [holding(0, Rate::from_mbit(10))];
        let mut it = Linger::new(65428);
        it.pick(&SchedulerView { rwnd_left: 2, paths: &paths, ..VIEW });
        assert_eq!(it.burst.expect("begun").left, 1448);
    }

    #[test]
    fn the_average_takes_in_the_present_rate_by_bytes() {
        let mbit = Rate::from_mbit;
        assert_eq!(mean(mbit(100), 65428, mbit(50), 65428), mbit(75));
        assert_eq!(mean(mbit(100), 3 * 65428, mbit(20), 65428), mbit(80));
        let mut it = Linger { average_rates: vec![mbit(100)], ..Linger::new(14480) };
        pick(&mut it, &[holding(10, mbit(50))]);
        assert_eq!(it.average_rates, [mbit(75)]);
    }

    #[test]
    fn data_wait_for_a_full_path_that_lingers_least_until_it_dies() {
        let full = PathView { has_room: false, ..holding(10, Rate::from_mbit(100)) };
        let other = holding(1, Rate::from_mbit(5));
        let mut it = Linger::new(65428);
        assert_eq!(pick(&mut it, &[full, other]), None);
        assert_eq!(pick(&mut it, &[PathView { active: false, ..full }, other]), Some(Pick::next(PathId(1))));
    }
}
