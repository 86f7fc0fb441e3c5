//! The status of a running tunnel: one document for `show`, `top`, `ping`, the JSON and the metrics.
//!
//! Counters run from the start of the daemon. Times are in milliseconds, rates in bits per second, sizes in bytes; the
//! unit ends the name. Values that are not known are null: no measurement yet, no handshake in `mpt` mode, and what a
//! path that does not work would have now.

mod condition;

pub use condition::{Condition, PeerCondition};

use crate::event::{Cause, Event, EventLevel};
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version of this document; incremented when a field is removed or changes its meaning.
pub const VERSION: u32 = 3;
/// Time for which it is reported that two hosts have a peer's private key.
pub(crate) const TAKEOVER: Duration = Duration::from_secs(300);

/// The JSON Schema (draft 2020-12) of the answers of `GET /v1/status`, or with `of_events` of `GET /v1/events`.
#[must_use]
pub fn schema(of_events: bool) -> Schema {
    if of_events { schema_for!(Vec<Event>) } else { schema_for!(TunnelStatus) }
}

/// The status of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TunnelStatus {
    /// [`VERSION`].
    pub version: u32,
    /// The version of the program that the daemon runs, as its `--version` prints it; null before 0.1.0.
    #[serde(default)]
    pub program_version: Option<String>,
    /// The daemon's process.
    #[serde(default)]
    pub process: ProcessStatus,
    /// The inner device.
    pub interface: InterfaceStatus,
    /// "ropewalk" or "mpt".
    pub mode: String,
    /// Time since the start, seconds.
    pub uptime_s: f64,
    /// The wall clock, milliseconds since the Unix epoch.
    #[serde(default)]
    pub unix_ms: u64,
    /// The peers, in the file's order.
    pub peers: Vec<PeerStatus>,
    /// The traffic of each configured path, to and from all peers; empty in `mpt` mode.
    #[serde(default)]
    pub uplinks: Vec<UplinkStatus>,
    /// Things on this host that limit the use of the tunnel and do not concern a single path.
    #[serde(default)]
    pub notices: Vec<Notice>,
    /// Dropped packets by reason, including reasons with none.
    pub drops: Vec<DropCount>,
    /// The latest events, the oldest first, without repetitions in a row; `GET /v1/events` has more.
    #[serde(default)]
    pub events: Vec<Event>,
}

/// Something on this host that limits the use of the tunnel, such as an uplink that is not a path, or networks that
/// overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// The severity. A warning is about something that does not work as configured.
    pub level: EventLevel,
    /// A description, one line.
    pub text: String,
    /// The fix: a command, or a sentence.
    pub remedy: String,
}

impl Notice {
    pub(crate) fn new(level: EventLevel, text: String, remedy: String) -> Self {
        Self { level, text, remedy }
    }
}

/// The traffic of a configured path since the start: whole IP packets of data, handshakes and probes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UplinkStatus {
    /// The path's name in the configuration.
    pub name: String,
    /// Packets sent.
    pub sent: Traffic,
    /// Packets received.
    pub received: Traffic,
}

/// The used quota of a path. Bytes are counted as in [`UplinkStatus`], and across restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaStatus {
    /// The quota.
    pub limit_bytes: u64,
    /// Bytes sent and received since the latest reset.
    pub used_bytes: u64,
    /// Whether it is over its quota, and so a backup until the reset.
    pub exceeded: bool,
    /// The time of the next reset, milliseconds since the Unix epoch.
    pub resets_unix_ms: u64,
}

/// The daemon's process, and how it is confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStatus {
    /// The user that it runs as; 0 is root.
    pub user_id: u32,
    /// Whether all of its threads gain no privileges by executing a program (`PR_SET_NO_NEW_PRIVS`).
    pub no_new_privileges: bool,
    /// Whether the system calls of all of its threads are restricted (seccomp).
    pub seccomp: bool,
}

/// The inner device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceStatus {
    /// The name.
    pub name: String,
    /// The addresses.
    pub addresses: Vec<String>,
    /// The MTU.
    pub mtu_bytes: u32,
    /// The public key of this end.
    pub public_key: Option<String>,
    /// Packets from the host into the tunnel.
    pub sent: Traffic,
    /// Packets from the tunnel to the host.
    pub received: Traffic,
}

