//! Two ends of the relay over a channel that loses, delays, duplicates and reorders messages.

mod hostile;
mod network;
mod semantics;
mod transfer;
