//! Files that somebody else may have made, and folders that somebody else may write.
//!
//! A path may lead elsewhere each time it is used. So a file is opened once, without following a link where a stranger
//! fills the folder, and everything else is done by its descriptor: what it is, how long it is, whose it is. [`Folder`]
//! is for programs of root that keep files in a folder of another user; [`open`], [`read()`] and [`copy`] are for files that
//! somebody sent.

mod folder;
mod regular;

pub use folder::{Folder, Lock, LockedFile};
pub use regular::{Links, copy, open, read, read_text, read_text_of_any};
