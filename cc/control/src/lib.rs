//! Congestion control: events in, decisions out.
//!
//! Senders use one interface, [`Controller`], for a *group* of paths. A single-path algorithm implements
//! [`PathController`]; [`Uncoupled`] runs one instance per path. A window-based single-path algorithm implements only
//! [`common::CongestionOps`]; [`common::CwndController`] supplies slow start, proportional rate reduction, one
//! reduction per window and undo. An algorithm that couples the windows of several paths implements
//! [`common::Coupling`], and [`common::CoupledController`] supplies the rest.
//!
//! **The unit of a congestion window is the packet** (one MSS of payload), as in Linux and in most papers, so that
//! published constants apply unchanged.
//!
//! A new algorithm needs its own file and one line of [`registry::REGISTRY`]. A plug-in or a notebook calls
//! [`registry::register`] instead.

pub mod common;
pub mod coupled;
mod entry;
mod event;
pub mod registry;
pub mod single;
mod uncoupled;

pub use entry::{AlgorithmEntry, Constructor, CoupledConstructor, Deviation, PerPathConstructor, Properties};
pub use event::{
    AckProgress, AckSample, CaState, Cause, LinuxRelease, PathEvent, PathInfo, RateSample, Reduction, SendState,
};
pub use params::{
    AlgorithmChoice, AlgorithmError, FILE, Kept, ParamError, ParamKind, ParamValue, Parameter, Params, RegisterError,
    code_version, kept_text,
};
pub use uncoupled::Uncoupled;

use std::any::Any;
use std::fmt::Debug;
use units::{Instant, PathId, Rate, RngStream};

/// The limits that a controller sets for a path: its only output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Congestion window: packets that may be in flight.
    pub cwnd: u32,
    /// Slow-start threshold, packets; [`units::INFINITE_SSTHRESH`] before the first congestion.
    pub ssthresh: u32,
    /// Pacing rate; `None` for an algorithm that is clocked by acknowledgements.
    pub pacing_rate: Option<Rate>,
}

/// The explicit congestion notification (ECN) that an algorithm needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// RFC 3168, if the hosts enable it: new data is ECN-capable, and a mark is echoed until CWR.
    #[default]
    Classic,
    /// RFC 8257 (Linux `TCP_CONG_NEEDS_ECN`): ECN is always negotiated, every packet of the
    /// connection is ECN-capable, and each packet's mark is echoed.
    PerPacket,
    /// Low latency, low loss, scalable throughput (RFC 9331): ECN is always negotiated, every packet of the connection is
    /// ECT(1), and marks are counted by accurate ECN (RFC 9768).
    L4s,
}

/// The time and the source of randomness of one call.
#[derive(Debug)]
pub struct Context<'a> {
    /// The current time.
    pub now: Instant,
    /// Random stream of this group of paths.
    pub rng: &'a mut RngStream,
}

/// Controls a group of paths: the interface that senders use. The trait extends [`Any`], so that a driver can find its
/// own controller in a sender.
pub trait Controller: Any + Debug + Send + Sync {
    /// Handles an event of `path`.
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>);
    /// The decision for `path`, which senders read after each event of the path.
    fn decision(&self, path: PathId) -> Decision;
    /// Whether the acknowledgement that `path` has just reported should begin a reduction ([`Cause::Requested`]), as
    /// Linux's `tcp_enter_cwr` does. A sender ignores it during another reduction or after a timeout.
    fn requests_reduction(&self, _path: PathId) -> bool {
        false
    }
    /// The reason why another algorithm has replaced this one, if any: a learned policy can fail. Drivers report it.
    fn failure(&self) -> Option<&str> {
        None
    }
}

/// Controls one path. [`Uncoupled`] turns it into a [`Controller`].
pub trait PathController: Debug + Send + Sync {
    /// Handles an event of the path.
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>);
    /// The decision for the path.
    fn decision(&self) -> Decision;
    /// As [`Controller::requests_reduction`].
    fn requests_reduction(&self) -> bool {
        false
    }
}
