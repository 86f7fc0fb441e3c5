//! Control datagrams: probes, acknowledgements, and the reorder timeout for the peer.

use super::{Endpoint, INITIAL_REORDER_TIMEOUT, MIN_REORDER_TIMEOUT};
use crate::packet::{Destination, Payload, SEAL_OVERHEAD, Transmit, TransmitBody};
use crate::path::{BASE_PLPMTU, PathRole, TunnelPath};
use crate::status::EndpointEvent;
use units::{Instant, PathId, Span};
use wire::frame::Frame;

/// Maximum time without acknowledgements on a regular path while there are any to send.
const MAX_ACK_INTERVAL: Span = Span::from_millis(25);
/// Minimum interval of reorder timeout frames; an unchanged timeout is sent at eight times this interval.
pub(super) const REORDER_TIMEOUT_INTERVAL: Span = Span::from_millis(25);
/// Bytes of frames that fit a datagram on every path.
const MAX_FRAME_BYTES: usize = (BASE_PLPMTU - SEAL_OVERHEAD) as usize;

impl<P: Payload> Endpoint<P> {
    pub(super) fn poll_control(&mut self, now: Instant) -> Option<Transmit<P>> {
        if now < self.control_deadline {
            return None;
        }
        let transmit = self.poll_ping(now).or_else(|| self.poll_feedback(now));
        if transmit.is_none() {
            self.control_deadline = self.next_control_deadline(now);
        }
        transmit
    }

    /// When the next ping or acknowledgement is due, or the reorder timeout is computed again.
    pub(super) fn next_control_deadline(&self, now: Instant) -> Instant {
        let policy = self.policy(now);
        let deadlines = self.paths.iter().flatten().map(|path| path.control_deadline(policy));
        let computation = self.reorder_timeout_computed + REORDER_TIMEOUT_INTERVAL;
        let computation = if self.fragments.bytes > 0 { computation } else { Instant::NEVER };
        deadlines.min().unwrap_or(Instant::NEVER).min(computation)
    }

    fn poll_ping(&mut self, now: Instant) -> Option<Transmit<P>> {
        let policy = self.policy(now);
        for index in 0..self.paths.len() {
            let id = PathId(index as u16);
            let Some(path) = &mut self.paths[index] else { continue };
            if let Some(token) = path.poll_candidate_ping(now, &mut self.entropy) {
                self.control_frames.clear();
                self.control_frames.push(Frame::Ping { token });
                return self.send_to(now, id, Destination::Candidate, 0);
            }
            let was_up = path.is_up();
            let ping = path.poll_ping(now, policy, &mut self.entropy);
            let failed = was_up && !path.is_up();
            if failed {
                self.fail_path(now, id);
                self.events.push_back(EndpointEvent::PathDown(id));
                continue;
            }
            if let Some((token, size)) = ping {
                // Each ping says how the path is used: frames may be lost.
                self.control_frames.clear();
                self.control_frames.push(Frame::Ping { token });
                let states = path.announced_states().iter();
                self.control_frames.extend(states.map(|state| Frame::Path { path: index as u8, state: *state }));
                // The last one: an earlier version ignores it and all that follows.
                self.control_frames.extend(path.name().map(|name| Frame::PathName { path: index as u8, name }));
                let pad_to = size.map_or(0, |size| size - SEAL_OVERHEAD);
                let transmit = self.send_frames(now, id, pad_to);
                if transmit.is_some() {
                    return transmit;
                }
            }
        }
        None
    }