/// A peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerStatus {
    /// The public key.
    pub public_key: Option<String>,
    /// The name in the configuration, or in the `peers-file`.
    #[serde(default)]
    pub name: Option<String>,
    /// How it is reached.
    #[serde(default)]
    pub condition: PeerCondition,
    /// When that began, milliseconds since the Unix epoch; null until it was seen for a second.
    #[serde(default)]
    pub since_unix_ms: Option<u64>,
    /// The inner networks.
    pub allowed_ips: Vec<String>,
    /// Time since the latest handshake.
    pub handshake_age_ms: Option<f64>,
    /// The cipher of the session.
    pub cipher: Option<String>,
    /// Handshake initiations sent since the latest answer.
    #[serde(default)]
    pub handshake_attempts: u32,
    /// Time since a host last took the session back from another one that also has the peer's private key.
    #[serde(default)]
    pub takeover_age_ms: Option<f64>,
    /// Whether it carries the packets of its networks, if it is one of several servers with the same ones.
    #[serde(default)]
    pub active: Option<bool>,
    /// The paths to it.
    pub paths: Vec<PathStatus>,
    /// The queue of packets to be sent.
    pub ingress_queue: IngressQueue,
    /// The buffer of received packets.
    pub reorder_buffer: ReorderBuffer,
    /// Why CUBIC controls the paths, or `minrtt` schedules them, instead of the configured policy; null while the policy does.
    #[serde(default)]
    pub controller_failure: Option<String>,
    /// Lost fragments that were retransmitted.
    pub retransmitted_fragments: u64,
    /// Dropped packets of the peer from the latest addresses that are not in its allowed IPs.
    #[serde(default)]
    pub unallowed_sources: Vec<UnallowedSource>,
    /// Sent traffic of the real-time class; null until this end has sent a packet of it.
    #[serde(default)]
    pub realtime: Option<RealtimeStatus>,
    /// Sent traffic outside the real-time class; null until this end has sent a packet of that class, and in `mpt`
    /// mode.
    #[serde(default)]
    pub bulk: Option<ClassTraffic>,
    /// Relayed TCP connections; null if this end does not relay.
    #[serde(default)]
    pub relay: Option<RelayStatus>,
}

/// Packets of a peer from an address that is not in its allowed IPs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnallowedSource {
    /// The inner source address.
    pub address: String,
    /// Packets dropped.
    pub packets: u64,
}

