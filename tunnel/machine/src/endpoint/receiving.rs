//! Datagrams that arrive: fragments, frames, and bundles of both.

use super::{Endpoint, MAX_PINGS_PER_DATAGRAM, MIN_REORDER_TIMEOUT, PATH_IN_USE_TIME};
use crate::config::MAX_PATHS;
use crate::packet::{Arrival, Fragment, Payload};
use crate::status::EndpointEvent;
use units::{Instant, PathId, Span};
use wire::frame::Frame;

impl<P: Payload> Endpoint<P> {
    /// An authentic datagram with a fragment arrived.
    pub fn receive_data(&mut self, now: Instant, arrival: Arrival, fragment: Fragment<P>) {
        if self.on_data_datagram(now, arrival, fragment.payload.len()) {
            self.receive_fragment(now, arrival, fragment);
        }
    }

    /// An authentic datagram with frames and several fragments arrived.
    pub fn receive_bundle(
        &mut self,
        now: Instant,
        arrival: Arrival,
        frames: &[Frame],
        fragments: impl Iterator<Item = Fragment<P>>,
    ) {
        if !self.on_data_datagram(now, arrival, 0) {
            return;
        }
        self.receive_frames(now, arrival.path, frames);
        for fragment in fragments {
            if let Some(Some(path)) = self.paths.get_mut(arrival.path.index()) {
                path.count_received_data(fragment.payload.len());
            }
            self.receive_fragment(now, arrival, fragment);
        }
    }

    /// A datagram with `bytes` bytes of data arrived. False if there is no such path.
    fn on_data_datagram(&mut self, now: Instant, arrival: Arrival, bytes: u32) -> bool {
        if !self.has_path(arrival.path) {
            return false;
        }
        self.on_data(now);
        let Some(Some(path)) = self.paths.get_mut(arrival.path.index()) else { return false };
        path.on_datagram(now, Some(bytes));
        path.received.add(now, arrival.packet_number, arrival.ce, true);
        self.control_deadline = self.control_deadline.min(path.received.deadline);
        true
    }

    fn receive_fragment(&mut self, now: Instant, arrival: Arrival, fragment: Fragment<P>) {
        let Self { reorder, counters, paths, .. } = self;
        let is_in_use = |path: PathId| {
            let last = paths.get(path.index()).and_then(Option::as_ref).and_then(|path| path.last_data_received);
            last.is_some_and(|last| now.since(last) < PATH_IN_USE_TIME)
        };
        reorder.handle(now, arrival.path, fragment, arrival.ce, is_in_use, counters);
    }

    /// An authentic datagram with frames arrived.
    pub fn receive_control(&mut self, now: Instant, arrival: Arrival, frames: &[Frame]) {
        let Some(Some(path)) = self.paths.get_mut(arrival.path.index()) else { return };
        path.on_datagram(now, None);
        path.received.add(now, arrival.packet_number, arrival.ce, false);
        self.receive_frames(now, arrival.path, frames);
    }

    fn receive_frames(&mut self, now: Instant, arrival_path: PathId, frames: &[Frame]) {
        (self.had_input, self.control_deadline) = (true, Instant::ZERO);
        let (mut pings, mut acked_paths) = (0, [false; MAX_PATHS]);
        for frame in frames {
            let is_surplus = match frame {
                Frame::Ping { .. } => {
                    pings += 1;
                    pings > MAX_PINGS_PER_DATAGRAM
                }
                Frame::Ack(ack) => {
                    acked_paths.get_mut(usize::from(ack.path)).is_none_or(|acked| std::mem::replace(acked, true))
                }
                _ => false,
            };
            if is_surplus {
                self.counters.malformed_frames += 1;
            } else {
                self.on_frame(now, arrival_path, frame);
            }
        }
    }

    fn on_frame(&mut self, now: Instant, arrival_path: PathId, frame: &Frame) {
        match frame {
            Frame::Ack(ack) => self.on_ack(now, ack),
            Frame::Ping { token } => {
                if let Some(Some(path)) = self.paths.get_mut(arrival_path.index()) {
                    path.queue_pong(*token);
                }
            }
            Frame::Pong { token } => self.on_pong(now, arrival_path, *token),
            Frame::ReorderTimeout { micros } => {
                let timeout = Span::from_micros(u64::from(*micros)).max(MIN_REORDER_TIMEOUT);
                self.reorder.config.timeout = timeout.min(self.options.max_reorder_timeout);
            }
            Frame::Path { path, state } => self.on_path_state(now, PathId(u16::from(*path)), *state),
            Frame::Close => self.events.push_back(EndpointEvent::Closed),
            Frame::PathName { path, name } => self.on_path_name(PathId(u16::from(*path)), *name),
        }
    }
}
