//! The paths of a connection, which share a controller.

use crate::path_state::PathState;
use control::Controller;
use sender::path::ControllerHandle;
use std::sync::{Arc, Mutex, PoisonError};
use units::{Instant, PathId, Rate, RngStream, Span};

/// The controller of a connection. Clones share it.
#[derive(Clone, Debug)]
pub struct Group(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    controller: ControllerHandle,
    /// The paths by their IDs; an ID is used again once its path is gone.
    paths: Vec<Option<PathState>>,
    /// The path that reported last: only its report can be open.
    reporting: usize,
}

/// One path of a connection. The stack tells it of its packets, and reads the window. Clones are the same path. When the last
/// of them is dropped, the path is gone, and its window no longer counts in a coupled algorithm.
#[derive(Clone, Debug)]
pub struct Path(Arc<Member>);

#[derive(Debug)]
struct Member {
    group: Group,
    index: usize,
}

impl Group {
    pub(crate) fn new(controller: Box<dyn Controller>, seed: u64) -> Self {
        let controller = ControllerHandle { controller: Some(controller), rng: RngStream::named(seed, "controller") };
        Self(Arc::new(Mutex::new(State { controller, paths: Vec::new(), reporting: 0 })))
    }

    /// A path that can be used from `now` on, with full packets of `mtu` bytes (UDP payload).
    #[must_use]
    pub fn path(&self, now: Instant, mtu: u16) -> Path {
        self.with(|state| {
            let free = state.paths.iter().position(Option::is_none);
            let index = free.unwrap_or_else(|| {
                state.paths.push(None);
                state.paths.len() - 1
            });
            state.finish_other(index);
            state.paths[index] = Some(PathState::new(PathId(index as u16), now, mtu, &mut state.controller));
            Path(Arc::new(Member { group: self.clone(), index }))
        })
    }

    fn with<T>(&self, apply: impl FnOnce(&mut State) -> T) -> T {
        // A panic within leaves measurements behind, nothing that could be unsafe.
        apply(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// Ends the report of another path than `index`, so that the controller gets all reports in their order.
    fn finish_other(&mut self, index: usize) {
        let last = std::mem::replace(&mut self.reporting, index);
        if last != index
            && let Some(path) = &mut self.paths[last]
        {
            path.finish(&mut self.controller);
        }
    }
}

impl Path {
    fn with<T>(&self, apply: impl FnOnce(&mut PathState, &mut ControllerHandle) -> T) -> T {
        let Member { group, index } = &*self.0;
        group.with(|state| {
            state.finish_other(*index);
            let path = state.paths[*index].as_mut().expect("a path is there until it is dropped");
            apply(path, &mut state.controller)
        })
    }

    /// A packet of `bytes` that counts as in flight was sent. `number` is its packet number, if the stack tells it; of
    /// numbers that occur in several spaces, [`on_acked`](Self::on_acked) takes the one that was sent at its time.
    pub fn on_sent(&self, now: Instant, bytes: u64, number: Option<u64>) {
        self.with(|path, controller| path.on_sent(now, bytes, number, controller));
    }

    /// Whether the application had nothing to send when the latest packets were sent, although the window had room. Told
    /// before [`on_acked`](Self::on_acked).
    pub fn set_app_limited(&self, is_app_limited: bool) {
        self.with(|path, _| path.set_app_limited(is_app_limited));
    }

    /// The packet that was sent at `sent` is acknowledged, by its number if the stack tells it.
    pub fn on_acked(&self, now: Instant, sent: Instant, number: Option<u64>) {
        self.with(|path, controller| path.on_acked(now, sent, number, controller));
    }

    /// All packets of an acknowledgement were told. `bytes_in_flight` is the stack's own count.
    pub fn on_acks_end(&self, bytes_in_flight: u64) {
        self.with(|path, _| path.on_acks_end(bytes_in_flight));
    }

    /// The packet with this number is lost.
    pub fn on_lost(&self, now: Instant, number: u64) {
        self.with(|path, controller| path.on_lost(now, number, controller));
    }

    /// `bytes` are lost, and the newest of these packets was sent at `newest`: for a stack that tells no numbers.
    pub fn on_lost_bytes(&self, now: Instant, newest: Instant, bytes: u64) {
        self.with(|path, controller| path.on_lost_bytes(now, newest, bytes, controller));
    }

    /// The losses told at `now` are persistent congestion (RFC 9002, section 7.6).
    pub fn on_persistent_congestion(&self, now: Instant) {
        self.with(|path, controller| path.on_persistent_congestion(now, controller));
    }

    /// An acknowledgement reports this many more CE marks; 1 if the stack tells only that there are any.
    pub fn on_ce(&self, now: Instant, packets: u32) {
        self.with(|path, controller| path.on_ce(now, packets, controller));
    }

    /// All packets of the latest loss have arrived. Told before the acknowledgement that shows it.
    pub fn on_spurious_loss(&self) {
        self.with(PathState::on_spurious_loss);
    }

    /// Full packets have `mtu` bytes from now on.
    pub fn set_mtu(&self, mtu: u16) {
        self.with(|path, controller| path.set_mtu(mtu, controller));
    }

    /// The congestion window, bytes.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.with(|path, controller| {
            path.finish(controller);
            path.window()
        })
    }

    /// The slow-start threshold, bytes; `None` before the first congestion.
    #[must_use]
    pub fn ssthresh(&self) -> Option<u64> {
        self.with(|path, controller| {
            path.finish(controller);
            path.ssthresh()
        })
    }

    /// The pacing rate; `None` for an algorithm without one.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.with(|path, controller| {
            path.finish(controller);
            path.decision().pacing_rate
        })
    }

    /// The smoothed RTT; zero before the first sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Span {
        self.with(|path, controller| {
            path.finish(controller);
            path.smoothed_rtt()
        })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.group.with(|state| {
            state.finish_other(self.index);
            if let Some(mut path) = state.paths[self.index].take() {
                path.end(&mut state.controller);
            }
        });
    }
}
