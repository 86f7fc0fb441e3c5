//! What a running tunnel tells of itself: one document for `show`, `top`, `ping`, the JSON and the metrics.
//!
//! Counters run from the start of the daemon. Times are in milliseconds, rates in bits a second, sizes in bytes; the unit
//! ends the name. What is not known (no measurement yet, no handshake in `mpt` mode) is null.

use serde::{Deserialize, Serialize};

/// The version of this document's form; it grows when a field goes or changes its meaning.
pub const VERSION: u32 = 1;

/// The whole tunnel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`VERSION`].
    pub version: u32,
    /// The inner device.
    pub interface: Interface,
    /// "ropewalk" or "mpt".
    pub mode: String,
    /// Seconds since the start.
    pub uptime_s: f64,
    /// The other ends, in the file's order.
    pub peers: Vec<Peer>,
    /// What was dropped, by reason. Every reason is listed, with 0 too.
    pub drops: Vec<Drop>,
}

/// The inner device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Its MTU.
    pub mtu_bytes: u32,
    /// This end's public key.
    pub public_key: Option<String>,
    /// Packets and bytes that came from it.
    pub read: Traffic,
    /// Packets and bytes that went to it.
    pub written: Traffic,
}

/// A peer and all that is shared with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// Its public key.
    pub public_key: Option<String>,
    /// Its inner networks.
    pub allowed_ips: Vec<String>,
    /// Milliseconds since the latest handshake.
    pub handshake_ms: Option<f64>,
    /// The cipher of the session.
    pub cipher: Option<String>,
    /// The paths to it.
    pub paths: Vec<Path>,
    /// What waits to be sent.
    pub entrance: Entrance,
    /// What waits to be put in order.
    pub reordering: Reordering,
    /// Pieces of packets that were sent again because they were lost.
    pub repaired_pieces: u64,
}

/// A path to a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Its name in the file.
    pub name: String,
    /// What it is doing.
    pub state: State,
    /// It carries data only while no other works.
    pub backup: bool,
    /// Its traffic costs money.
    pub metered: bool,
    /// The device that it is bound to.
    pub interface: Option<String>,
    /// Its address here.
    pub local: Option<String>,
    /// The peer's address, as authenticated packets last said.
    pub remote: Option<String>,
    /// Smoothed round-trip time.
    pub rtt_ms: Option<f64>,
    /// Least round-trip time.
    pub least_rtt_ms: Option<f64>,
    /// Round trip of the latest probe, which comes back by the path that it went by; data may not.
    pub probe_rtt_ms: Option<f64>,
    /// Mean deviation of the round-trip time.
    pub rtt_deviation_ms: Option<f64>,
    /// Share of the packets sent in the latest seconds that were lost, 0 to 1.
    pub loss: f64,
    /// What the path was seen to deliver.
    pub delivery_bps: u64,
    /// What is sent at present.
    pub sending_bps: u64,
    /// What is received at present.
    pub receiving_bps: u64,
    /// Its share of what is sent at present, 0 to 1.
    pub share: f64,
    /// The largest datagram that is known to pass, IP header included; 0 if nobody looked.
    pub mtu_bytes: u32,
    /// The congestion window.
    pub window_bytes: Option<u64>,
    /// What is sent and not acknowledged.
    pub in_flight_bytes: u64,
    /// Sent since the start.
    pub sent: Traffic,
    /// Received since the start.
    pub received: Traffic,
    /// Packets lost since the start.
    pub lost_packets: u64,
    /// Packets of ours that arrived with a mark of congestion.
    pub marked_packets: u64,
    /// How often it failed.
    pub failures: u64,
}

/// What a path is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is being tried for the first time, or again.
    #[default]
    Validating,
    /// It carries data, or may.
    Up,
    /// It is silent, or its device is down.
    Down,
    /// Somebody took it out of use.
    Disabled,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Packets, or super-packets where a device cuts them.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The queue at the tunnel's entrance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entrance {
    /// Packets in it.
    pub queued_packets: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Packets that it marked.
    pub marked_packets: u64,
    /// Packets that it dropped.
    pub dropped_packets: u64,
}

