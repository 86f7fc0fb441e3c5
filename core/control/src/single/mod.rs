//! Single-path algorithms, one file each.

pub mod reno;
