//! What keeps strangers out of a tunnel: handshake, keys, sealed datagrams, replay windows, cookies. Sans-IO; chance and
//! time come in as arguments.
