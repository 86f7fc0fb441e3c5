#![cfg_attr(fuzzing, no_main)]
//! Fuzz target of [`node::check::node`].

ropewalk_fuzz::target!(node::check::node);
