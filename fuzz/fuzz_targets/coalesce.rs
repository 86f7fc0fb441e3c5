#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`wire::check::coalesce`].

ropewalk_fuzz::target!(wire::check::coalesce);
