//! Congestion control of Ropewalk for QUIC stacks: what a stack reports of its packets becomes the events of a path.
//!
//! A stack reports packets that were sent, acknowledged, lost or marked to its congestion controller, in bytes and in the
//! stack's order. A controller of `ropewalk-control` gets acknowledgements: congestion first, and one sample last, with
//! delivery rate, round trips and the limits of the sender. A [`Path`] turns the first into the second. It counts
//! full packets, as the windows of the algorithms do, and measures with [`sender::path::PathSender`], as every machine of
//! Ropewalk does. The [`Path`]s of one [`Group`] belong to one connection and share a controller, which may couple them.
//!
//! `ropewalk-quinn` and `ropewalk-noq` are such bridges for two stacks. For another one, an implementation of its trait
//! calls a [`Path`]:
//!
//! ```
//! use ropewalk_bridge::{Algorithm, StackLimits};
//! use std::collections::BTreeMap;
//! use units::{Instant, Span};
//!
//! let stack = StackLimits { name: "my stack", paces: true, counts_marks: false };
//! let group = Algorithm::new("lia", &BTreeMap::new(), stack)?.group(1);
//! let path = group.path(Instant::ZERO, 1200);
//! assert_eq!(path.window(), 12_000);
//!
//! let (sent, acked) = (Instant::ZERO, Instant::ZERO + Span::from_millis(20));
//! (0..10).for_each(|number| path.on_sent(sent, 1200, Some(number)));
//! (0..10).for_each(|number| path.on_acked(acked, sent, Some(number)));
//! path.on_acks_end(0);
//! // The window was full, and everything has arrived: slow start doubles it.
//! assert_eq!(path.window(), 24_000);
//! # Ok::<(), ropewalk_bridge::Error>(())
//! ```
//!
//! # What ends a report
//!
//! Stacks tell of the losses that an acknowledgement shows after the acknowledgement itself, and nothing tells that there
//! are none. A report is therefore open until another one begins, a packet is sent, or the stack asks for the
//! [window](Path::window) or the [pacing rate](Path::pacing_rate). Then the controller gets all of it at once.

mod algorithm;
mod group;
mod path_state;
mod report;
mod sent_packets;

pub use algorithm::{Algorithm, Error, StackLimits};
pub use group::{Group, Path};

/// Initial window of a path, full packets (RFC 9002, section 7.2).
pub const INITIAL_WINDOW: u32 = 10;
