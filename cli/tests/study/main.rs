//! Studies by the program: what repeats them, what their folders accept, what interrupts them. It needs no features.

#[path = "../program/mod.rs"]
mod program;

mod evaluate;
mod fit;
mod folders;
mod names;
mod no_store;
mod provenance;
mod trace;
