//! The rules in which the two published versions of BBR v3 differ: Linux's code and the draft's text. They have
//! everything else in common.

/// One version's side of each difference. Gains and fractions are in 1/256.
#[derive(Debug)]
pub(super) struct Rules {
    /// Pacing gain of Startup.
    pub(super) startup_gain: u32,
    /// Pacing gain of Drain.
    pub(super) drain_gain: u32,
    /// Pacing gain of ProbeBW_DOWN.
    pub(super) down_gain: u32,
    /// Whether CE marks can count.
    pub(super) ecn: bool,
    /// Whether fractions, and the packet counts to which they apply, are rounded down to 1/256. Otherwise fractions are
    /// rounded to the nearest, and the loss threshold is exact.
    pub(super) shares_round_down: bool,

    /// Whether only the sample that begins a round is checked for growth, rather than all samples.
    pub(super) plateau_by_rounds: bool,
    /// Rounds after which Drain ends even with a queue.
    pub(super) drain_rounds: u64,
    /// Whether Drain keeps the loss signals of Startup's last round, and ends by the short-term bandwidth.
    pub(super) drain_by_short_term_model: bool,
    /// Whether the bandwidth-delay product, as a bound or target, is raised to the packets that bursts need.
    pub(super) bdp_with_bursts: bool,

    /// Round trips of a single, uncapped sliding maximum of excess acknowledgements; `None`: two slots of five round
    /// trips, capped (`aggregation.rs`).
    pub(super) extra_acked_rounds: Option<u64>,
    /// Whether bursts are larger on short paths, and a burst's millisecond is 2^-10 s.
    pub(super) bursts_by_rtt: bool,
    /// Whether Startup's window grows until it is twice the initial one, rather than until an initial window was
    /// delivered.
    pub(super) startup_grows_to_two_windows: bool,

    /// Whether the packets in flight in ProbeBW_UP include the next burst.
    pub(super) up_includes_burst: bool,
    /// Whether a probe may end by the losses recorded for a delivered packet, not only by those for a lost packet.
    pub(super) deliveries_end_probes: bool,
    /// Whether acknowledgements count towards the growth of inflight_hi only while it limits the sender without a gap.
    pub(super) growth_restarts: bool,
    /// Whether cruising begins with inflight_lo at most inflight_hi.
    pub(super) cruise_bounds_inflight_lo: bool,

    /// Whether an RTT equal to the minimum refreshes it, and samples with a delayed acknowledgement do not replace an
    /// expired one.
    pub(super) min_rtt_refreshes: bool,
    /// Whether a timeout restarts the search for a full pipe and sets inflight_lo.
    pub(super) timeout_changes_model: bool,
    /// Whether the end of fast recovery restores the window, as the end of recovery from a timeout does.
    pub(super) recovery_restores_cwnd: bool,
    /// Whether a loss within the reduction of a mark continues it: it saves nothing again, and what a mark is part of is not
    /// undone. An undo also restores the slow-start threshold.
    pub(super) loss_continues_reduction: bool,
    /// Whether spurious loss also returns to the mode that it ended, and only raises the window.
    pub(super) undo_restores_mode: bool,
}

/// Linux: google/bbr, branch v3.
pub(super) const LINUX: Rules = Rules {
    startup_gain: 710,
    drain_gain: 88,
    down_gain: 232,
    ecn: true,
    shares_round_down: true,
    plateau_by_rounds: false,
    drain_rounds: u64::MAX,
    drain_by_short_term_model: false,
    bdp_with_bursts: true,
    extra_acked_rounds: None,
    bursts_by_rtt: true,
    startup_grows_to_two_windows: true,
    up_includes_burst: true,
    deliveries_end_probes: true,
    growth_restarts: true,
    cruise_bounds_inflight_lo: true,
    min_rtt_refreshes: true,
    timeout_changes_model: true,
    recovery_restores_cwnd: false,
    loss_continues_reduction: true,
    undo_restores_mode: false,
};

/// draft-ietf-ccwg-bbr.
pub(super) const DRAFT: Rules = Rules {
    // 2.77, 0.5 and 0.90.
    startup_gain: 709,
    drain_gain: 128,
    down_gain: 230,
    ecn: false,
    shares_round_down: false,
    plateau_by_rounds: true,
    drain_rounds: 3,
    drain_by_short_term_model: true,
    bdp_with_bursts: false,
    extra_acked_rounds: Some(10),
    bursts_by_rtt: false,
    startup_grows_to_two_windows: false,
    up_includes_burst: false,
    deliveries_end_probes: false,
    growth_restarts: false,
    cruise_bounds_inflight_lo: false,
    min_rtt_refreshes: false,
    timeout_changes_model: false,
    recovery_restores_cwnd: true,
    loss_continues_reduction: false,
    undo_restores_mode: true,
};
