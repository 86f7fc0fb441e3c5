//! Debian's package on Debian with systemd as PID 1: installed, set up, rebooted, upgraded, removed and purged, with the
//! unit's sandbox in force.
//!
//! - `debian`: root file systems, made by debootstrap once for each suite and kept under `target`.
//! - `machine`: a booted machine, in a container of systemd-nspawn.
//! - `internet`: the network between machines: two routers with NAT and DHCP, a server on the Internet.
//! - `uplink_capture`: what leaves an uplink.
//! - `package`: the Debian packages of the program under test.
//! - `pair`: a server and a client with two uplinks.

mod debian;
mod firewalls;
mod internet;
#[cfg(feature = "kernel")]
mod kernel;
mod leaks;
mod machine;
mod package;
mod pair;
mod purge;
mod repository;
mod resolvers;
mod setup;
mod upgrade;
#[path = "../uplink_capture/mod.rs"]
mod uplink_capture;
