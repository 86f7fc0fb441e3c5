//! The tunnel daemon: real time, a TUN device and UDP sockets under the machines of core.

pub mod plane;
