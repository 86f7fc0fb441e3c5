//! An idle backup on the running kernel: its effect on the window of the subflow that carries the data.

use crate::network::Host;
use crate::trial::{Paths, wait_until};

/// Bytes over both subflows, and then over only the first.
const BYTES: u64 = 8_000_000;
/// Payload of a full packet in these tests, bytes.
const PACKET: u64 = 1428;
/// Fast enough for the test to take only seconds; the queue holds any window of the test, so that nothing is lost.
const QUEUE: &str = "tbf rate 100mbit burst 10k latency 5s";
/// Longer than any retransmission timeout of the test, milliseconds.
const IDLE_MS: u64 = 1_000;

/// The state of a subflow, as `ss` prints it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Packets.
    cwnd: u64,
    bytes_acked: u64,
    /// Milliseconds since it last sent.
    lastsnd: u64,
}

/// Growth of the first subflow's window in congestion avoidance relative to Reno's, whose square grows by twice the
/// packets sent. A second subflow was used, has become a backup, and is idle.
///
/// # Errors
/// The message of a failed command, or that the backup has sent.
pub fn growth_beside_backup(congestion: &str) -> Result<f64, String> {
    let mut paths = Paths::new(2)?;
    for link in 0..2 {
        paths.network.tc(Host::Router, &format!("qdisc add dev down{link} root {QUEUE}"))?;
    }
    let mut connection = paths.open(congestion)?;
    paths.send(&mut connection, BYTES)?;
    paths.network.ip(Host::Client, "mptcp endpoint change id 2 backup")?;
    if !wait_until(|| seen(&paths, 1).is_ok_and(|seen| seen.lastsnd > IDLE_MS)) {
        return Err("the backup is not idle".to_owned());
    }
    // The first subflow was idle, too: its first data restarts its window.
    paths.send(&mut connection, BYTES / 8)?;
    let [before, backup] = [seen(&paths, 0)?, seen(&paths, 1)?];
    paths.send(&mut connection, BYTES)?;
    let [after, still] = [seen(&paths, 0)?, seen(&paths, 1)?];
    if still.bytes_acked > backup.bytes_acked {
        return Err(format!("the backup was used: {backup:?}, {still:?}"));
    }
    paths.close(connection)?;
    let packets = (after.bytes_acked - before.bytes_acked) / PACKET;
    Ok((after.cwnd.pow(2) as f64 - before.cwnd.pow(2) as f64) / (2.0 * packets as f64))
}

fn seen(paths: &Paths, link: usize) -> Result<Seen, String> {
    let text = paths.network.run(Host::Client, &format!("ss -Htin state established src 10.77.{link}.1"))?;
    let value = |name: &str| {
        let mut values = text.split_whitespace().filter_map(|word| word.strip_prefix(name)?.parse().ok());
        values.next().ok_or_else(|| format!("no {name} of subflow {link}: {text}"))
    };
    // `ss` leaves zeros out.
    Ok(Seen { cwnd: value("cwnd:")?, bytes_acked: value("bytes_acked:")?, lastsnd: value("lastsnd:").unwrap_or(0) })
}
