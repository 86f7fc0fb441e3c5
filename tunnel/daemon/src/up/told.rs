//! The status that is told: names from the configuration, numbers from the data plane's reports, rates from the difference
//! of two of them.

use super::layout::Layout;
use crate::Meter;
use crate::config::{self, Config, Mode};
use crate::plane::{Count, MptPathReport, PeerReport, Report};
use crate::status::{Drop, Interface, Path, Peer, Reordering, State, Status, Traffic, VERSION};
use seal::Refusal;
use std::collections::BTreeSet;
use units::{Instant, Rate, Span};

/// Rates are measured over no less than this.
const LEAST: Span = Span::from_millis(200);

/// The latest status with its moment: the next one is made from it.
pub(super) struct Told {
    at: Instant,
    /// Paths stand in the places of their numbers; a nameless one is none.
    status: Status,
    /// One for each peer.
    known: Vec<Known>,
}

/// What is known of a peer beside its status.
#[derive(Clone, Default)]
struct Known {
    meter: Meter,
    /// Numbers of the paths that the configuration has; others are those that the peer opened.
    own: BTreeSet<usize>,
}

impl Told {
    /// All names and no numbers.
    pub(super) fn new(config: &Config, layout: &Layout) -> Self {
        let status = outline(config, layout);
        let own = |peer: usize| {
            let own = layout.peers.get(peer).into_iter().flat_map(|peer| &peer.paths);
            Known { meter: Meter::default(), own: own.map(|path| path.id.into()).collect() }
        };
        Self { at: Instant::ZERO, known: (0..status.peers.len()).map(own).collect(), status }
    }

    /// The configuration and the layout are these from now on. What stays has its numbers.
    pub(super) fn change(&mut self, config: &Config, layout: &Layout) {
        let new = Self::new(config, layout);
        let old = std::mem::replace(self, Self { at: self.at, ..new });
        let uptime_s = old.status.uptime_s;
        for (peer, known) in self.status.peers.iter_mut().zip(&mut self.known) {
            let found = old.status.peers.iter().zip(&old.known).find(|(it, _)| it.public_key == peer.public_key);
            let Some((before, before_known)) = found else { continue };
            known.meter = before_known.meter.clone();
            let named = std::mem::take(&mut peer.paths);
            *peer = Peer { allowed_ips: std::mem::take(&mut peer.allowed_ips), ..before.clone() };
            peer.paths.resize_with(named.len().max(peer.paths.len()), Path::default);
            for (at, path) in peer.paths.iter_mut().enumerate() {
                let named = named.get(at).filter(|named| !named.name.is_empty());
                match named {
                    Some(named) if named.name == path.name => {
                        path.metered = named.metered;
                        path.backup = named.backup;
                    }
                    Some(named) => *path = named.clone(),
                    None if before_known.own.contains(&at) => *path = Path::default(),
                    None => {}
                }
            }
        }
        self.status.uptime_s = uptime_s;
    }

    /// The status with the numbers of `report`.
    pub(super) fn tell(&mut self, report: &Report) -> Status {
        let now = report.now;
        let mut status = filled(&self.status, self.at, report);
        for (peer, known) in status.peers.iter_mut().zip(&mut self.known) {
            if let Some(report) = report.peers.iter().find(|report| Some(&report.name) == peer.public_key.as_ref()) {
                rope_peer(known, report, peer, now);
            }
        }
        if now.since(self.at) >= LEAST {
            (self.at, self.status) = (now, status.clone());
        }
        status.peers.iter_mut().for_each(|peer| peer.paths.retain(|path| !path.name.is_empty()));
        status
    }
}

/// All names and no numbers.
fn outline(config: &Config, layout: &Layout) -> Status {
    let path = |path: &config::Path, remote: Option<String>| Path {
        name: path.name.clone(),
        backup: path.backup,
        metered: path.metered,
        interface: path.interface.clone(),
        remote,
        ..Path::default()
    };
    let shown = |of: &config::Path| path(of, of.endpoint.as_ref().map(ToString::to_string));
    let numbered = |at: usize| {
        let mut paths = Vec::new();
        for own in layout.peers.get(at).into_iter().flat_map(|peer| &peer.paths) {
            let id = usize::from(own.id);
            paths.resize_with(paths.len().max(id + 1), Path::default);
            let named = config.paths.iter().find(|path| path.name == own.name);
            paths[id] = named.map(|named| path(named, Some(own.remote.to_string()))).unwrap_or_default();
        }
        paths
    };
    let (mode, public_key) = match &config.mode {
        Mode::Mpt(_) => ("mpt", None),
        Mode::Ropewalk { private_key } => ("ropewalk", Some(private_key.public().to_string())),
    };
    let peer = |(at, peer): (usize, &config::Peer)| Peer {
        public_key: peer.public_key.map(|key| key.to_string()),
        allowed_ips: peer.allowed_ips.iter().map(ToString::to_string).collect(),
        paths: if public_key.is_none() { config.paths.iter().map(shown).collect() } else { numbered(at) },
        ..Peer::default()
    };
    Status {
        version: VERSION,
        interface: Interface {
            name: config.interface.name.clone(),
            addresses: config.interface.addresses.iter().map(ToString::to_string).collect(),
            mtu_bytes: config.mtu().into(),
            public_key: public_key.clone(),
            ..Interface::default()
        },
        mode: mode.into(),
        peers: config.peers.iter().enumerate().map(peer).collect(),
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
fn rope_peer(known: &mut Known, report: &PeerReport, peer: &mut Peer, now: Instant) {
    if let Some(seal) = &report.seal {
        peer.handshake_ms = seal.since.map(|since| now.since(since).as_millis_f64());
        peer.cipher = seal.cipher.map(|cipher| cipher.name().to_owned());
    }
    let Some(status) = &report.status else { return };
    let there: BTreeSet<usize> = status.paths.iter().map(|path| path.path.index()).collect();
    let most = there.last().map_or(0, |last| last + 1);
    peer.paths.resize_with(peer.paths.len().max(most), Path::default);
    for (at, path) in peer.paths.iter_mut().enumerate() {
        match (there.contains(&at), known.own.contains(&at)) {
            (true, _) if path.name.is_empty() => path.name = format!("path-{at}"),
            // The peer has taken it away.
            (false, true) => path.state = State::Down,
            (false, false) => *path = Path::default(),
            _ => {}
        }
    }
    known.meter.fill(now, status, peer);
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
