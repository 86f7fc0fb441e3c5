//! What a scheduler sees, and what it answers.

use units::{Instant, PathId, Rate, Span};

/// A path as a scheduler sees it. A tunnel that measures nothing fills in [`open`](Self::has_room) alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Whether the path takes a packet now: its window or its buffer has room, as [`Fill`](crate::Fill) says. Open
    /// paths are active.
    pub has_room: bool,
    /// Whether the path is established, and neither failed nor stale: if it is not open now, it will be.
    pub active: bool,
    /// Whether the path is used only while no regular path is active (RFC 8684, B bit).
    pub backup: bool,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Span,
    /// Mean deviation of the round-trip time (Linux `rttvar`).
    pub rttvar: Span,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets; greater than the window in slow start, [`units::INFINITE_SSTHRESH`] in the first
    /// one.
    pub ssthresh: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Packets given to the path that have not left.
    pub queued: u32,
    /// Pacing rate, or Linux's estimate of it from window and smoothed RTT.
    pub pacing_rate: Rate,
    /// Greatest delivery rate of the latest ten round trips; zero before the first sample.
    pub delivery_rate: Rate,
    /// How long a queue would be that drains at a little less than the bandwidth: longer than a burst, the path is
    /// full, even if nothing waits. `None` where it is not counted.
    pub phantom_queue_delay: Option<Span>,
}

impl PathView {
    /// A path of which nothing is known but that it is open.
    #[must_use]
    pub fn unmeasured() -> Self {
        Self {
            has_room: true,
            active: true,
            backup: false,
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            cwnd: 0,
            ssthresh: 0,
            in_flight: 0,
            queued: 0,
            pacing_rate: Rate(0),
            delivery_rate: Rate(0),
            phantom_queue_delay: None,
        }
    }

    /// Packets that the path holds: those in flight and those that wait at it.
    #[must_use]
    pub fn buffered_packets(&self) -> u32 {
        self.in_flight.saturating_add(self.queued)
    }

    /// Packets that the window lets out beyond those that the path holds.
    #[must_use]
    pub fn cwnd_space(&self) -> u32 {
        self.cwnd.saturating_sub(self.buffered_packets())
    }
}

/// The paths and the data to send, as a scheduler sees them.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerView<'a> {
    /// The present.
    pub now: Instant,
    /// Bytes of the next packet: payload in MPTCP, the whole packet in a tunnel.
    pub packet_bytes: u32,
    /// All paths, by their [`PathId`].
    pub paths: &'a [PathView],
    /// Number of the oldest packet that has not been sent on any path.
    pub snd_nxt: u64,
    /// Number of the oldest packet that is not acknowledged by the far end as a whole (MPTCP: DATA_ACK).
    pub snd_una: u64,
    /// Packets that wait to be sent for the first time; `u64::MAX` if the source never ends.
    pub unsent: u64,
    /// Packets that the receive window still allows beyond `snd_nxt`; `u64::MAX` without such a window. With 0, no
    /// [`PacketChoice::Next`] leaves.
    pub rwnd_left: u64,
    /// Times that data stood still because a slow path held the window's left edge (MPTCP: opportunistic
    /// retransmissions and penalties).
    pub rwnd_stalls: u64,
}

impl SchedulerView<'_> {
    /// Paths that a packet may wait for: active ones, backups only while no other path is active.
    pub fn usable_paths(&self) -> impl Iterator<Item = (PathId, &PathView)> {
        let regular = self.paths.iter().any(|path| path.active && !path.backup);
        let numbered = (0..).map(PathId).zip(self.paths);
        numbered.filter(move |(_, path)| path.active && path.backup != regular)
    }

    /// Paths that may be given a packet: the [usable](Self::usable_paths) ones that are open.
    pub fn paths_with_room(&self) -> impl Iterator<Item = (PathId, &PathView)> {
        self.usable_paths().filter(|(_, path)| path.has_room)
    }

    /// New packets that may leave now: a scheduler that sends only those has nothing to pick at 0.
    #[must_use]
    pub fn sendable_packets(&self) -> u64 {
        self.unsent.min(self.rwnd_left)
    }
}