    /// Sends the frames that belong to a path on it. Acknowledgements of all paths are sent on the fastest path that
    /// seems to work, and at intervals on each of the others too, so that the failure of one path does not stop them
    /// all.
    pub(super) fn poll_feedback(&mut self, now: Instant) -> Option<Transmit<P>> {
        let has_frames =
            |path: &TunnelPath| !path.frames.is_empty() && count_fitting(&path.frames, max_frame_bytes(path)) > 0;
        if let Some(index) = self.paths.iter().position(|path| path.as_ref().is_some_and(has_frames)) {
            let path = self.paths[index].as_mut()?;
            let count = count_fitting(&path.frames, max_frame_bytes(path));
            self.control_frames.clear();
            self.control_frames.extend(path.frames.drain(..count));
            return self.send_frames(now, PathId(index as u16), 0);
        }
        let reorder_timeout = self.reorder_timeout_frame(now);
        if reorder_timeout.is_none() && !self.paths.iter().flatten().any(|path| path.received.deadline <= now) {
            return None;
        }
        let fastest = self.feedback_path()?;
        let overdue_path = self.overdue_feedback_path(now, fastest);
        let feedback_path = overdue_path.unwrap_or(fastest);
        self.control_frames.clear();
        self.control_frames.extend(reorder_timeout);
        let mut bytes = self.control_frames.iter().map(Frame::len).sum::<usize>();
        for (index, path) in self.paths.iter_mut().enumerate() {
            let Some(path) = path else { continue };
            let deadline = path.received.deadline;
            if deadline > now {
                continue;
            }
            let ack = path.received.ack_frame(now, index as u8).map(Frame::Ack);
            let ack_bytes = ack.as_ref().map_or(0, Frame::len);
            let exceeds_datagram = bytes + ack_bytes > MAX_FRAME_BYTES;
            if exceeds_datagram || overdue_path.is_some() {
                path.received.deadline = deadline;
            }
            if exceeds_datagram {
                break;
            }
            self.control_frames.extend(ack);
            bytes += ack_bytes;
        }
        self.on_acks_sent(now, feedback_path, bytes as u32);
        self.send_frames(now, feedback_path, 0)
    }

