//! `ropewalk test`: rate and latency through the tunnel, of each path alone and of all together.

mod measure;
#[cfg(feature = "study")]
mod measurements;
mod order;
mod page;
mod result;

use super::live::Findings;
use super::target::{client_or_only, configuration_file, failure};
use crate::{Failure, output};
use clap::Args;
use daemon::control_plane::Client;
use daemon::status::{PathState, PathStatus, Traffic, TunnelStatus};
use measure::{Direction, Rtt, Session};
use order::Task;
use result::{End, Measurement, OtherTraffic, Packets, TestResult};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The arguments of the command.
#[derive(Args, Debug)]
pub(crate) struct Test {
    /// The interface, if there are several
    tunnel: Option<String>,
    /// The inner address of the other end; by default the peer's only address, or the first one of the network
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// Time of each measurement
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=30))]
    seconds: u64,
    /// Number of parallel TCP connections
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=16))]
    streams: u64,
    /// Also measure metered paths alone, which uses up their data volume
    #[arg(long)]
    metered: bool,
    /// Write a report page
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write what a fit can use of each path as one document of measurements, as `ropewalk probe` does
    #[cfg(feature = "study")]
    #[arg(long, value_name = "FILE")]
    measurements: Option<PathBuf>,
}

/// Restores the paths that carry data when it is dropped, whatever happens to the test.
struct AllPaths<'a>(&'a Client);

impl Drop for AllPaths<'_> {
    fn drop(&mut self) {
        // The daemon does so itself a minute later.
        let _ = self.0.request("DELETE", "/v1/alone", "");
    }
}

pub(super) fn test(arguments: &Test) -> Result<(), Failure> {
    let client = client_or_only(arguments.tunnel.as_deref())?;
    let status = client.status().map_err(|error| failure(&error))?;
    let session = connect(arguments, &status)?;
    output::warn(&format!("testing {} with {}", status.interface.name, session.address().ip()));
    let result = run(arguments, &client, &status, &session)?;
    if let Some(file) = &arguments.out {
        super::import::replace_file(file, &page::page(&result))
            .map_err(|error| Failure::Environment(format!("cannot write {}: {error}", file.display())))?;
    }
    // The measurements end at the server's daemon; the hosts that users reach through the tunnel are beyond it.
    let mut beyond = Findings::default();
    super::beyond::ask(&status, &mut beyond);
    output::warn(beyond.text());
    #[cfg(feature = "study")]
    if let Some(file) = &arguments.measurements {
        measurements::write(&result, file)?;
        output::warn(&measurements::next(&result, file));
    }
    if arguments.json { output::json(&result) } else { output::print(&format!("{}\n", result.verdict)) }
}

fn run(arguments: &Test, client: &Client, status: &TunnelStatus, session: &Session) -> Result<TestResult, Failure> {
    let tasks = order::tasks(paths_alone(arguments, status));
    let (count, seconds) = (tasks.len(), arguments.seconds);
    output::warn(&format!("{count} measurements of {seconds} s in random order"));
    let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64);
    let (other_traffic, idle) = other_traffic_within(client, || session.idle_rtt().map_err(|error| broken(&error)))?;
    output::warn(&format!("idle: RTT {}", result::milliseconds(idle.median_ms)));
    let mut measurements = Vec::new();
    for (order, index) in (1..).zip(order::random(session.id(), count)) {
        let Load { idle_rtt, rate_bps, rtt, packets } = load(arguments, client, session, &tasks[index])?;
        let Task { path, direction } = tasks[index].clone();
        let backup = status.paths().any(|(_, found)| Some(&found.name) == path.as_ref() && found.backup);
        let direction = direction.name();
        measurements.push((index, Measurement { path, backup, direction, order, idle_rtt, rate_bps, rtt, packets }));
    }
    measurements.sort_by_key(|(index, _)| *index);
    let measurements: Vec<_> = measurements.into_iter().map(|(_, measurement)| measurement).collect();
    // What the test itself has left in queues does not count.
    thread::sleep(Duration::from_secs(1));
    let other_traffic = other_traffic.max(
        other_traffic_within(client, || {
            thread::sleep(Duration::from_secs(1));
            Ok(())
        })?
        .0,
    );
    let verdict = result::verdict(&idle, &other_traffic, &measurements);
    let (interface, address) = (status.interface.name.clone(), session.address().ip());
    let ends = [own_end(status), other_end(session)];
    Ok(TestResult {
        version: 2,
        unix_ms,
        interface,
        address,
        ends,
        seconds,
        congestion: congestion(arguments, status),
        idle_rtt: idle,
        other_traffic,
        measurements,
        verdict,
    })
}

