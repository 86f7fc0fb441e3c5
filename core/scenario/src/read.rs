//! Single quantities as a scenario writes them, for other places where people write them: a rate is the same word
//! everywhere. The first line of an error says what is wrong, the second what would be right.

use crate::model::Limit;
use crate::quantity::{BitRate, Percent, Quantity, QueueLimit, Size, Time};
use units::{Rate, Span};

/// A rate such as `100mbit`; never zero.
///
/// # Errors
/// Of what is no rate.
pub fn rate(text: &str) -> Result<Rate, String> {
    BitRate::read(text).map(|BitRate(rate)| rate)
}

/// A time such as `10ms`.
///
/// # Errors
/// Of what is no time.
pub fn time(text: &str) -> Result<Span, String> {
    Time::read(text).map(|Time(span)| span)
}

/// Bytes, such as `1500b` or `64kB`.
///
/// # Errors
/// Of what is no size.
pub fn size(text: &str) -> Result<u64, String> {
    Size::read(text).map(|Size(bytes)| bytes)
}

/// A share such as `0.5%`, as a number from 0 to 1.
///
/// # Errors
/// Of what is no share.
pub fn share(text: &str) -> Result<f64, String> {
    Percent::read(text).map(|Percent(share)| share)
}

/// A queue's limit such as `1000p`, `64kB` or `50ms`; a bandwidth-delay product has no meaning without its path.
///
/// # Errors
/// Of what is no limit.
pub fn limit(text: &str) -> Result<Limit, String> {
    match QueueLimit::read(text)? {
        QueueLimit::Packets(packets) => Ok(Limit::Packets(packets)),
        QueueLimit::Bytes(bytes) => Ok(Limit::Bytes(bytes)),
        QueueLimit::Time(span) => Ok(Limit::Time(span)),
        QueueLimit::Bdp(_) => Err(format!("`{text}`: there is no path to take the product of\nwrite a time or bytes")),
    }
}
