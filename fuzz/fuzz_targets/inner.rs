#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`wire::check::inner`].

ropewalk_fuzz::target!(wire::check::inner);
