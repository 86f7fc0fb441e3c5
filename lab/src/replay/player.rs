//! The player: replays scripts to the kernel that it runs on, through TUN devices, of which it is the other end.

use super::Outcome;
use super::clock::Clock;
use super::connection::Connection;
use super::packet::KernelPacket;
use crate::namespace;
use nix::poll::{PollFd, PollFlags, ppoll};
use replay::{Recording, Script};
use sock_diag::SockDiag;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// The devices: with and without segmentation offload.
const DEVICES: [&str; 2] = ["replay0", "replay1"];
/// Maximum number of connections at a time. With more, a kernel in real time is late.
const AT_A_TIME: usize = 12;
/// Time for a connection to be prepared, nanoseconds.
const PREPARATION_NS: u64 = 5_000_000;
/// Packets of a device's queue.
const QUEUE: u32 = 10_000;
const BUFFER: usize = 4096;
/// A wait that ends early enough.
const PRECISE: Duration = Duration::from_micros(200);

/// The local address on a device.
fn local(device: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 201 + device as u8, 0, 1)
}

/// `agent replay SCRIPTS RECORDINGS [NAMESPACE]`: plays the scripts of a file, in a network namespace.
pub(crate) fn main(scripts: &str, recordings: &str, namespace: Option<&str>) -> Outcome<()> {
    if let Some(name) = namespace {
        namespace::enter(name)?;
    }
    let list: Vec<Script> = serde_json::from_slice(&fs::read(scripts)?)?;
    let played = play(&list)?;
    Ok(fs::write(recordings, serde_json::to_vec(&played)?)?)
}

/// Plays all scripts; those with the same host settings at the same time.
fn play(scripts: &[Script]) -> Outcome<Vec<Recording>> {
    let Some(first) = scripts.first() else { return Ok(Vec::new()) };
    nix::sys::prctl::set_timerslack(1)?; // otherwise each wait may be 50 us too long
    let devices = [open(0)?, open(1)?];
    set("tcp_ecn", "1")?;
    set("tcp_no_metrics_save", "1")?;
    let mut groups: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
    for (index, script) in scripts.iter().enumerate() {
        groups.entry(script.setup.send_buffer).or_default().push_back(index);
    }
    let clock = Clock::read(first.setup.tick_us)?;
    let mut player =
        Player { scripts, devices, diag: SockDiag::new()?, clock, active: BTreeMap::new(), done: BTreeMap::new() };
    for (send_buffer, group) in groups {
        let initial = send_buffer.min(16 << 10);
        set("tcp_wmem", &format!("4096 {initial} {send_buffer}"))?;
        player.run(group)?;
    }
    Ok(player.done.into_values().collect())
}

fn set(name: &str, value: &str) -> Outcome<()> {
    let file = format!("/proc/sys/net/ipv4/{name}");
    fs::write(&file, value).map_err(|error| format!("{file}: {error}").into())
}

fn open(index: usize) -> Outcome<SyncDevice> {
    let name = DEVICES[index];
    let device = DeviceBuilder::new().name(name).layer(Layer::L3).ipv4(local(index), 16, None);
    let device = device.tx_queue_len(QUEUE).build_sync()?;
    device.set_nonblocking(true)?;
    if index == 1 {
        // Sockets segment whatever the device does, unless it takes one segment at a time.
        let status = Command::new("ip").args(["link", "set", name, "gso_max_segs", "1"]).status()?;
        if !status.success() {
            return Err(format!("ip cannot set gso_max_segs of {name}").into());
        }
    }
    Ok(device)
}

struct Player<'a> {
    scripts: &'a [Script],
    devices: [SyncDevice; 2],
    diag: SockDiag,
    clock: Clock,
    active: BTreeMap<usize, Connection<'a>>,
    done: BTreeMap<usize, Recording>,
}

impl<'a> Player<'a> {
    fn run(&mut self, mut waiting: VecDeque<usize>) -> Outcome<()> {
        loop {
            while self.active.len() < AT_A_TIME
                && let Some(index) = waiting.pop_front()
            {
                let connection = self.prepare(index);
                self.active.insert(index, connection);
            }
            let next = self.active.iter().map(|(index, connection)| (connection.due_ns(), *index)).min();
            let Some((due_ns, index)) = next else { return Ok(()) };
            if due_ns <= self.clock.now_ns() {
                self.advance(index)?;
            } else {
                self.wait(due_ns)?;
            }
            self.read_devices()?;
        }
    }

    fn prepare(&self, index: usize) -> Connection<'a> {
        let script = &self.scripts[index];
        // The zero may have passed, because the connection begins some time after it.
        let begin = (self.clock.now_ns() + PREPARATION_NS).saturating_sub(script.setup.connect_us * 1000);
        let zero_ns = self.clock.aligned_from(begin);
        Connection::new(script, self.clock, zero_ns, self.address(index))
    }

    /// The address of the peer of a script.
    fn address(&self, index: usize) -> Ipv4Addr {
        let device = usize::from(!self.scripts[index].setup.tso);
        let [a, b, ..] = local(device).octets();
        Ipv4Addr::new(a, b, 1 + (index / 250) as u8, 1 + (index % 250) as u8)
    }

    fn index_of(&self, address: Ipv4Addr) -> Option<usize> {
        let [.., high, low] = address.octets();
        Some(usize::from(high.checked_sub(1)?) * 250 + usize::from(low.checked_sub(1)?))
    }

    /// Carries out the steps of a connection that are due.
    fn advance(&mut self, index: usize) -> Outcome<()> {
        let device = usize::from(!self.scripts[index].setup.tso);
        self.read_devices()?;
        let Some(connection) = self.active.get_mut(&index) else { return Ok(()) };
        if connection.is_new() {
            return connection.connect(local(device));
        }
        let is_acknowledging = connection.is_acknowledging();
        let before = if is_acknowledging { connection.state(&mut self.diag)? } else { Default::default() };
        let (packet, is_last) = connection.next_packet()?;
        self.devices[device].send(&packet)?;
        if is_acknowledging {
            let after = connection.state(&mut self.diag)?;
            connection.acknowledged([before, after]);
        } else if is_last {
            self.done.extend(self.active.remove(&index).map(|connection| (index, connection.finish())));
        } else {
            connection.begin_writing()?;
        }
        Ok(())
    }

    /// Waits for the kernel to send, or until shortly before the given time, because the kernel adds a thousandth to each
    /// wait.
    fn wait(&self, until_ns: u64) -> Outcome<()> {
        let rest = self.clock.until(until_ns);
        let timeout = if rest > PRECISE { rest * 99 / 100 } else { rest };
        let [first, second] = &self.devices;
        let mut descriptors = [first, second].map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN));
        match ppoll(&mut descriptors, Some(timeout.into()), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes all packets that the kernel has sent.
    fn read_devices(&mut self) -> Outcome<()> {
        let mut buffer = [0; BUFFER];
        for device in &self.devices {
            loop {
                let bytes = match device.recv(&mut buffer) {
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                };
                let Some(packet) = KernelPacket::read(&buffer[..bytes]) else { continue };
                let index = self.index_of(packet.to);
                if let Some(connection) = index.and_then(|index| self.active.get_mut(&index)) {
                    connection.take(&packet);
                }
            }
        }
        Ok(())
    }
}
