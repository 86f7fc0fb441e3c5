//! Reports of made-up runs.

mod compare;
mod made_up;
mod made_up_multipath;
mod page;
mod terminal;
mod vendored;