/// A path to a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathStatus {
    /// The name in the configuration.
    pub name: String,
    /// The state.
    pub state: PathState,
    /// The same in more words.
    #[serde(default)]
    pub condition: Condition,
    /// When the condition began, milliseconds since the Unix epoch; null until it was seen for a second.
    #[serde(default)]
    pub since_unix_ms: Option<u64>,
    /// Whether the peer opened it; otherwise it is configured here.
    #[serde(default)]
    pub opened_by_peer: bool,
    /// Why it carries no data, or works badly; null otherwise, and until the cause is found.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// Whether it carries data only while no other path works.
    pub backup: bool,
    /// Whether its traffic costs money.
    pub metered: bool,
    /// Whether it carries data only while the regular paths are full, or none works.
    #[serde(default)]
    pub secondary: bool,
    /// Its quota; null without one, and for a path that the peer opened.
    #[serde(default)]
    pub quota: Option<QuotaStatus>,
    /// The device that it is bound to.
    pub interface: Option<String>,
    /// The address that it is bound to.
    #[serde(default)]
    pub source: Option<String>,
    /// The peer's address, from the latest authenticated datagrams.
    pub remote: Option<String>,
    /// Smoothed round-trip time.
    pub srtt_ms: Option<f64>,
    /// Minimum round-trip time.
    pub min_rtt_ms: Option<f64>,
    /// Mean deviation of the round-trip time.
    pub rttvar_ms: Option<f64>,
    /// Round-trip time of the latest probe, which returns on this path; acknowledgements of data may not.
    pub probe_rtt_ms: Option<f64>,
    /// Lost share of recently sent packets, 0 to 1; null if none was sent.
    pub loss_ratio: Option<f64>,
    /// The latest sample of the delivery rate.
    pub delivery_rate_bps: Option<u64>,
    /// What it can carry to the peer, as estimated when packets last waited for it; null if none has.
    #[serde(default)]
    pub capacity_bps: Option<u64>,
    /// The current send rate.
    pub send_rate_bps: u64,
    /// The current receive rate.
    pub receive_rate_bps: u64,
    /// Share of the send rate of all paths to the peer, 0 to 1; null while nothing is sent.
    pub send_share: Option<f64>,
    /// The largest datagram known to pass, IP header included; null if not probed.
    pub pmtu_bytes: Option<u32>,
    /// The congestion window.
    pub cwnd_bytes: Option<u64>,
    /// Bytes sent and neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Datagrams sent.
    pub sent: Traffic,
    /// Datagrams received.
    pub received: Traffic,
    /// Datagrams declared lost.
    pub lost_packets: u64,
    /// Sent datagrams that arrived with a CE mark.
    pub ce_packets: u64,
    /// Number of times that the path went down.
    pub failures: u64,
    /// Number of times that it moved to another address of the peer.
    #[serde(default)]
    pub moves: u64,
    /// Other addresses from which the peer's datagrams came, but to which the path did not move.
    #[serde(default)]
    pub refused_addresses: u64,
}

/// The state of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PathState {
    /// Probes were sent, none was answered yet.
    #[default]
    Validating,
    /// Answers probes.
    Up,
    /// Does not answer, or its device is down.
    Down,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Packets. A super-packet counts as one.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Traffic {
    /// Counts `packets` of `bytes` together.
    pub(crate) fn add(&mut self, packets: usize, bytes: usize) {
        self.packets += packets as u64;
        self.bytes += bytes as u64;
    }

    /// The same with the headers of UDP and of IPv4 (RFC 791) or IPv6 (RFC 8200).
    pub(crate) fn with_headers(self, is_ipv4: bool) -> Self {
        let header_bytes = if is_ipv4 { 20 + 8 } else { 40 + 8 };
        Self { bytes: self.bytes + self.packets * header_bytes, ..self }
    }

    /// Adds the counts of another data thread.
    pub(crate) fn merge(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// The ingress queue of a peer: packets from the host that are to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IngressQueue {
    /// Packets in the queue.
    pub backlog_packets: u64,
    /// Bytes in the queue.
    pub backlog_bytes: u64,
    /// Packets that CoDel marked.
    pub marked_packets: u64,
    /// Packets dropped, by CoDel or because the queue was full.
    pub dropped_packets: u64,
    /// Pure TCP acknowledgements that a newer one replaced.
    #[serde(default)]
    pub thinned_acks: u64,
    /// Packets that left in a bundle, with others or with the tunnel's acknowledgements.
    #[serde(default)]
    pub bundled_packets: u64,
}

/// The reorder buffer of a peer. It counts fragments; in `mpt` mode a packet is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReorderBuffer {
    /// Fragments in the buffer.
    pub backlog_packets: u64,
    /// Maximum number of fragments in the buffer since the start.
    pub max_backlog_packets: u64,
    /// The current reorder timeout: the longest time that a fragment waits for an earlier one; null in `mpt` mode.
    pub timeout_ms: Option<f64>,
    /// Fragments that waited for an earlier one.
    pub reordered_packets: u64,
    /// Missing fragments whose reorder timeout expired.
    pub timeouts: u64,
    /// Fragments that arrived after their reorder timeout.
    pub late_packets: u64,
}

/// The packets of one class of flows to a peer that left the ingress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassTraffic {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Sum of their waits in the ingress queue, ms.
    #[serde(default)]
    pub total_wait_ms: f64,
}

impl ClassTraffic {
    /// The mean wait, ms.
    pub(crate) fn mean_wait_ms(&self) -> f64 {
        self.total_wait_ms / self.packets.max(1) as f64
    }
}

