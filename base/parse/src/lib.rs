//! Parsing of scenarios and tunnel configurations: TOML values with positions, quantities with units, and errors with
//! line and help.

mod error;
mod quantity;
mod spanned;
mod tree;

pub use error::{Diagnostic, Error, SourceLocation, did_you_mean, suggest};
pub use quantity::{
    BitRate, BitRateOrZero, Decimal, Packets, Percent, Quantity, QuantityVisitor, QueueSize, Size, Time,
    number_with_unit,
};
pub use spanned::Spanned;
pub use tree::{Node, deserialize, element_name, key_at, parse};
