//! Single-path algorithms, one file each.

pub mod bbr;
pub mod bic;
pub mod cubic;
pub mod highspeed;
mod hystart;
pub mod reno;
pub mod scalable;
#[cfg(test)]
mod testing;
pub mod vegas;
