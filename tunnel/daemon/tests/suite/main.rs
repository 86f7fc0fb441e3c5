//! The tests of the daemon, in one binary.

#![allow(clippy::disallowed_methods, reason = "folders of tests are theirs alone")]

mod clean_up;
mod configuration;
mod data_plane;
mod peers_file;
mod reference;
mod status;