/// The next packet to send, and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The path that carries it.
    pub path: PathId,
    /// Which packet.
    pub packet: PacketChoice,
}

/// Which packet a path is to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketChoice {
    /// The oldest that was sent on no path.
    Next,
    /// The oldest that is not acknowledged and that this path has not carried: a copy, if another path has.
    OldestUnacked,
    /// As `Next`, but so many unsent packets are left out for others to send: it will be due when this slow path has
    /// delivered it.
    SkipAhead(u32),
}

impl Pick {
    /// The next packet on `path`.
    #[must_use]
    pub fn next(path: PathId) -> Self {
        Self { path, packet: PacketChoice::Next }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Scheduler;

    /// The paths of the next `count` packets of `bytes`, over unmeasured paths of which these are open.
    pub(crate) fn picks<const N: usize>(it: &mut dyn Scheduler, count: u32, bytes: u32, open: [bool; N]) -> Vec<u16> {
        let paths = open.map(|open| PathView { has_room: open, active: open, ..PathView::unmeasured() });
        let view = SchedulerView { packet_bytes: bytes, paths: &paths, ..VIEW };
        (0..count).filter_map(|_| it.pick(&view).map(|pick| pick.path.0)).collect()
    }

    /// A path with this smoothed RTT in ms and so many packets of its window in flight; it is open if there is room.
    pub(crate) fn path(srtt: u64, window: u32, in_flight: u32) -> PathView {
        let srtt = Span::from_millis(srtt);
        let rate = Rate::of(u64::from(window) * 1448, srtt);
        let open = in_flight < window;
        let measured = PathView {
            srtt,
            cwnd: window,
            in_flight,
            pacing_rate: rate,
            delivery_rate: rate,
            ..PathView::unmeasured()
        };
        PathView { has_room: open, ssthresh: window.saturating_sub(1), ..measured }
    }

    /// The one pick over these paths.
    pub(crate) fn pick(it: &mut dyn Scheduler, paths: &[PathView]) -> Option<Pick> {
        it.pick(&SchedulerView { paths, ..VIEW })
    }

    /// So many picks at most; those carried fill the windows.
    pub(crate) fn fill<const N: usize>(it: &mut dyn Scheduler, count: u32, paths: &mut [PathView; N]) -> Vec<Pick> {
        let mut one = |_| {
            let chosen = pick(it, &*paths)?;
            let path = &mut paths[chosen.path.index()];
            path.in_flight += 1;
            path.has_room = path.in_flight < path.cwnd;
            Some(chosen)
        };
        (0..count).map_while(&mut one).collect()
    }

    /// The registered scheduler of this name with these numbers set.
    pub(crate) fn set(name: &str, given: &[(&str, f64)]) -> Box<dyn Scheduler> {
        let given = given.iter().map(|(key, value)| ((*key).to_owned(), params::ParamValue::Number(*value))).collect();
        crate::find(name).expect("registered").scheduler(&[], 0, &given).expect("right parameters")
    }

    #[test]
    fn backups_open_when_no_other_path_is_active() {
        let regular = PathView::unmeasured();
        let backup = PathView { backup: true, ..regular };
        let open = |paths: &[PathView]| {
            let view = SchedulerView { paths, ..VIEW };
            view.paths_with_room().map(|(path, _)| path.0).collect::<Vec<_>>()
        };
        assert_eq!(open(&[backup, regular]), [1]);
        assert_eq!(open(&[backup, PathView { has_room: false, ..regular }]), [], "it is full, not dead");
        assert_eq!(open(&[backup, PathView { has_room: false, active: false, ..regular }]), [0]);
    }

    /// An endless source of full packets, and a far end whose window has no limit.
    pub(crate) const VIEW: SchedulerView<'static> = SchedulerView {
        now: Instant::ZERO,
        packet_bytes: 1448,
        paths: &[],
        snd_nxt: 0,
        snd_una: 0,
        unsent: u64::MAX,
        rwnd_left: u64::MAX,
        rwnd_stalls: 0,
    };
}
