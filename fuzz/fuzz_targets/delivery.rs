#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`wire::check::delivery`].

ropewalk_fuzz::target!(wire::check::delivery);
