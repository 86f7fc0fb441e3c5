//! The control thread's hand on the data thread: commands one way, reports made into a status the other way.

use crate::Meter;
use crate::config::{self, Change, Config, Mode};
use crate::control::DataPlane;
use crate::plane::{Command, Commander, Count, MptPathReport, PeerReport, Report};
use crate::status::{Drop, Interface, Path, Peer, Reordering, State, Status, Traffic, VERSION};
use ipnet::IpNet;
use seal::Refusal;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use units::{Instant, Rate, Span};

/// Rates are measured over no less than this.
const LEAST: Span = Span::from_millis(200);

pub(super) struct Bridge {
    commander: Commander,
    go: Sender<()>,
    /// As they were at the start; only their networks change.
    peers: Vec<config::Peer>,
    /// The device of each socket.
    devices: Vec<Option<String>>,
    /// The latest status with its moment: names stand in it from the start, rates come from the difference.
    latest: Arc<Mutex<Latest>>,
}

/// What the next status is made from.
struct Latest {
    at: Instant,
    status: Status,
    /// One for each peer.
    meters: Vec<Meter>,
}

impl Bridge {
    pub(super) fn new(
        commander: Commander,
        go: Sender<()>,
        config: &Config,
        mtu: u16,
        devices: Vec<Option<String>>,
    ) -> Self {
        Self {
            commander,
            go,
            peers: config.peers.clone(),
            devices,
            latest: Arc::new(Mutex::new(Latest {
                at: Instant::ZERO,
                status: outline(config, mtu),
                meters: vec![Meter::default(); config.peers.len()],
            })),
        }
    }

    /// The place of a peer in the data plane, if only its networks are `wanted` to be others: nothing else can change.
    fn place(&self, wanted: &config::Peer) -> Result<usize, String> {
        let same =
            |old: &config::Peer| config::Peer { allowed_ips: wanted.allowed_ips.clone(), ..old.clone() } == *wanted;
        self.peers.iter().position(same).ok_or_else(|| {
            "of a peer, only allowed-ips can change while the tunnel runs: for its endpoint, address or preshared-key \
             `ropewalk down`, then `up`\n"
                .into()
        })
    }

    fn set_networks(&self, peer: usize, networks: &[IpNet]) {
        if let Ok(mut latest) = self.latest.lock()
            && let Some(peer) = latest.status.peers.get_mut(peer)
        {
            peer.allowed_ips = networks.iter().map(ToString::to_string).collect();
        }
        let networks = networks.iter().map(|network| (network.addr(), network.prefix_len())).collect();
        self.commander.send(Command::Networks { peer, networks });
    }
}

impl DataPlane for Bridge {
    fn start(&self) {
        // If the data thread is gone, the next question finds out.
        let _ = self.go.send(());
    }

    fn ask(&self, answer: Box<dyn FnOnce(Status) + Send>) -> bool {
        let latest = Arc::clone(&self.latest);
        self.commander.send(Command::Report(Box::new(move |report| {
            // Held for the copying of numbers only; a poisoned lock would mean that this very code panicked.
            let Ok(mut latest) = latest.lock() else { return };
            let now = report.now;
            let mut status = filled(&latest.status, latest.at, &report);
            let meters = latest.meters.iter_mut().zip(&report.peers).zip(&mut status.peers);
            meters.for_each(|((meter, report), peer)| rope_peer(meter, report, peer, now));
            if now.since(latest.at) >= LEAST {
                (latest.at, latest.status) = (now, status.clone());
            }
            answer(status);
        })))
    }

    fn check(&self, change: &Change) -> Result<(), String> {
        match change {
            Change::SetPeer(_, peer) => self.place(peer).map(|_| ()),
            Change::AddPeer(_) | Change::RemovePeer(_) => {
                Err("peers cannot come or go while the tunnel runs: `ropewalk down`, then `up`\n".into())
            }
            _ => Err("this mode cannot change its paths while it runs: `ropewalk down`, then `up`\n".into()),
        }
    }

    fn change(&self, change: &Change) {
        if let Change::SetPeer(_, peer) = change
            && let Ok(place) = self.place(peer)
        {
            self.set_networks(place, &peer.allowed_ips);
        }
    }

    fn link(&self, device: &str, up: bool) {
        for socket in (0..self.devices.len()).filter(|socket| self.devices[*socket].as_deref() == Some(device)) {
            self.commander.send(Command::Link { socket, up });
        }
    }

    fn stop(&self) {
        self.commander.send(Command::Stop);
    }
}

/// All names and no numbers.
fn outline(config: &Config, mtu: u16) -> Status {
    let path = |path: &config::Path| Path {
        name: path.name.clone(),
        backup: path.backup,
        metered: path.metered,
        interface: path.interface.clone(),
        remote: path.endpoint.as_ref().map(ToString::to_string),
        ..Path::default()
    };
    let peer = |peer: &config::Peer| Peer {
        public_key: peer.public_key.map(|key| key.to_string()),
        allowed_ips: peer.allowed_ips.iter().map(ToString::to_string).collect(),
        paths: config
            .paths
            .iter()
            .filter(|path| path.endpoint.is_some() || peer.endpoint.is_some())
            .map(path)
            .collect(),
        ..Peer::default()
    };
    let (mode, public_key) = match &config.mode {
        Mode::Mpt(_) => ("mpt", None),
        Mode::Ropewalk { private_key } => ("ropewalk", Some(private_key.public().to_string())),
    };
    Status {
        version: VERSION,
        interface: Interface {
            name: config.interface.name.clone(),
            addresses: config.interface.addresses.iter().map(ToString::to_string).collect(),
            mtu_bytes: mtu.into(),
            public_key,
            ..Interface::default()
        },
        mode: mode.into(),
        peers: config.peers.iter().map(peer).collect(),
        ..Status::default()
    }
}

