//! The program as its users run it: what it prints, its exit codes, and what is in its results.

mod bad_input;
mod clusters;
mod doctor;
mod documents;
mod good_input;
mod multipath;
mod papers;
#[path = "../program/mod.rs"]
mod program;
mod shards;
mod validation;