/// What went through the tunnel while `measure` ran, which sends next to nothing.
fn other_traffic_within<T>(
    client: &Client,
    measure: impl FnOnce() -> Result<T, Failure>,
) -> Result<(OtherTraffic, T), Failure> {
    let status = || client.status().map_err(|error| failure(&error));
    let before = status()?;
    let measured = measure()?;
    let after = status()?;
    let seconds = (after.uptime_s - before.uptime_s).max(0.1);
    let rate = |now: Traffic, before: Traffic| now.bytes.saturating_sub(before.bytes) as f64 * 8.0 / seconds;
    let (now, old) = (&after.interface, &before.interface);
    let traffic = OtherTraffic { down_bps: rate(now.received, old.received), up_bps: rate(now.sent, old.sent) };
    Ok((traffic, measured))
}

fn own_end(status: &TunnelStatus) -> End {
    let host = nix::unistd::gethostname().ok().map(|name| name.to_string_lossy().into_owned());
    End { host, version: status.program_version.clone(), address: status.interface.addresses.join(" ") }
}

fn other_end(session: &Session) -> End {
    let about = session.about();
    let (version, host) = about.as_deref().and_then(|about| about.rsplit_once(' ')).unzip();
    End {
        host: host.map(str::to_owned),
        version: version.map(str::to_owned),
        address: session.address().ip().to_string(),
    }
}

/// The congestion control of the tunnel's paths, if its configuration can be read.
fn congestion(arguments: &Test, status: &TunnelStatus) -> Option<String> {
    let name = arguments.tunnel.as_deref().unwrap_or(&status.interface.name);
    let config = daemon::config::load(&configuration_file(Path::new(name))).ok()?;
    Some(config.options.congestion.name)
}

/// One measurement.
struct Load {
    /// Without load, of a path alone.
    idle_rtt: Option<Rtt>,
    rate_bps: f64,
    rtt: Rtt,
    packets: Option<Packets>,
}

/// The packets that a path has sent so far.
fn packets(client: &Client, path: &str) -> Option<Packets> {
    let status = client.status().ok()?;
    let (_, path) = status.paths().find(|(_, found)| found.name == path)?;
    Some(Packets { sent: path.sent.packets, lost: path.lost_packets })
}

fn load(arguments: &Test, client: &Client, session: &Session, task: &Task) -> Result<Load, Failure> {
    let _restored = task.path.as_ref().map(|_| AllPaths(client));
    if let Some(name) = &task.path {
        client.request("POST", &format!("/v1/alone/{name}"), "").map_err(|error| failure(&error))?;
    }
    let alone = task.path.as_deref();
    let idle = alone.filter(|_| task.direction == Direction::Down).map(|_| session.idle_rtt());
    let idle_rtt = idle.transpose().map_err(|error| broken(&error))?;
    let sender = alone.filter(|_| task.direction == Direction::Up);
    let before = sender.and_then(|path| packets(client, path));
    let (rate_bps, rtt) =
        session.load(task.direction, arguments.seconds, arguments.streams as usize).map_err(|error| broken(&error))?;
    let after = sender.and_then(|path| packets(client, path));
    let packets = after.zip(before).map(|(after, before)| after.since(before));
    let name = task.path.as_deref().unwrap_or("all together");
    let (direction, rate) = (task.direction.name(), result::mbit(rate_bps));
    output::warn(&format!("{name}, {direction}: {rate} Mbit/s, RTT {}", result::milliseconds(rtt.median_ms)));
    Ok(Load { idle_rtt, rate_bps, rtt, packets })
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::Run(format!("the test broke off: {error}"))
}

