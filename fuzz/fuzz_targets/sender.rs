#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`ropewalk_fuzz::sender`].

ropewalk_fuzz::target!(ropewalk_fuzz::sender);
