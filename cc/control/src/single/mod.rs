//! Single-path algorithms, one file each.

pub mod bbr;
pub mod bbr3;
pub mod bbr3_draft;
pub mod bbr_path;
pub mod bic;
pub mod cdg;
pub mod compound;
pub mod copa;
pub mod cubic;
pub mod dctcp;
pub mod elastic;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
mod hystart;
mod hystart_plus;
pub mod illinois;
pub mod ledbat;
pub mod lp;
pub mod nv;
pub mod prague;
pub mod reno;
pub mod scalable;
mod search;
#[cfg(test)]
pub(crate) mod testing;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod yeah;