/// `before` with the numbers of `report`.
fn filled(before: &Status, since: Instant, report: &Report) -> Status {
    let mut status = before.clone();
    status.uptime_s = report.now.as_secs_f64();
    status.interface.read = traffic(report.device.read);
    status.interface.written = traffic(report.device.written);
    status.drops = drops(report);
    let (Some(mpt), Some(peer)) = (&report.mpt, status.peers.first_mut()) else { return status };
    let span = report.now.since(since);
    for (path, numbers) in peer.paths.iter_mut().zip(&mpt.paths) {
        mpt_path(path, numbers, span);
    }
    let sending: u64 = peer.paths.iter().map(|path| path.sending_bps).sum();
    for path in &mut peer.paths {
        path.share = if sending == 0 { 0.0 } else { path.sending_bps as f64 / sending as f64 };
    }
    let counted = mpt.resequencing.unwrap_or_default();
    peer.reordering = Reordering {
        depth_packets: mpt.held,
        most_packets: counted.most_held,
        hold_ms: 0.0,
        held_packets: counted.held,
        timeouts: counted.timeouts,
        late_packets: counted.late,
    };
    status
}

fn mpt_path(path: &mut Path, numbers: &MptPathReport, span: Span) {
    let (sent, received) = (traffic(numbers.sent), traffic(numbers.received));
    if span >= LEAST {
        path.sending_bps = Rate::of(sent.bytes.saturating_sub(path.sent.bytes), span).0;
        path.receiving_bps = Rate::of(received.bytes.saturating_sub(path.received.bytes), span).0;
    }
    path.state = if numbers.up { State::Up } else { State::Down };
    path.failures = numbers.failures;
    (path.sent, path.received) = (sent, received);
}

/// A peer in `ropewalk` mode. Paths that it opened have no name in the file.
fn rope_peer(meter: &mut Meter, report: &PeerReport, peer: &mut Peer, now: Instant) {
    if let Some(seal) = &report.seal {
        peer.handshake_ms = seal.since.map(|since| now.since(since).as_millis_f64());
        peer.cipher = seal.cipher.map(|cipher| format!("{cipher:?}"));
    }
    let Some(status) = &report.status else { return };
    for at in peer.paths.len()..status.paths.iter().map(|path| path.path.index() + 1).max().unwrap_or(0) {
        peer.paths.push(Path { name: format!("path-{at}"), ..Path::default() });
    }
    meter.fill(now, status, peer);
    for route in &report.routes {
        if let Some(path) = peer.paths.get_mut(usize::from(route.path)) {
            path.remote = Some(route.remote.to_string());
            // The machine counts what UDP carries.
            if path.mtu_bytes > 0 {
                path.mtu_bytes += if route.remote.is_ipv4() { 20 + 8 } else { 40 + 8 };
            }
        }
    }
}

fn traffic(count: Count) -> Traffic {
    Traffic { packets: count.packets, bytes: count.bytes }
}

fn drops(report: &Report) -> Vec<Drop> {
    let sockets = |of: fn(&crate::plane::SocketReport) -> u64| report.sockets.iter().map(of).sum();
    let mpt = report.mpt.as_ref();
    let refusals = refusals(report);
    let explained: u64 = refusals.iter().map(|drop| drop.packets).sum();
    let reasons = [
        ("unrouted", report.device.unrouted),
        ("malformed", report.device.malformed),
        ("device-refused", report.device.refused),
        ("no-buffer", report.buffers.exhausted),
        ("socket-full", sockets(|it| it.blocked)),
        ("too-big", sockets(|it| it.too_big)),
        ("not-sent", sockets(|it| it.failed)),
        ("not-usable", sockets(|it| it.refused).saturating_sub(explained)),
        ("no-session", report.peers.iter().map(|it| it.sessionless).sum()),
        ("foreign-source", report.peers.iter().map(|it| it.foreign).sum()),
        ("broken", report.peers.iter().map(|it| it.broken).sum()),
        ("no-path", mpt.map_or(0, |it| it.pathless)),
    ];
    let reasons = reasons.map(|(reason, packets)| Drop { reason: reason.into(), packets });
    reasons.into_iter().chain(refusals).collect()
}

/// Why sealed datagrams and handshakes were not taken. Two of the words mean something else for the other drops.
fn refusals(report: &Report) -> Vec<Drop> {
    let reason = |refusal: Refusal| match refusal {
        Refusal::Malformed => "malformed-datagram".into(),
        Refusal::NoSession => "unknown-session".into(),
        other => other.name().replace('_', "-"),
    };
    report.refusals.iter().map(|(refusal, packets)| Drop { reason: reason(refusal), packets }).collect()
}
