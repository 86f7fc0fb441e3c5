#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`wire::check::segment`].

ropewalk_fuzz::target!(wire::check::segment);
