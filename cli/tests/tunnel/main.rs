//! `ropewalk up FILE` on two hosts of a test bed, with real devices, real sockets and real TCP inside. Without root
//! each test is skipped.
//!
//! - `tunnel_pair`: both hosts with their configurations and daemons.
//! - `traffic`: TCP transfers and echoed datagrams through the tunnel.
//! - `relay`: TCP connections that are ended at the tunnel's ends.
//! - `conversation`: a connection that goes on while lines change under it.
//! - `hostile_client`: a hostile peer with a UDP socket.
//! - `nat64`: a network of IPv6 that translates.
//! - `kernel`: Linux's GRE-in-UDP as the peer.
//! - `packet_socket`: an attacker's packet socket.
//! - `uplink_capture`: what leaves an uplink.
//! - `privileges`: the daemon's user as the attacker of root.
//! - `protocol`: an implementation in Python as the peer.

#![allow(clippy::disallowed_methods, reason = "folders of tests are theirs alone")]

mod ansible;
mod attacks;
mod causes;
mod clients;
mod compatibility;
mod conversation;
mod dashboard;
mod enrolment;
mod failures;
mod field;
mod fleet;
mod hostile;
mod hostile_client;
mod inside;
mod internet;
mod kernel;
mod leaks;
mod lines;
mod live;
mod metered;
mod mtu;
mod names;
mod nat64;
mod notifications;
mod packet_socket;
mod policy;
mod privileges;
mod prometheus;
mod protocol;
mod python;
mod quota;
mod relay;
mod reloads;
mod restarts;
mod second_daemon;
mod servers;
mod setup;
mod situations;
mod speed_test;
mod strangers;
mod threads;
mod traffic;
mod transfers;
mod tunnel_pair;
#[path = "../uplink_capture/mod.rs"]
mod uplink_capture;
mod uplinks;
