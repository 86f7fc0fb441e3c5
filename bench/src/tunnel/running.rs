//! A system under test that has been started: its processes, and the address at which the server answers.

use std::net::Ipv4Addr;
use std::process::Child;

/// A system that has been started.
#[derive(Debug)]
pub(super) struct RunningSystem {
    /// The server's address for TCP.
    pub(super) target: Ipv4Addr,
    /// The server's address for datagrams, which MPTCP does not carry.
    pub(super) probe_target: Ipv4Addr,
    /// The command before `iperf3` on its command line; may be empty.
    pub(super) wrapper: &'static str,
    pub(super) processes: Processes,
}

impl RunningSystem {
    /// A system without processes, reached at an address.
    pub(super) fn plain(target: Ipv4Addr) -> Self {
        Self { target, probe_target: target, wrapper: "", processes: Processes(Vec::new()) }
    }

    /// A tunnel: the server's inner address and the processes of both ends.
    pub(super) fn tunnel(target: Ipv4Addr, processes: Vec<Child>) -> Self {
        Self { processes: Processes(processes), ..Self::plain(target) }
    }
}

/// Processes that are killed when this is dropped.
#[derive(Debug)]
pub(super) struct Processes(pub(super) Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
