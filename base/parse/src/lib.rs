//! How people write to Ropewalk, in scenarios and in a tunnel's configuration: TOML whose values know their place,
//! quantities with units, and faults told at their line with what would be right.

mod at;
mod error;
mod quantity;
mod tree;

pub use at::At;
pub use error::{Elsewhere, Error, Fault, did_you_mean, suggest};
pub use quantity::{BitRate, Decimal, Packets, Percent, Quantity, QueueSize, Size, Text, Time};
pub use tree::{Node, key_at, name, parse, typed};
