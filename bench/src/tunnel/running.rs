//! A system under test that has been started: its processes, and at which address its far end answers.

use std::net::Ipv4Addr;
use std::process::Child;

/// A system that has been started.
#[derive(Debug)]
pub(super) struct RunningSystem {
    /// The right host's address for TCP.
    pub(super) target: Ipv4Addr,
    /// The right host's address for datagrams, which MPTCP does not carry.
    pub(super) probed: Ipv4Addr,
    /// The command that iperf3 is run by.
    pub(super) wrapper: &'static str,
    pub(super) _processes: Processes,
}

impl RunningSystem {
    /// An address without processes.
    pub(super) fn plain(target: Ipv4Addr) -> Self {
        Self { target, probed: target, wrapper: "", _processes: Processes(Vec::new()) }
    }

    /// A tunnel: its far address and its processes.
    pub(super) fn tunnel(target: Ipv4Addr, processes: Vec<Child>) -> Self {
        Self { _processes: Processes(processes), ..Self::plain(target) }
    }
}

/// Processes that are killed when this is dropped.
#[derive(Debug)]
pub(super) struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
