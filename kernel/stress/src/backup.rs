//! An idle backup on the running kernel: its effect on the window of the subflow that carries the data.

use crate::network::Host;
use crate::trial::{Paths, wait_until};

/// Bytes over both subflows, and then over only the first.
const BYTES: u64 = 8_000_000;
/// Payload of a full packet in these tests, bytes.
const PACKET: u64 = 1428;
/// Fast enough for the test to take only seconds; the queue holds any window of the test, so that nothing is lost.
const QUEUE: &str = "tbf rate 100mbit burst 10k latency 5s";
/// Sizes of a connection's buffers that hold all its data, so that a program that does not run for a while is no limit.
const BUFFERS: &str = "16777216 16777216 16777216";
/// Longer than any retransmission timeout of the test, milliseconds.
const IDLE_MS: u64 = 1_000;
/// Tries until a disturbed measurement is given up.
const TRIES: usize = 5;

/// The state of a subflow, as `ss` prints it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Packets.
    cwnd: u64,
    bytes_acked: u64,
    /// Milliseconds since it last sent.
    lastsnd: u64,
    /// Packets retransmitted, and milliseconds for which the receiver or the send buffer was the limit.
    disturbances: [u64; 3],
}

/// Growth of the first subflow's window in congestion avoidance relative to Reno's, whose square grows by twice the
/// packets sent. A second subflow was used, has become a backup, and is idle. `None` if the machine stopped in each try:
/// no packet is lost here, so a retransmission, of a subflow or of MPTCP, follows from a host that did not run, and takes data to
/// the backup, too.
///
/// # Errors
/// The message of a failed command, or that the backup has sent without a disturbance.
pub fn growth_beside_backup(congestion: &str) -> Result<Option<f64>, String> {
    for _ in 0..TRIES {
        let growth = measure(congestion)?;
        if growth.is_some() {
            return Ok(growth);
        }
    }
    Ok(None)
}

/// One measurement of the growth. `None` if it was disturbed.
fn measure(congestion: &str) -> Result<Option<f64>, String> {
    let mut paths = Paths::new(2)?;
    for link in 0..2 {
        paths.network.tc(Host::Router, &format!("qdisc add dev down{link} root {QUEUE}"))?;
    }
    paths.network.write(Host::Client, "net/ipv4/tcp_wmem", BUFFERS)?;
    paths.network.write(Host::Server, "net/ipv4/tcp_rmem", BUFFERS)?;
    let mut connection = paths.open(congestion)?;
    paths.send(&mut connection, BYTES)?;
    paths.network.ip(Host::Client, "mptcp endpoint change id 2 backup")?;
    if !wait_until(|| seen(&paths, 1).is_ok_and(|seen| seen.lastsnd > IDLE_MS)) {
        return Err("the backup is not idle".to_owned());
    }
    // The first subflow was idle, too: its first data restarts its window.
    paths.send(&mut connection, BYTES / 8)?;
    let [before, backup] = [seen(&paths, 0)?, seen(&paths, 1)?];
    let reinjected = reinjections(&paths)?;
    paths.send(&mut connection, BYTES)?;
    let [after, still] = [seen(&paths, 0)?, seen(&paths, 1)?];
    let is_reinjected = reinjections(&paths)? != reinjected;
    paths.close(connection)?;
    if is_reinjected || [before.disturbances, backup.disturbances] != [after.disturbances, still.disturbances] {
        return Ok(None);
    }
    if still.bytes_acked > backup.bytes_acked {
        return Err(format!("the backup was used: {backup:?}, {still:?}"));
    }
    let packets = (after.bytes_acked - before.bytes_acked) / PACKET;
    Ok(Some((after.cwnd.pow(2) as f64 - before.cwnd.pow(2) as f64) / (2.0 * packets as f64)))
}

/// Segments that MPTCP's own timer has sent again, on any subflow (`MPTCPRetrans`), of which `ss` does not tell.
fn reinjections(paths: &Paths) -> Result<u64, String> {
    let text = paths.network.run(Host::Client, "cat /proc/net/netstat")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("MPTcpExt:"));
    let [names, values] = [lines.next(), lines.next()].map(|line| line.unwrap_or_default().split_whitespace());
    let value = names.zip(values).find(|(name, _)| *name == "MPTCPRetrans").map(|(_, value)| value);
    value.and_then(|value| value.parse().ok()).ok_or_else(|| "/proc/net/netstat has no MPTCPRetrans".to_owned())
}

fn seen(paths: &Paths, link: usize) -> Result<Seen, String> {
    let text = paths.network.run(Host::Client, &format!("ss -Htin state established src 10.77.{link}.1"))?;
    let word = |name: &str| text.split_whitespace().find_map(|word| word.strip_prefix(name));
    let value = |name: &str| {
        word(name).and_then(|value| value.parse().ok()).ok_or_else(|| format!("no {name} of subflow {link}: {text}"))
    };
    // `ss` leaves zeros out. It writes `retrans:NOW/ALL`, and `rwnd_limited:TIMEms(SHARE%)`.
    let retransmitted = word("retrans:").and_then(|value| value.split('/').nth(1)?.parse().ok());
    let limited = |name: &str| word(name).and_then(|value| value.split("ms").next()?.parse().ok());
    let disturbances =
        [retransmitted, limited("rwnd_limited:"), limited("sndbuf_limited:")].map(Option::unwrap_or_default);
    let lastsnd = value("lastsnd:").unwrap_or(0);
    Ok(Seen { cwnd: value("cwnd:")?, bytes_acked: value("bytes_acked:")?, lastsnd, disturbances })
}
