//! Reports of made-up runs.

mod claims;
mod compare;
mod kinds;
mod layout;
mod made_up;
mod made_up_multipath;
mod notebook;
mod page;
mod shares;
mod terminal;
mod vendored;
