//! Opens files that another user may have made, and folders that another user may write.
//!
//! A path may lead elsewhere each time it is used. A file is therefore opened once, without following a link if another
//! user fills the folder. Its type, length and owner are then read from its descriptor. [`Folder`] is for programs of
//! root that keep files in a folder of another user; [`open`], [`read()`] and [`copy`] are for files from another user.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "this crate is about files")]

mod folder;
mod regular;

pub use folder::{Folder, Lock, LockedFile};
pub use regular::{Links, copy, open, read, read_text, read_text_of_any};
