//! A scheduler's decisions packet by packet: what is observed of the paths, and when a path is chosen.

use schedule::{MinRtt, PathView, Pick, Scheduler, SchedulerView};
use units::PathId;

/// A number that is observed at each choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFeature {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for a state.
    pub unit: &'static str,
    /// What it is.
    pub description: &'static str,
}

const fn feature(name: &'static str, unit: &'static str, description: &'static str) -> PacketFeature {
    PacketFeature { name, unit, description }
}

/// What is observed of each path.
pub const PATH_FEATURES: [PacketFeature; 8] = [
    feature("usable", "", "1 if packets may wait for the path: it is up, and no backup next to a regular path"),
    feature("has_room", "", "1 if its congestion window has room for a packet"),
    feature("srtt_ms", "ms", "smoothed RTT; 0 before the first sample"),
    feature("rttvar_ms", "ms", "variation of the RTT (RFC 6298)"),
    feature("cwnd_packets", "packets", "congestion window"),
    feature("in_flight_packets", "packets", "packets in flight"),
    feature("queued_packets", "packets", "packets that the path has and has not sent yet"),
    feature("delivery_rate_mbps", "Mbit/s", "maximum delivery rate of the last ten RTTs; 0 before the first sample"),
];

/// What is observed of the connection, after all paths.
pub const CONNECTION_FEATURES: [PacketFeature; 3] = [
    feature("unsent_packets", "packets", "packets without a path yet, this one included; at most 1,000,000"),
    feature("rwnd_left_packets", "packets", "new packets that the receive window allows; at most 1,000,000"),
    feature("unacked_packets", "packets", "packets with a path that the receiver has not acknowledged"),
];

/// The largest number of packets in an observation.
const MANY: u64 = 1_000_000;

/// Number of values of an observation of the paths at a packet.
#[must_use]
pub fn packet_observation_len(paths: usize) -> usize {
    paths * PATH_FEATURES.len() + CONNECTION_FEATURES.len()
}

/// The observation of a number of paths. Paths that are not there count as down.
#[must_use]
pub fn observe_packet(view: &SchedulerView<'_>, paths: usize) -> Vec<f32> {
    let usable: Vec<PathId> = view.usable_paths().map(|(id, _)| id).collect();
    let mut values = Vec::with_capacity(packet_observation_len(paths));
    for (id, path) in (0..).map(PathId).zip(view.paths).take(paths) {
        values.extend(of_path(path, usable.contains(&id)));
    }
    values.resize(paths * PATH_FEATURES.len(), 0.0);
    let counts = [view.unsent_packets, view.rwnd_left_packets, view.snd_nxt.saturating_sub(view.snd_una)];
    values.extend(counts.map(|count| count.min(MANY) as f32));
    values
}

/// In the order of [`PATH_FEATURES`].
fn of_path(path: &PathView, is_usable: bool) -> [f32; 8] {
    let state = |is: bool| if is { 1.0 } else { 0.0 };
    [
        state(is_usable),
        state(path.has_room),
        (path.srtt.as_secs_f64() * 1e3) as f32,
        (path.rttvar.as_secs_f64() * 1e3) as f32,
        path.cwnd as f32,
        path.in_flight as f32,
        path.queued as f32,
        path.delivery_rate.as_mbps() as f32,
    ]
}

/// The rule of a scheduler whose packets get their paths one by one from elsewhere. A packet waits for the chosen path
/// while its window is full. A path is chosen only if two can be used and one has room. If the chosen path cannot be
/// used, or none is chosen, the rule is that of `minrtt`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketRule {
    /// The path of the next packet, once it is chosen.
    chosen: Option<PathId>,
}

impl PacketRule {
    /// The pick for a view; `choose` is asked for the path of a packet that has none yet.
    pub fn pick(
        &mut self,
        view: &SchedulerView<'_>,
        choose: impl FnOnce(&SchedulerView<'_>) -> Option<PathId>,
    ) -> Option<Pick> {
        let has_room = view.paths_with_room().next().is_some();
        if view.sendable_packets() == 0 || !has_room {
            return None;
        }
        let is_choice = view.usable_paths().nth(1).is_some();
        let chosen = self.chosen.take().or_else(|| if is_choice { choose(view) } else { None });
        let path = chosen.and_then(|chosen| view.usable_paths().find(|(id, _)| *id == chosen));
        match path {
            Some((id, path)) if path.has_room => Some(Pick::next(id)),
            Some((id, _)) => {
                self.chosen = Some(id);
                None
            }
            None => MinRtt.pick(view),
        }
    }
}