/// The paths to measure alone: those that are up, if this end has several; without metered ones unless they are asked for.
fn paths_alone(arguments: &Test, status: &TunnelStatus) -> Vec<String> {
    let paths: Vec<_> = status.peers.iter().flat_map(|peer| &peer.paths).collect();
    let own = paths.iter().filter(|path| path.state == PathState::Up && !path.opened_by_peer);
    if status.mode == "mpt" || paths.len() < 2 || status.peers.len() > 1 {
        return Vec::new();
    }
    if own.clone().count() == 0 {
        output::warn("the peer has opened the paths: run the test at that end to measure each alone");
    }
    let (wanted, metered): (Vec<_>, Vec<_>) =
        own.copied().partition(|path: &&PathStatus| arguments.metered || !path.metered);
    for path in metered {
        output::warn(&format!("{} is metered: not measured alone without --metered", path.name));
    }
    wanted.into_iter().map(|path| path.name.clone()).collect()
}

/// Opens a test with the first of the other end's possible addresses that answers.
fn connect(arguments: &Test, status: &TunnelStatus) -> Result<Session, Failure> {
    let addresses = arguments.address.map_or_else(|| addresses(status), |address| vec![address]);
    let mut problems = Vec::new();
    for address in &addresses {
        match Session::open(SocketAddr::new(*address, daemon::speed_test::PORT)) {
            Ok(session) => return Ok(session),
            Err(error) => problems.push(format!("{address}: {error}")),
        }
    }
    let problems = if problems.is_empty() { "its address is not known".into() } else { problems.join("; ") };
    Err(Failure::Environment(format!(
        "the other end does not answer the test: {problems}\n  help: --address IP names its inner address; it needs this \
         version, not `speed-test = false`, and a firewall that lets port {} in from the tunnel",
        daemon::speed_test::PORT
    )))
}

/// The possible inner addresses of the only peer: networks of one address, then the first address of our own network.
fn addresses(status: &TunnelStatus) -> Vec<IpAddr> {
    let [peer] = &status.peers[..] else { return Vec::new() };
    let host = |network: &String| {
        let (address, length) = network.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        (length == if address.is_ipv4() { "32" } else { "128" }).then_some(address)
    };
    let own: Vec<(IpAddr, u32)> = status
        .interface
        .addresses
        .iter()
        .filter_map(|network| network.split_once('/'))
        .filter_map(|(address, length)| Some((address.parse().ok()?, length.parse().ok()?)))
        .collect();
    let first = own.iter().filter_map(|(address, length)| first_address(*address, *length));
    let found: Vec<IpAddr> = peer.allowed_ips.iter().filter_map(host).chain(first).collect();
    let is_own = |address: &IpAddr| own.iter().any(|(own, _)| own == address);
    found.into_iter().filter(|address| !is_own(address)).collect()
}

/// The first address of a network that has more than one.
fn first_address(address: IpAddr, length: u32) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) if length < 31 => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Some(IpAddr::from(((u32::from(address) & mask) + 1).to_be_bytes()))
        }
        IpAddr::V6(address) if length < 127 => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            Some(IpAddr::from(((u128::from(address) & mask) + 1).to_be_bytes()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_ends_address_is_its_only_one_or_the_first_of_the_network() {
        let mut status = TunnelStatus::example();
        status.interface.addresses = vec!["10.77.0.2/24".into(), "fd77::2/64".into()];
        status.peers[0].allowed_ips = vec!["10.77.0.9/32".into(), "0.0.0.0/0".into()];
        let expected = ["10.77.0.9", "10.77.0.1", "fd77::1"].map(|address| address.parse::<IpAddr>().unwrap());
        assert_eq!(addresses(&status), expected);
        status.interface.addresses = vec!["10.77.0.1/24".into(), "10.1.1.1/32".into()];
        assert_eq!(addresses(&status), [expected[0]], "never our own");
    }
}
