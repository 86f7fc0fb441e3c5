#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`machine::check::endpoint`].

ropewalk_fuzz::target!(machine::check::endpoint);
