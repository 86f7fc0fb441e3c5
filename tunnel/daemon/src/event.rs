//! Events of a running tunnel, and the causes of paths that carry no data, as the journal, `show`, the JSON and the
//! socket's `GET /v1/events` report them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that happened to the tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Counts the events of a daemon from 1. A gap means that events were dropped from the bounded log.
    pub sequence: u64,
    /// When it happened: wall clock, milliseconds since the Unix epoch.
    pub unix_ms: u64,
    /// The severity.
    pub level: EventLevel,
    /// What happened.
    pub kind: EventKind,
    /// The public key of the peer concerned.
    pub peer: Option<String>,
    /// The name of that peer.
    #[serde(default)]
    pub peer_name: Option<String>,
    /// The name of the path concerned.
    pub path: Option<String>,
    /// What happened, and why: one line without the names above.
    pub message: String,
    /// The fix: a command, or a sentence.
    pub remedy: Option<String>,
}

/// The severity of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventLevel {
    /// Expected.
    #[default]
    Info,
    /// Something does not work as configured.
    Warn,
    /// Nothing works until an operator acts.
    Error,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The daemon has started to carry packets.
    #[default]
    Start,
    /// The daemon is about to end.
    Stop,
    /// The first handshake with a peer, or the first one after its session was lost.
    Handshake,
    /// Handshakes or datagrams were refused.
    HandshakeRefused,
    /// Two hosts have the private key of one peer.
    SharedKey,
    /// The first path to a peer works.
    PeerUp,
    /// No path to a peer works.
    PeerLost,
    /// Another of several servers carries the packets.
    ServerMoved,
    /// The congestion policy of a peer's paths failed, and CUBIC has taken its place.
    ControllerFailed,
    /// A path works.
    PathUp,
    /// A path stopped working.
    PathDown,
    /// A path works with much less rate, or more loss or delay, than in its last day.
    PathDegraded,
    /// A path goes down again and again.
    PathFlapping,
    /// A path that was degraded or flapping works as usual.
    PathRecovered,
    /// The cause why a path does not work was found, or has changed.
    PathCause,
    /// A path was added: by the configuration, or by a peer.
    PathAdded,
    /// A path was removed.
    PathRemoved,
    /// A path has moved to another address of the peer.
    PathMoved,
    /// The configuration was read again.
    Reload,
    /// A client has used its token, or was refused; a token has expired.
    Enrolment,
    /// An endpoint's name has another address, or none.
    Endpoint,
    /// An uplink was found.
    UplinkAdded,
    /// An uplink is gone.
    UplinkRemoved,
    /// Something on this host limits the use of the tunnel.
    Notice,
    /// A path has used most of its quota, or all of it; or a new quota period began.
    Quota,
    /// A setting of `ropewalk setup` on this host was lost, restored, or cannot be restored.
    Host,
}

/// The body of `POST /v1/events`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEvent {
    /// The severity.
    pub level: EventLevel,
    /// What happened.
    pub message: String,
    /// The fix.
    pub remedy: Option<String>,
}

impl fmt::Display for EventLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Why a path carries no data, or works badly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// The kind of cause, for programs: a label of the metrics.
    pub kind: CauseKind,
    /// The cause, one line.
    pub text: String,
    /// The fix: a command, or a sentence.
    pub remedy: String,
}

/// The kind of a [`Cause`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// The device does not exist.
    NoDevice,
    /// The device is set down.
    LinkDown,
    /// The device has no carrier.
    NoCarrier,
    /// The device has no address of the peer's family, or not the configured `source`.
    NoAddress,
    /// There is no route to the peer by this path.
    NoRoute,
    /// A firewall on this host refuses the datagrams (EPERM).
    LocalFirewall,
    /// A router or the peer's host refuses them (ICMP).
    Refused,
    /// The kernel refuses them for another reason.
    SendError,
    /// Strict reverse path filtering drops the peer's answers.
    ReversePath,
    /// This end's answers leave by a different uplink than the one on which the peer's datagrams arrive.
    ReturnRoute,
    /// The endpoint's name has no address.
    Unresolved,
    /// The peer answers on another path, but not on this one.
    SilentPath,
    /// It carries less than half of its usual rate.
    Slow,
    /// It loses many more packets than usual.
    Lossy,
    /// Its round trip without load is much longer than usual.
    Delayed,
    /// It went down several times in the last minutes.
    Flapping,
    /// The peer has never answered.
    NoHandshake,
    /// The peer has stopped answering on all paths.
    #[default]
    SilentPeer,
}

impl fmt::Display for CauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
