#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`wire::check::relay`].

ropewalk_fuzz::target!(wire::check::relay);
