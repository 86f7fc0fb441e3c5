//! A TCP sender with its own controller.

use super::sender::{Input, Output, Sender, SenderConfig};
use crate::path::ControllerHandle;
use control::Controller;
use std::ops::Deref;
use units::{Instant, PathId, RngStream};

/// The sender of a TCP connection and its congestion controller.
#[derive(Debug)]
pub struct SinglePathSender {
    sender: Sender,
    controller: ControllerHandle,
}

impl SinglePathSender {
    /// A sender controlled by `controller`, which draws from `rng`. It has nothing to send yet.
    #[must_use]
    pub fn new(config: SenderConfig, controller: Box<dyn Controller>, rng: RngStream) -> Self {
        let controller = ControllerHandle { controller: Some(controller), rng };
        Self { sender: Sender::new(config, PathId(0)), controller }
    }

    /// The controller, for a driver that steers it from outside or replaces it before the connection opens.
    pub fn controller_mut(&mut self) -> Option<&mut Box<dyn Controller>> {
        self.controller.controller.as_mut()
    }

    /// The stream from which the controller draws.
    #[must_use]
    pub fn random_stream(&self) -> &RngStream {
        &self.controller.rng
    }

    /// Makes the controller draw from `rng` from now on.
    pub fn draw_from(&mut self, rng: RngStream) {
        self.controller.rng = rng;
    }

    /// Another timer of the host expires in this tick. From the first call on, before the connection opens, timers expire by
    /// what the kernel's wheel remembers.
    pub fn on_other_timer(&mut self, now: Instant) {
        self.sender.on_other_timer(now);
    }

    /// From now on a paced sender without super-segments sends one segment at a time, as Linux does on a device that takes
    /// one (`gso_max_segs 1`), instead of bursts of two or more.
    pub fn pace_single_segments(&mut self) {
        self.sender.pace_single_segments();
    }

    /// Handles one input. Poll until [`Output::WaitUntil`] before the next one.
    #[inline]
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.sender.handle(now, input, &mut self.controller);
    }

    /// Reports that the last polled segment waits in the queue of the sending host until `departure`.
    pub fn wait_in_host_queue(&mut self, departure: Instant) {
        self.sender.wait_in_host_queue(departure);
    }

    /// Returns the next segment, or the deadline of the next poll if there is nothing to send now.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Output {
        self.sender.poll(now, &mut self.controller)
    }
}

impl Deref for SinglePathSender {
    type Target = Sender;

    fn deref(&self) -> &Sender {
        &self.sender
    }
}
