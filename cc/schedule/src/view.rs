//! The input and the decision of a scheduler.

use units::{Instant, PathId, Rate, Span};

/// State of a path. A tunnel without measurements sets [`has_room`](Self::has_room) only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Whether the path accepts a packet now: its congestion window or its send buffer has room, depending on
    /// [`Fill`](crate::Fill). Such a path is active.
    pub has_room: bool,
    /// Whether the path is established, and neither failed nor stale.
    pub active: bool,
    /// Whether the path is used only while no regular path is active (RFC 8684, B bit).
    pub backup: bool,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Span,
    /// Mean deviation of the RTT (Linux `rttvar`).
    pub rttvar: Span,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets. It is greater than the window in slow start, and [`units::INFINITE_SSTHRESH`] in
    /// the first slow start.
    pub ssthresh: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Packets assigned to the path that have not been sent yet.
    pub queued: u32,
    /// Pacing rate, or Linux's estimate of it from window and smoothed RTT.
    pub pacing_rate: Rate,
    /// Maximum delivery rate of the latest ten RTTs; zero before the first sample.
    pub delivery_rate: Rate,
    /// Delay of a phantom queue, which drains at slightly less than the bandwidth. If it is longer than a burst, the
    /// path is full, even if nothing is queued. `None` if there is no phantom queue.
    pub phantom_queue_delay: Option<Span>,
    /// Memory in use by the path's send buffer, bytes (Linux `sk_wmem_queued`). `None` if it is not counted.
    pub buffered_memory: Option<u64>,
}

impl PathView {
    /// A path with room and without measurements.
    #[must_use]
    pub fn without_measurements() -> Self {
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
            buffered_memory: None,
        }
    }

    /// Packets in the path's send buffer: in flight, or not sent yet.
    #[must_use]
    pub fn buffered_packets(&self) -> u32 {
        self.in_flight.saturating_add(self.queued)
    }

    /// Packets that the congestion window allows beyond the buffered ones.
    #[must_use]
    pub fn cwnd_space(&self) -> u32 {
        self.cwnd.saturating_sub(self.buffered_packets())
    }
}

/// State of the paths and of the data to send.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerView<'a> {
    /// The current time.
    pub now: Instant,
    /// Bytes of the next packet: payload in MPTCP, the whole packet in a tunnel.
    pub packet_bytes: u32,
    /// Bytes that go to one path together: the next packet, or one fragment of upstream MPTCP's send buffer.
    pub fragment_bytes: u32,
    /// All paths, by their [`PathId`].
    pub paths: &'a [PathView],
    /// Sequence number of the oldest packet that has not been sent on any path.
    pub snd_nxt: u64,
    /// Sequence number of the oldest packet that the receiver has not acknowledged at connection level (MPTCP:
    /// DATA_ACK).
    pub snd_una: u64,
    /// Packets that wait for their first transmission; `u64::MAX` if the source never ends.
    pub unsent_packets: u64,
    /// Packets that the receive window still allows beyond `snd_nxt`; `u64::MAX` without such a window. If it is 0, no
    /// [`PacketChoice::Next`] is sent.
    pub rwnd_left_packets: u64,
    /// Number of times that a slow path caused the receive window to be full (MPTCP: opportunistic retransmissions).
    pub rwnd_stalls: u64,
}

impl SchedulerView<'_> {
    /// Paths for which a packet may wait: active paths, and backups only while no other path is active.
    pub fn usable_paths(&self) -> impl Iterator<Item = (PathId, &PathView)> {
        let regular = self.paths.iter().any(|path| path.active && !path.backup);
        let paths_by_id = self.paths.iter().enumerate().map(|(index, path)| (PathId(index as u16), path));
        paths_by_id.filter(move |(_, path)| path.active && path.backup != regular)
    }

    /// The [usable](Self::usable_paths) paths that have room for a packet.
    pub fn paths_with_room(&self) -> impl Iterator<Item = (PathId, &PathView)> {
        self.usable_paths().filter(|(_, path)| path.has_room)
    }

    /// New packets that may be sent now.
    #[must_use]
    pub fn sendable_packets(&self) -> u64 {
        self.unsent_packets.min(self.rwnd_left_packets)
    }
}

