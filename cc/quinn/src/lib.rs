//! **Experimental.** Congestion controls of Ropewalk for quinn 0.11.
//!
//! A [`Factory`] makes an algorithm of Ropewalk's registry the congestion control of quinn's connections:
//!
//! ```
//! use ropewalk_quinn::{Factory, Params};
//! use std::sync::Arc;
//!
//! let mut config = quinn_proto::TransportConfig::default();
//! config.congestion_controller_factory(Arc::new(Factory::new("cubic", &Params::new())?));
//! # Ok::<(), ropewalk_quinn::Error>(())
//! ```
//!
//! Every connection gets a separate controller, so that one factory serves a whole endpoint. `ropewalk list algorithms` has
//! the algorithms and their parameters.
//!
//! # What quinn cannot carry out
//!
//! quinn 0.11 paces by window and RTT, and ignores a controller's pacing rate. BBR and other algorithms that send at a rate of
//! their own are therefore refused: without their pacing, they overflow queues. It reports that there were ECN marks, but not
//! how many. Algorithms that need the number, DCTCP and Prague, are refused too:
//!
//! ```
//! # use ropewalk_quinn::{Factory, Params};
//! let error = Factory::new("bbr3", &Params::new()).unwrap_err();
//! assert_eq!(error.to_string(), "`bbr3` sets a pacing rate, which quinn 0.11 ignores");
//! ```
//!
//! # What differs from Ropewalk's own senders
//!
//! - RTT samples contain the peer's acknowledgement delay.
//! - Packets have no numbers. Of several that were sent at once, the oldest counts as acknowledged.
//! - Transmissions of less than 100 bytes count as acknowledgements, which take nothing of the window.
//! - quinn sends while less than the window is in flight, so that its window is one byte larger than the algorithm's.
//! - A loss that proves spurious is not undone, because quinn does not say so.

mod controller;
#[cfg(test)]
mod tests;

pub use bridge::Error;
pub use control::ParamValue;
pub use controller::Factory;

/// Parameters of an algorithm by their names.
pub type Params = std::collections::BTreeMap<String, ParamValue>;
