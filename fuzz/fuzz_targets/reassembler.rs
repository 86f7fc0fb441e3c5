#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`machine::check::reassembler`].

ropewalk_fuzz::target!(machine::check::reassembler);
