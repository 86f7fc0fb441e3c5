//! **Experimental.** Congestion controls of Ropewalk for noq 1, with those that couple the paths of a connection.
//!
//! A [`Factory`] makes an algorithm of Ropewalk's registry the congestion control of a connection:
//!
//! ```
//! use ropewalk_noq::{Factory, Params};
//! use std::sync::Arc;
//!
//! let mut config = noq_proto::TransportConfig::default();
//! config.max_concurrent_multipath_paths(4);
//! config.congestion_controller_factory(Arc::new(Factory::new("lia", &Params::new())?));
//! # Ok::<(), ropewalk_noq::Error>(())
//! ```
//!
//! The paths of all controllers of this factory belong together: LIA (RFC 6356) gives them all about as much as one connection
//! would get on the best of them. noq does not tell which connection a controller is for. **Each connection therefore needs a
//! separate factory and transport configuration.** [`Factory::another`] makes the next one. A client passes it to
//! `connect_with`, a server to `accept_with`.
//!
//! [`Factory::for_endpoint`] serves all connections of an endpoint, with algorithms that control each path alone. `ropewalk
//! list algorithms` has the algorithms and their parameters.
//!
//! # What noq cannot carry out
//!
//! noq reports that there were ECN marks, but not how many. Algorithms that need the number, DCTCP and Prague, are refused:
//!
//! ```
//! # use ropewalk_noq::{Factory, Params};
//! let error = Factory::new("dctcp", &Params::new()).unwrap_err();
//! assert_eq!(error.to_string(), "`dctcp` needs the number of ECN marks, and noq 1 tells only that there are any");
//! ```
//!
//! # What differs from Ropewalk's own senders
//!
//! - RTT samples contain the peer's acknowledgement delay.
//! - Packets of a path whose port has changed are forgotten, and its window holds on.

mod controller;
#[cfg(test)]
mod tests;

pub use bridge::Error;
pub use control::ParamValue;
pub use controller::Factory;

/// Parameters of an algorithm by their names.
pub type Params = std::collections::BTreeMap<String, ParamValue>;
