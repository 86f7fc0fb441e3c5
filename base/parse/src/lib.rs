//! Parsing of scenarios and tunnel configurations: TOML values with positions, quantities with units, and errors with
//! line and help.

mod at;
mod error;
mod quantity;
mod tree;

pub use at::At;
pub use error::{Elsewhere, Error, Fault, did_you_mean, suggest};
pub use quantity::{BitRate, Decimal, Packets, Percent, Quantity, QueueSize, Size, Text, Time};
pub use tree::{Node, key_at, name, parse, typed};