    /// A regular path other than `fastest` that has had no acknowledgements for [`MAX_ACK_INTERVAL`].
    pub(super) fn overdue_feedback_path(&self, now: Instant, fastest: PathId) -> Option<PathId> {
        let paths = (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
        let mut regular = paths.filter(|(_, path)| path.is_up() && path.role() == PathRole::Regular);
        let is_overdue = |path: &TunnelPath| now.since(path.last_feedback) > MAX_ACK_INTERVAL;
        regular.find(|(id, path)| *id != fastest && is_overdue(path)).map(|(id, _)| id)
    }

    /// Notes that acknowledgements of so many bytes are sent on a path. The path's traffic decides how long the next
    /// ones may wait.
    pub(super) fn on_acks_sent(&mut self, now: Instant, id: PathId, bytes: u32) {
        let with_data = self.bundling && self.has_unsent();
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        path.last_feedback = now;
        let max_ack_delay = path.max_ack_delay(bytes, with_data);
        self.paths.iter_mut().flatten().for_each(|path| path.received.max_ack_delay = max_ack_delay);
    }

    /// The path with the minimum RTT among those that work and have recently delivered a datagram, regular ones first;
    /// otherwise the one with the latest delivery.
    pub(super) fn feedback_path(&self) -> Option<PathId> {
        let paths = || (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
        let latest = paths().filter_map(|(_, path)| path.last_received).max()?;
        let is_recent = |path: &TunnelPath| path.last_received.is_some_and(|last| latest.since(last) < path.pto());
        let recent = paths().filter(|(_, path)| path.is_up() && is_recent(path));
        let fastest = recent.min_by_key(|(_, path)| (path.role(), path.srtt()));
        fastest.or_else(|| paths().max_by_key(|(_, path)| path.last_received)).map(|(id, _)| id)
    }

    /// Sends the frames to the present address. Sends nothing if that address is not validated and the frames exceed
    /// its limit.
    pub(super) fn send_frames(&mut self, now: Instant, id: PathId, pad_to: u32) -> Option<Transmit<P>> {
        let body_bytes = self.control_frames.iter().map(Frame::len).sum::<usize>().max(pad_to as usize);
        let bytes = u64::from(SEAL_OVERHEAD) + body_bytes as u64;
        let path = self.paths[id.index()].as_mut()?;
        if bytes > path.max_control_bytes() {
            return None;
        }
        path.on_control_sent(bytes);
        self.send_to(now, id, Destination::Present, pad_to)
    }

    fn send_to(&mut self, now: Instant, id: PathId, destination: Destination, pad_to: u32) -> Option<Transmit<P>> {
        let packet_number = self.paths[id.index()].as_mut()?.send_control(now);
        Some(Transmit { path: id, destination, packet_number, body: TransmitBody::Control { pad_to } })
    }

    /// The reorder timeout for the peer, if it is due: while data is in flight, and at once when it changed.
    pub(super) fn reorder_timeout_frame(&mut self, now: Instant) -> Option<Frame> {
        if now.since(self.reorder_timeout_computed) < REORDER_TIMEOUT_INTERVAL || self.fragments.bytes == 0 {
            return None;
        }
        self.reorder_timeout_computed = now;
        self.adapt_codel();
        let timeout = self.reorder_timeout();
        let (sent_timeout, sent_at) = self.reorder_timeout_sent;
        if timeout.0.abs_diff(sent_timeout.0) < sent_timeout.0 / 8 && now.since(sent_at) < REORDER_TIMEOUT_INTERVAL * 8
        {
            return None;
        }
        self.reorder_timeout_sent = (timeout, now);
        Some(Frame::ReorderTimeout { micros: timeout.as_micros().min(u64::from(u32::MAX)) as u32 })
    }

    /// An ingress queue that waits for slow paths is not a standing queue: CoDel's target grows by their excess delay,
    /// also by that over a fast path without its queue. It also grows by one RTT, whose queue keeps the paths busy
    /// until a marked flow has grown again (`(1 - β) / β` RTTs: CUBIC 0.43, Reno 1): other flows have queues of their
    /// own. The interval is at least one RTT.
    fn adapt_codel(&mut self) {
        let up_paths = || self.paths.iter().flatten().filter(|path| path.is_up());
        let max_srtt = up_paths().map(TunnelPath::srtt).max().unwrap_or(Span::ZERO);
        let min_rtts = || up_paths().filter_map(TunnelPath::min_rtt);
        let empty_excess =
            min_rtts().max().zip(min_rtts().min()).map_or(Span::ZERO, |(max, min)| max.saturating_sub(min));
        let excess = self.max_excess_one_way_delay(0).max(empty_excess);
        let target = self.options.codel_target + excess + max_srtt;
        self.ingress.set_codel(target, self.options.codel_interval.max(max_srtt + target));
    }

    /// Maximum excess delay of a path, with `deviations` mean deviations of its jitter.
    fn max_excess_one_way_delay(&self, deviations: u64) -> Span {
        let up_paths = self.paths.iter().flatten().filter(|path| path.is_up());
        up_paths.map(|path| path.excess_one_way_delay + path.jitter() * deviations).max().unwrap_or(Span::ZERO)
    }

    /// Sets how much longer the one-way delay of each path is than that of the fastest path: by the peer's clock if
    /// data has gone by both paths, otherwise half the difference of their RTTs.
    pub(super) fn update_excess_one_way_delays(&mut self) {
        let up_paths = || self.paths.iter().flatten().filter(|path| path.is_up());
        let min_srtt = up_paths().filter_map(|path| path.srtt().measured()).min().unwrap_or(Span::ZERO);
        // The offset of the clocks is unknown: the delays can only be compared.
        let min_delay = up_paths()
            .filter_map(TunnelPath::one_way_delay)
            .reduce(|min, delay| if (delay.wrapping_sub(min) as i32) < 0 { delay } else { min });
        for path in self.paths.iter_mut().flatten() {
            path.excess_one_way_delay = match path.one_way_delay().zip(min_delay) {
                Some((delay, min)) => Span::from_micros((delay.wrapping_sub(min) as i32).max(0) as u64),
                None => path.srtt().saturating_sub(min_srtt) / 2,
            };
        }
    }

    /// The time for which the peer waits for a missing fragment: the difference of the paths' delays and their jitter;
    /// with retransmission, also the probe timeout of a failing path (its last acknowledgement may be nearly as late
    /// again) and the time to retransmit everything in flight on another.
    pub(super) fn reorder_timeout(&self) -> Span {
        let up_paths = || self.paths.iter().flatten().filter(|path| path.is_up());
        let delay_difference = self.max_excess_one_way_delay(4);
        if !self.options.retransmit {
            return delay_difference + MIN_REORDER_TIMEOUT;
        }
        let detection = up_paths().map(TunnelPath::bounded_pto).max().unwrap_or(INITIAL_REORDER_TIMEOUT);
        let retransmission = up_paths().map(TunnelPath::pto).min().unwrap_or(INITIAL_REORDER_TIMEOUT);
        delay_difference + detection * 2 + retransmission * 2 + MIN_REORDER_TIMEOUT
    }
}

/// Bytes of frames that a datagram on this path may have: any frame fits if the path is validated.
fn max_frame_bytes(path: &TunnelPath) -> usize {
    path.max_control_bytes().saturating_sub(SEAL_OVERHEAD.into()).min(MAX_FRAME_BYTES as u64) as usize
}

/// Number of the first frames that have at most `max_bytes`.
fn count_fitting(frames: &[Frame], max_bytes: usize) -> usize {
    let mut bytes = 0;
    let fits = |frame: &&Frame| {
        bytes += frame.len();
        bytes <= max_bytes
    };
    frames.iter().take_while(fits).count()
}
