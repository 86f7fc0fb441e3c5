//! A host of the tunnel, whole: sessions with peers, an endpoint for each, and the bytes of their datagrams. Sans-IO.
//!
//! ```text
//! datagram -> open -> frames -> endpoint -> pieces            parcel -> endpoint -> frames -> seal -> datagram
//!             seal              protocol                                protocol              seal
//! ```
//!
//! The daemon lends it sockets and a clock, the campaign a simulated network; the code between is this, for both.

mod arriving;
mod host;
mod leaving;
mod peer;

pub use arriving::{Nonsense, Opened};
pub use host::Host;
pub use peer::{Address, Event, Learned, Make, Route};
