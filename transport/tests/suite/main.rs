//! TCP and MPTCP machines over networks that do as they are told.

mod acknowledging;
mod any_network;
mod any_paths;
mod checked_scheduler;
mod garbage;
mod lockstep;
mod mptcp;
mod paths;
mod situations;
mod writing;
