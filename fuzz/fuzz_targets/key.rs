#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`seal::check::key`].

ropewalk_fuzz::target!(seal::check::key);
