//! Results folders.

mod common;
mod folder;
mod kill;
