#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`wire::check::gre`].

ropewalk_fuzz::target!(wire::check::gre);
