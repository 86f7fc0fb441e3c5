//! Fixtures of the algorithms' unit tests.

use crate::common::CwndState;
use crate::{
    AckSample, AlgorithmEntry, Cause, Context, LinuxRelease, Params, PathController, PathEvent, PathInfo, RateSample,
    Reduction, SendState,
};
use std::collections::BTreeMap;
use units::{Instant, RngStream, Span};

/// Default parameters of an algorithm.
pub(super) fn defaults(entry: &AlgorithmEntry) -> Params {
    Params::new(entry.parameters, &BTreeMap::new()).expect("defaults are allowed")
}

/// A path as it comes up.
pub(crate) fn path(initial_window: u32, rtt: Option<Span>) -> PathInfo {
    let (tick, reduction) = (Span::from_millis(1), Reduction::Proportional);
    PathInfo {
        mss: 1448,
        initial_window,
        rtt,
        tick,
        cwnd_clamp: u32::MAX / 2,
        reduction,
        release: LinuxRelease::default(),
    }
}

/// A window in the first slow start.
pub(super) fn slow_start(cwnd: u32) -> CwndState {
    CwndState { cwnd, ..CwndState::default() }
}

/// A window in congestion avoidance.
pub(super) fn congestion_avoidance(cwnd: u32) -> CwndState {
    CwndState { cwnd, ssthresh: 2, ..CwndState::default() }
}

/// An acknowledgement of `acked` packets, with `delivered` in total and `prior_delivered` at the sending of the newest.
pub(crate) fn ack_sample(acked: u32, delivered: u64, prior_delivered: u64, rtt: Span) -> AckSample {
    let rate_sample = RateSample {
        delivered: (delivered - prior_delivered) as u32,
        interval: rtt,
        prior_delivered,
        app_limited: false,
        ack_delayed: false,
    };
    AckSample {
        acked,
        prior_in_flight: acked,
        rtt: Some(rtt),
        srtt: rtt,
        delivered,
        rate_sample: Some(rate_sample),
        ..AckSample::default()
    }
}

/// A context at `ms` with a new random stream.
pub(super) fn context(ms: u64) -> Context<'static> {
    context_with(ms, Box::leak(Box::new(RngStream::named(1, "test"))))
}

/// A context at `ms` with `rng`.
pub(crate) fn context_with(ms: u64, rng: &mut RngStream) -> Context<'_> {
    Context { now: Instant::ZERO + Span::from_millis(ms), rng }
}

/// A flow of one controller, whose acknowledgements come one round trip at a time.
pub(super) struct Flow<C> {
    pub(super) controller: C,
    pub(super) rtt_ms: u64,
    pub(super) now_ms: u64,
    pub(super) delivered: u64,
    /// Packets delivered when the packet that is acknowledged next was sent.
    pub(super) prior_delivered: u64,
    pub(super) rng: RngStream,
}

impl<C: PathController> Flow<C> {
    /// A flow with an initial window of ten packets.
    pub(super) fn with_rtt(controller: C, rtt_ms: u64) -> Self {
        let rng = RngStream::named(1, "test");
        let mut flow = Self { controller, rtt_ms, now_ms: 0, delivered: 0, prior_delivered: 0, rng };
        flow.event(&PathEvent::PathUp(path(10, Some(Span::from_millis(rtt_ms)))));
        flow
    }

    pub(super) fn event(&mut self, event: &PathEvent) {
        self.controller.on_event(event, &mut context_with(self.now_ms, &mut self.rng));
    }

    pub(super) fn congestion(&mut self, cause: Cause, in_flight: u32) {
        self.event(&PathEvent::Congestion { cause, reduce_cwnd: true, in_flight, by_timer: false });
    }

    /// One acknowledgement, with `change` applied to its sample.
    pub(super) fn ack_with(&mut self, acked: u32, change: impl Fn(&mut AckSample)) {
        self.delivered += u64::from(acked);
        let tx_in_flight = (self.delivered - self.prior_delivered) as u32;
        let mut sample = AckSample {
            newest_delivered: Some(SendState { tx_in_flight, ..SendState::default() }),
            cwnd_limited: true,
            ..ack_sample(acked, self.delivered, self.prior_delivered, Span::from_millis(self.rtt_ms))
        };
        change(&mut sample);
        self.event(&PathEvent::Ack(sample));
    }

    /// A round trip in one acknowledgement, with `change` applied to its sample.
    pub(super) fn round_with(&mut self, acked: u32, change: impl Fn(&mut AckSample)) {
        self.now_ms += self.rtt_ms;
        self.prior_delivered = self.delivered;
        self.ack_with(acked, change);
    }

    pub(super) fn round(&mut self, acked: u32) {
        self.round_with(acked, |_| {});
    }

    pub(super) fn rounds(&mut self, count: u32, acked: u32) {
        (0..count).for_each(|_| self.round(acked));
    }
}
