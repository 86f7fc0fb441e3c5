#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`seal::check::handshake`].

ropewalk_fuzz::target!(seal::check::handshake);
