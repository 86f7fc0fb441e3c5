#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`wire::check::frames`].

ropewalk_fuzz::target!(wire::check::frames);
