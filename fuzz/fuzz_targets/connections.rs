#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`relay::check::relay`].

ropewalk_fuzz::target!(relay::check::relay);
