//! Strangers, liars and bad networks against the real handshake and the real ciphers.

mod campaign;
mod corpus;
mod crossing;
mod data;
mod floods;
mod handshake;
mod keys;
mod rekeying;
mod tampering;
mod world;
