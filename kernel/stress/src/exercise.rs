//! Situations that call the hooks of a program: an overflowing queue, a timeout because of the path's delay, and an
//! idle pause.
//!
//! The links are shaped by `tbf` only, which every kernel of the matrix has.

use crate::network::{Host, Network};
use crate::observe::counter;
use crate::traffic::Connection;
use crate::trial::{PACKET, PATIENCE, Paths, wait_within};
use kernel::Hook;
use std::time::{Duration, Instant};

/// A short queue that slow start overflows.
const LOSING: &str = "tbf rate 20mbit burst 20kb limit 30kb";
/// A long queue, so slow that a packet's acknowledgement arrives after Linux's minimum timeout of 200 ms.
const SLOW: &str = "tbf rate 20kbit burst 2kb limit 1mb";
/// Counters of `/proc/net/netstat` that grow when a reduction turns out to have been unnecessary.
const UNDONE: [&str; 4] = ["TCPLossUndo", "TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo"];

/// The time of a round after which nothing will be undone: the slow queue has drained.
const ROUND: Duration = Duration::from_secs(30);
/// Single packets of a round, each after an idle pause.
const PAUSES: usize = 20;

/// Makes a connection lose packets, time out, find the timeout unnecessary, and become idle, repeatedly until each hook
/// of the registration `id` was called at least once. Returns these hooks. It cannot be controlled which reduction is
/// undone: on a busy machine the timeout may occur before the window was reduced.
///
/// # Errors
/// The message of a failed command, or the event that did not occur.
pub fn run(paths: &mut Paths, connection: &mut Connection, id: u32) -> Result<Vec<Hook>, String> {
    let start = Instant::now();
    let are_called = || kernel::hooks(id).iter().all(|hook| hook.calls > 0);
    while !are_called() && start.elapsed() < PATIENCE {
        round(paths, connection)?;
        for _ in 0..PAUSES {
            if are_called() {
                break;
            }
            paths.send(connection, PACKET)?;
        }
    }
    Ok(kernel::hooks(id))
}

/// A loss, an unnecessary timeout, and its undo. If nothing is undone, the next round tries again.
fn round(paths: &mut Paths, connection: &mut Connection) -> Result<(), String> {
    shape(&paths.network, "replace", LOSING)?;
    paths.send(connection, 2_000_000)?;
    let before = undone(&paths.network)?;
    shape(&paths.network, "replace", SLOW)?;
    paths.start_sending(connection, 40 * PACKET);
    wait_within(ROUND, || undone(&paths.network).is_ok_and(|undone| undone > before));
    shape(&paths.network, "change", LOSING)?;
    paths.send(connection, PACKET)
}

fn shape(network: &Network, verb: &str, qdisc: &str) -> Result<(), String> {
    (0..network.links())
        .try_for_each(|link| network.tc(Host::Router, &format!("qdisc {verb} dev down{link} root {qdisc}")).map(drop))
}

fn undone(network: &Network) -> Result<u64, String> {
    UNDONE.iter().map(|name| counter(network, Host::Client, "TcpExt", name)).sum()
}
