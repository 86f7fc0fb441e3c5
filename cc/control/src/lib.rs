//! Congestion control: events in, decisions out.
//!
//! The protocol machines know one interface, [`Controller`], for a *group* of paths. A single-path algorithm
//! implements [`PathController`] and is lifted to a group by [`Uncoupled`]: one instance a path, none sees another.
//! A window-based single-path algorithm need not even do that: it states only what is its own as a
//! [`frame::WindowRule`], and [`frame::Windowed`] supplies slow start, proportional rate reduction, one cut a window
//! and undo. What couples the windows of several paths states a [`frame::Coupling`], and [`frame::Coupled`] the same.
//!
//! **The unit of a window is the packet** (one MSS of payload), as in Linux and in most papers, so that published
//! constants can be used as they stand.
//!
//! Writing an algorithm touches two places: its own file, and one line of [`registry::REGISTRY`].

pub mod coupled;
mod entry;
mod event;
pub mod frame;
mod group;
pub mod registry;
pub mod single;

pub use entry::{AlgorithmEntry, Constructor};
pub use event::{AckSample, CaState, Cause, PathEvent, PathInfo, RateSample, Reduction, SendState};
pub use group::Uncoupled;
pub use params::{ParamDefault, ParamError, ParamValue, Parameter, Params};

use std::fmt::Debug;
use units::{Instant, PathId, Rate, Stream};

/// What a controller allows: a value, asked for whenever it matters. Nothing else leaves a controller, once the
/// connection is open; what it wants of [`Ecn`] is asked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Packets that may be in flight.
    pub cwnd: u32,
    /// The slow-start threshold, in packets; [`units::INFINITE_SSTHRESH`] before the first congestion.
    pub ssthresh: u32,
    /// The rate to pace at, or `None` for an algorithm that is clocked by acknowledgements.
    pub pacing_rate: Option<Rate>,
}

/// What an algorithm asks of explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// RFC 3168, where the hosts are set to it: new data is ECN-capable, and a mark is echoed until it is answered.
    #[default]
    Classic,
    /// RFC 8257: the algorithm lives on marks. ECN is negotiated however the hosts are set, every packet of the
    /// connection is ECN-capable, and each packet's mark is echoed (Linux: `TCP_CONG_NEEDS_ECN`).
    PerPacket,
}

/// What comes in with every call: the time and this controller's own luck.
#[derive(Debug)]
pub struct Context<'a> {
    /// The present.
    pub now: Instant,
    /// The random stream of this group of paths.
    pub rng: &'a mut Stream,
}

/// Controls one group of paths. The only interface that the protocol machines know.
pub trait Controller: Debug + Send {
    /// Something happened on `path`.
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>);
    /// What `path` may do now.
    fn decision(&self, path: PathId) -> Decision;
    /// What it needs of ECN; always the same.
    fn ecn(&self) -> Ecn {
        Ecn::Classic
    }
}

/// Controls one path. [`Uncoupled`] lifts it to a group.
pub trait PathController: Debug + Send {
    /// Something happened on the path.
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>);
    /// What the path may do now.
    fn decision(&self) -> Decision;
    /// What it needs of ECN; always the same.
    fn ecn(&self) -> Ecn {
        Ecn::Classic
    }
}
