//! Handshakes and ciphers under replays, forgeries, floods and bad networks.

mod campaign;
mod corpus;
mod data;
mod floods;
mod handshake;
mod keys;
mod lockout;
mod rekeying;
mod responses;
mod simultaneous;
mod tampering;
mod test_peer;
