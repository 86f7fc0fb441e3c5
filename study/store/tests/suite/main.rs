//! Results folders.

#![allow(clippy::disallowed_methods, reason = "folders of tests are theirs alone")]

mod common;
mod folder;
mod kill;