/// Putting packets in order. A packet that is cut into pieces counts once for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reordering {
    /// Packets that wait at present.
    pub depth_packets: u64,
    /// The most that ever waited.
    pub most_packets: u64,
    /// The longest that a packet may wait at present.
    pub hold_ms: f64,
    /// Packets that had to wait.
    pub held_packets: u64,
    /// Times that waiting was given up.
    pub timeouts: u64,
    /// Packets that came after their turn.
    pub late_packets: u64,
}

/// Packets that were dropped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drop {
    /// A word or two, joined by `-`.
    pub reason: String,
    /// How many.
    pub packets: u64,
}

impl State {
    /// As it is shown.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Up => "up",
            Self::Down => "down",
            Self::Disabled => "disabled",
        }
    }
}

impl Status {
    /// Every path with its peer.
    pub fn paths(&self) -> impl Iterator<Item = (&Peer, &Path)> {
        self.peers.iter().flat_map(|peer| peer.paths.iter().map(move |path| (peer, path)))
    }

    /// A tunnel with one of everything, for tests and for pictures.
    #[must_use]
    pub fn example() -> Self {
        let traffic = |packets, bytes| Traffic { packets, bytes };
        let path = |name: &str, interface: &str, rtt_ms: f64, delivery_bps: u64, share: f64| Path {
            name: name.into(),
            state: State::Up,
            interface: Some(interface.into()),
            local: Some("192.0.2.7:51820".into()),
            remote: Some("198.51.100.1:4754".into()),
            rtt_ms: Some(rtt_ms),
            least_rtt_ms: Some(rtt_ms * 0.9),
            probe_rtt_ms: Some(rtt_ms + 0.5),
            rtt_deviation_ms: Some(1.5),
            loss: 0.002,
            delivery_bps,
            sending_bps: delivery_bps / 2,
            receiving_bps: delivery_bps / 20,
            share,
            mtu_bytes: 1500,
            window_bytes: Some(250_000),
            in_flight_bytes: 120_000,
            sent: traffic(1_000_000, 1_400_000_000),
            received: traffic(500_000, 40_000_000),
            lost_packets: 2000,
            ..Path::default()
        };
        let mut lte = path("lte", "wwan0", 48.0, 40_000_000, 0.286);
        lte.metered = true;
        let peer = Peer {
            public_key: Some("R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y=".into()),
            allowed_ips: vec!["10.77.0.2/32".into()],
            handshake_ms: Some(45_000.0),
            cipher: Some("aes-256-gcm".into()),
            paths: vec![path("fibre", "eth0", 12.3, 100_000_000, 0.714), lte],
            entrance: Entrance { queued_packets: 21, queued_bytes: 30_000, marked_packets: 40, dropped_packets: 3 },
            reordering: Reordering {
                depth_packets: 12,
                most_packets: 240,
                hold_ms: 42.0,
                held_packets: 9000,
                timeouts: 4,
                late_packets: 1,
            },
            repaired_pieces: 1990,
        };
        Self {
            version: VERSION,
            interface: Interface {
                name: "rw0".into(),
                addresses: vec!["10.77.0.1/24".into()],
                mtu_bytes: 1420,
                public_key: Some("c2VjcmV0IG5vdCwgcHVibGljIHllcywgMzIgYnl0ZXMh".into()),
                read: traffic(1_500_000, 1_900_000_000),
                written: traffic(700_000, 60_000_000),
            },
            mode: "ropewalk".into(),
            uptime_s: 3725.0,
            peers: vec![peer],
            drops: vec![
                Drop { reason: "unrouted".into(), packets: 5 },
                Drop { reason: "not-authentic".into(), packets: 0 },
                Drop { reason: "replayed".into(), packets: 2 },
            ],
        }
    }
}
