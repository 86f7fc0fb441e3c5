//! TCP, MPTCP and multipath QUIC machines over the test network.

mod acknowledging;
mod any_network;
mod any_paths;
mod impairments;
mod mptcp;
mod mptcp_connection;
mod quic;
mod quic_connection;
mod random_ack;
mod receive_window;
mod reordering;
mod situations;
mod super_segments;
mod tcp_connection;
mod timelines;
mod write_queue;
mod writing;
