//! BBR, version 3, as the IETF specifies it: the state machine of [`bbr3`] with the draft's rules where they differ
//! from Linux's (`bbr3/rules.rs`).
//!
//! - Drain paces at 0.5 (Linux: 0.34) and ends after three rounds even with a queue; Startup and ProbeBW_DOWN pace at
//!   2.77 and 0.90.
//! - The plateau of the bandwidth is checked once per round. A probe ends by the losses recorded for a lost packet, of
//!   which exactly 2 % are allowed.
//! - Excess acknowledgements count over ten rounds, without a cap.
//! - Fast recovery ends with the earlier window; a timeout changes only the window.
//! - Loss that proves spurious also returns to the mode that it ended: Startup, or ProbeBW's refill before the probe.
//! - No ECN.
//!
//! Source: draft-ietf-ccwg-bbr-06 and the repository's text of 2026-08-03 (commit 4ce5e87), whose rules are the same.
//! Deviations: windows are packets, and gains and fractions are in 1/256 (0.90 is 230/256). The lost ranges of
//! Startup's last round are counted as acknowledgements with loss. The losses of one acknowledgement are evaluated by
//! the newest of them, those found by a timer with the next acknowledgement. A loss that a tail-loss probe repaired is
//! treated as in Linux. In ProbeBW, `C.inflight` is that before the acknowledgement, because a sender that fills
//! inflight_longterm is never at it afterwards. Undo state is saved when an episode begins, not at the first loss of
//! each of its rounds. An idle restart begins the interval of excess acknowledgements with its count at zero.

use super::bbr3::{self, Bbr3};
use crate::{AlgorithmEntry, Constructor, Ecn, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "bbr3-draft",
    aliases: &[],
    title: "BBR v3 as specified by the IETF's draft: bounds learnt from loss; some rules differ from Linux's",
    source: "draft-ietf-ccwg-bbr-06",
    parameters: &[bbr3::LOSS_THRESHOLD, bbr3::BETA, bbr3::HEADROOM, bbr3::PROBE_WAIT],
    properties: Properties { ecn: |_| Ecn::Classic, ..bbr3::ENTRY.properties },
    constructor: Constructor::PerPath(|params| Box::new(Bbr3::as_in_draft(params))),
};
