//! Strangers, liars and bad networks against the real handshake and the real ciphers.

mod handshake;
mod world;
