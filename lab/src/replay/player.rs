//! The player: replays scripts to the kernel that it runs on, through TUN devices, of which it is the other end.

use super::Outcome;
use super::clock::Clock;
use super::packet::KernelPacket;
use super::receiving::Receiving;
use super::sending::Sending;
use crate::namespace;
use nix::poll::{PollFd, PollFlags, ppoll};
use serde::Serialize;
use serde::de::DeserializeOwned;
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

/// One end of a connection of the kernel under a script: the peer's side of it, and the recording.
pub(super) trait Conversation<'a>: Sized {
    type Script: DeserializeOwned;
    type Recording: Serialize;

    /// The timer tick and the beginning of a script, microseconds.
    fn times_us(script: &Self::Script) -> [u64; 2];

    /// The setting in `net.ipv4` with which its connection is to be made: name and value.
    fn setting(script: &Self::Script) -> (&'static str, String);

    /// The number of the device for its connection.
    fn device(script: &Self::Script) -> usize;

    /// A conversation on `local`, the end of the kernel, whose script begins at `zero_ns`.
    fn new(script: &'a Self::Script, clock: Clock, zero_ns: u64, ends: Ends) -> Self;

    /// The time of its next step.
    fn due_ns(&self) -> u64;

    /// Takes a packet that the kernel had sent by this time.
    fn take(&mut self, now_ns: u64, packet: &KernelPacket);

    /// Carries out the step that is due. Returns whether it was the last one.
    fn step(&mut self, device: &SyncDevice, diag: &mut SockDiag) -> Outcome<bool>;

    /// The recording, once the application has ended.
    fn finish(self) -> Self::Recording;
}

/// The ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// The kernel's address.
    pub(super) local: Ipv4Addr,
    pub(super) peer: Ipv4Addr,
}

/// `agent replay SIDE SCRIPTS RECORDINGS [NAMESPACE]`: plays the scripts of a file, in a network namespace.
pub(crate) fn main(side: &str, scripts: &str, recordings: &str, namespace: Option<&str>) -> Outcome<()> {
    if let Some(name) = namespace {
        namespace::enter(name)?;
    }
    let text = fs::read(scripts)?;
    let played = match side {
        "sender" => serde_json::to_vec(&play::<Sending<'_>>(&serde_json::from_slice::<Vec<_>>(&text)?)?)?,
        "receiver" => serde_json::to_vec(&play::<Receiving<'_>>(&serde_json::from_slice::<Vec<_>>(&text)?)?)?,
        other => return Err(format!("replay has no side {other}: sender or receiver").into()),
    };
    Ok(fs::write(recordings, played)?)
}

/// Plays all scripts; those with the same host settings at the same time.
fn play<'a, C: Conversation<'a>>(scripts: &'a [C::Script]) -> Outcome<Vec<C::Recording>> {
    let Some(first) = scripts.first() else { return Ok(Vec::new()) };
    nix::sys::prctl::set_timerslack(1)?; // otherwise each wait may be 50 us too long
    let devices = [open(0)?, open(1)?];
    set("tcp_ecn", "1")?;
    set("tcp_no_metrics_save", "1")?;
    let mut groups: BTreeMap<(&str, String), VecDeque<usize>> = BTreeMap::new();
    for (index, script) in scripts.iter().enumerate() {
        groups.entry(C::setting(script)).or_default().push_back(index);
    }
    let clock = Clock::read(C::times_us(first)[0])?;
    let (diag, active, done) = (SockDiag::new()?, BTreeMap::new(), BTreeMap::new());
    let mut player = Player::<C> { scripts, devices, diag, clock, latest_zero_ns: 0, active, done };
    for ((name, value), group) in groups {
        set(name, &value)?;
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

struct Player<'a, C: Conversation<'a>> {
    scripts: &'a [C::Script],
    devices: [SyncDevice; 2],
    diag: SockDiag,
    clock: Clock,
    /// The zero of the conversation that was prepared last.
    latest_zero_ns: u64,
    active: BTreeMap<usize, C>,
    done: BTreeMap<usize, C::Recording>,
}

impl<'a, C: Conversation<'a>> Player<'a, C> {
    fn run(&mut self, mut waiting: VecDeque<usize>) -> Outcome<()> {
        loop {
            while self.active.len() < AT_A_TIME
                && let Some(index) = waiting.pop_front()
            {
                let conversation = self.prepare(index);
                self.active.insert(index, conversation);
            }
            let next = self.active.iter().map(|(index, conversation)| (conversation.due_ns(), *index)).min();
            let Some((due_ns, index)) = next else { return Ok(()) };
            if due_ns <= self.clock.now_ns() {
                self.advance(index)?;
            } else {
                self.wait(due_ns)?;
            }
            self.read_devices()?;
        }
    }

    fn prepare(&mut self, index: usize) -> C {
        let script = &self.scripts[index];
        // The zero may have passed, because the connection begins some time after it. No two are the same: connections that
        // begin at one instant wait for one another.
        let begin = (self.clock.now_ns() + PREPARATION_NS).saturating_sub(C::times_us(script)[1] * 1000);
        let zero_ns = self.clock.aligned_from(begin.max(self.latest_zero_ns + 1));
        self.latest_zero_ns = zero_ns;
        let local = local(C::device(script));
        C::new(script, self.clock, zero_ns, Ends { local, peer: self.peer(index) })
    }

    /// The address of the peer of a script.
    fn peer(&self, index: usize) -> Ipv4Addr {
        let [a, b, ..] = local(C::device(&self.scripts[index])).octets();
        Ipv4Addr::new(a, b, 1 + (index / 250) as u8, 1 + (index % 250) as u8)
    }

    fn index_of(&self, address: Ipv4Addr) -> Option<usize> {
        let [.., high, low] = address.octets();
        Some(usize::from(high.checked_sub(1)?) * 250 + usize::from(low.checked_sub(1)?))
    }

    /// Carries out the step of a conversation that is due.
    fn advance(&mut self, index: usize) -> Outcome<()> {
        self.read_devices()?;
        let Some(conversation) = self.active.get_mut(&index) else { return Ok(()) };
        let device = &self.devices[C::device(&self.scripts[index])];
        if conversation.step(device, &mut self.diag)? {
            self.done.extend(self.active.remove(&index).map(|conversation| (index, conversation.finish())));
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

    /// Takes all packets that the kernel has sent. Their time is that at which the reading begins, because that of a thousand
    /// packets takes hundreds of microseconds.
    fn read_devices(&mut self) -> Outcome<()> {
        let now_ns = self.clock.now_ns();
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
                if let Some(conversation) = index.and_then(|index| self.active.get_mut(&index)) {
                    conversation.take(now_ns, &packet);
                }
            }
        }
        Ok(())
    }
}