/// Sent traffic of the real-time class to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RealtimeStatus {
    /// Sent packets, without copies.
    #[serde(flatten)]
    pub traffic: ClassTraffic,
    /// Moves of the class from one path to another.
    pub moves: u64,
    /// Copies of packets sent on a second path.
    pub copied_packets: u64,
    /// Bytes of these copies.
    pub copied_bytes: u64,
    /// Copies that were acknowledged before their originals.
    pub first_copies: u64,
    /// Copies whose originals were acknowledged first.
    pub wasted_copies: u64,
}

/// Relayed TCP connections with a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelayStatus {
    /// Whether the peer relays, too; otherwise nothing is relayed.
    pub peer_relays: bool,
    /// Whether the kernel translates the packets of relayed connections; otherwise the daemon does.
    pub kernel_translation: bool,
    /// Current number of connections.
    pub connections: u64,
    /// Connections that clients at this end have begun.
    pub opened_connections: u64,
    /// Connections that the peer has opened, to servers at this end.
    pub accepted_connections: u64,
    /// Connections that went through the tunnel as packets because an end did not relay them.
    pub not_relayed_connections: u64,
    /// Bytes read from connections at this end.
    pub sent_bytes: u64,
    /// Bytes written to connections at this end.
    pub received_bytes: u64,
    /// Memory used by the connections' data, bytes.
    pub held_bytes: u64,
}

/// Packets dropped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropCount {
    /// The reason: words joined by `-`.
    pub reason: String,
    /// Packets or datagrams dropped.
    pub packets: u64,
}

impl PathState {
    /// The state in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl PathStatus {
    /// Removes what was measured before the path stopped working.
    pub(crate) fn forget_measurements(&mut self) {
        (self.srtt_ms, self.min_rtt_ms, self.rttvar_ms, self.probe_rtt_ms) = (None, None, None, None);
        (self.loss_ratio, self.delivery_rate_bps, self.capacity_bps) = (None, None, None);
        self.cwnd_bytes = None;
    }
}

impl PeerStatus {
    /// The display name: its name, otherwise the beginning of its public key.
    #[must_use]
    pub fn label(&self) -> &str {
        label(self.public_key.as_deref(), self.name.as_deref())
    }

    /// The warning that two hosts have the peer's private key, with the fix; `None` if no host took the session back
    /// from another one in the last five minutes.
    #[must_use]
    pub fn shared_key(&self) -> Option<(String, String)> {
        self.takeover_age_ms.filter(|age_ms| *age_ms < TAKEOVER.as_secs_f64() * 1e3)?;
        Some(shared_key(self.public_key.as_deref()?, self.name.as_deref()))
    }
}

/// The display name of a peer: its name, otherwise the beginning of its public key.
fn label<'a>(key: Option<&'a str>, name: Option<&'a str>) -> &'a str {
    name.unwrap_or_else(|| key.map_or("mpt", |key| key.get(..8).unwrap_or(key)))
}

/// The warning that two hosts have a peer's private key, with the fix.
pub(crate) fn shared_key(key: &str, name: Option<&str>) -> (String, String) {
    let label = label(Some(key), name);
    let text = format!("two hosts use the key {key} ({label}): each takes the session from the other");
    let remedy = "give each host a key of its own: `ropewalk setup server --add NAME` and the printed command there, or \
                  `ropewalk genkey`; if you have made no copy, somebody has the key: `ropewalk setup server --revoke NAME`";
    (text, remedy.to_owned())
}

impl TunnelStatus {
    /// All paths, each with its peer.
    pub fn paths(&self) -> impl Iterator<Item = (&PeerStatus, &PathStatus)> {
        self.peers.iter().flat_map(|peer| peer.paths.iter().map(move |path| (peer, path)))
    }

    /// The example status of the tests.
    ///
    /// # Panics
    /// If the JSON is not a status.
    #[doc(hidden)]
    #[must_use]
    pub fn example() -> Self {
        serde_json::from_str(include_str!("../tests/suite/expected/status.json")).expect("a status")
    }
}
