//! The tests of the daemon, in one binary.

mod clean_up;
mod configuration;
mod data_plane;
mod peers_file;
mod reference;
mod status;