/// The next packet to send, and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The path that carries it.
    pub path: PathId,
    /// The packet.
    pub packet: PacketChoice,
}

/// The packet that a path carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketChoice {
    /// The oldest packet that has not been sent on any path.
    Next,
    /// The oldest unacknowledged packet that this path has not carried; it is a copy if another path has.
    OldestUnacked,
    /// As `Next`, but skips this many unsent packets, which other paths will deliver before this one arrives.
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

    /// The paths of the next `count` packets of `bytes`, over unmeasured paths, of which `room` says which have room.
    pub(crate) fn picks<const N: usize>(
        scheduler: &mut dyn Scheduler,
        count: u32,
        bytes: u32,
        has_room: [bool; N],
    ) -> Vec<u16> {
        let paths =
            has_room.map(|has_room| PathView { has_room, active: has_room, ..PathView::without_measurements() });
        let view = SchedulerView { packet_bytes: bytes, paths: &paths, ..VIEW };
        (0..count).filter_map(|_| scheduler.pick(&view).map(|pick| pick.path.0)).collect()
    }

    /// A path with this smoothed RTT in ms, and `in_flight` packets of its window in flight.
    pub(crate) fn path(srtt: u64, window: u32, in_flight: u32) -> PathView {
        let srtt = Span::from_millis(srtt);
        let rate = Rate::of(u64::from(window) * 1448, srtt);
        let has_room = in_flight < window;
        let measured = PathView {
            srtt,
            cwnd: window,
            in_flight,
            pacing_rate: rate,
            delivery_rate: rate,
            ..PathView::without_measurements()
        };
        PathView { has_room, ssthresh: window.saturating_sub(1), ..measured }
    }

    /// One pick over these paths.
    pub(crate) fn pick(scheduler: &mut dyn Scheduler, paths: &[PathView]) -> Option<Pick> {
        scheduler.pick(&SchedulerView { paths, ..VIEW })
    }

    /// At most `count` picks. Each picked packet is then in flight.
    pub(crate) fn pick_all<const N: usize>(
        scheduler: &mut dyn Scheduler,
        count: u32,
        paths: &mut [PathView; N],
    ) -> Vec<Pick> {
        let mut pick_one = |_| {
            let chosen = pick(scheduler, &*paths)?;
            let path = &mut paths[chosen.path.index()];
            path.in_flight += 1;
            path.has_room = path.in_flight < path.cwnd;
            Some(chosen)
        };
        (0..count).map_while(&mut pick_one).collect()
    }

    /// The registered scheduler of this name with these parameters.
    pub(crate) fn scheduler_with(name: &str, given: &[(&str, f64)]) -> Box<dyn Scheduler> {
        let given = given.iter().map(|(key, value)| ((*key).to_owned(), params::ParamValue::Number(*value))).collect();
        crate::find(name).expect("registered").scheduler(&[], 0, &given).expect("right parameters")
    }

    #[test]
    fn backups_are_usable_when_no_other_path_is_active() {
        let regular = PathView::without_measurements();
        let backup = PathView { backup: true, ..regular };
        let has_room = |paths: &[PathView]| {
            let view = SchedulerView { paths, ..VIEW };
            view.paths_with_room().map(|(path, _)| path.0).collect::<Vec<_>>()
        };
        assert_eq!(has_room(&[backup, regular]), [1]);
        assert_eq!(has_room(&[backup, PathView { has_room: false, ..regular }]), [], "it is full, not dead");
        assert_eq!(has_room(&[backup, PathView { has_room: false, active: false, ..regular }]), [0]);
    }

    /// An endless source of full packets, and an unlimited receive window.
    pub(crate) const VIEW: SchedulerView<'static> = SchedulerView {
        now: Instant::ZERO,
        packet_bytes: 1448,
        fragment_bytes: 1448,
        paths: &[],
        snd_nxt: 0,
        snd_una: 0,
        unsent_packets: u64::MAX,
        rwnd_left_packets: u64::MAX,
        rwnd_stalls: 0,
    };
}
