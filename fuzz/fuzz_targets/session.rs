#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`seal::check::session`].

ropewalk_fuzz::target!(seal::check::session);
