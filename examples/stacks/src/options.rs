//! What connections differ in: the parameters of a stack, and the addresses of the ends.

use params::{AlgorithmChoice, ParamKind, Parameter};
use stack::{OWN, Setup};
use std::net::SocketAddr;
use std::time::Duration;

/// The name of the server, to which its certificate belongs.
pub(crate) const SERVER_NAME: &str = "localhost";
/// UDP port of both ends.
const PORT: u16 = 4433;
/// Maximum number of paths of a connection: an address has a byte for each.
pub(crate) const MAX_PATHS: u16 = 255;
/// The send window by the receive window, as both stacks have it by default.
const SEND_BY_RECEIVE_WINDOW: u64 = 8;

/// The parameters of both stacks. The defaults are theirs.
pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "receive_window",
        description: "receive window of the connection and of its stream, bytes; the send buffer is eight times as large",
        kind: ParamKind::Number { default: 1_250_000.0, min: 1e4, max: 4e9 },
    },
    Parameter {
        name: "initial_rtt_s",
        description: "RTT before the first sample, s",
        kind: ParamKind::Number { default: 0.333, min: 1e-3, max: 1e7 },
    },
    Parameter {
        name: "idle_timeout_s",
        description: "time without a packet after which the connection is lost, s; 0: never",
        kind: ParamKind::Number { default: 30.0, min: 0.0, max: 1e9 },
    },
    Parameter {
        name: "tls",
        description: "`on`: TLS 1.3, whose contents differ from run to run; `off`: null keys with the same sizes",
        kind: ParamKind::Choice(&["off", "on"]),
    },
    Parameter {
        name: "unrepeatable",
        description: "`on`: allow a congestion control that draws from a seed of its own, so that no two runs are the same",
        kind: ParamKind::Choice(&["off", "on"]),
    },
];

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The end that connects and writes.
    Client,
    /// The end that reads.
    Server,
}

/// The options of an end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Options<'a> {
    pub seed: u64,
    pub paths: u16,
    /// UDP payload of a full datagram, bytes. It stays the same: there is no discovery of the path's MTU.
    pub datagram_bytes: u16,
    pub congestion: Option<&'a AlgorithmChoice>,
    pub tls: bool,
    /// Whether a congestion control may draw from a seed of its own.
    pub is_unrepeatable: bool,
    pub receive_window: u32,
    pub send_window: u64,
    pub initial_rtt: Duration,
    pub idle_timeout_ms: Option<u32>,
}

impl<'a> Options<'a> {
    pub(crate) fn new(setup: &Setup<'a>) -> Self {
        let number = |name| setup.params.number(name);
        let receive_window = number("receive_window") as u32;
        let idle_timeout_ms = number("idle_timeout_s") * 1e3;
        Self {
            seed: setup.seed,
            paths: setup.paths,
            datagram_bytes: setup.max_datagram.min(u16::MAX.into()) as u16,
            congestion: setup.congestion,
            tls: setup.params.choice("tls") == "on",
            is_unrepeatable: setup.params.choice("unrepeatable") == "on",
            receive_window,
            send_window: u64::from(receive_window) * SEND_BY_RECEIVE_WINDOW,
            initial_rtt: Duration::from_secs_f64(number("initial_rtt_s")),
            idle_timeout_ms: (idle_timeout_ms > 0.0).then_some(idle_timeout_ms as u32),
        }
    }

    /// The seed of an endpoint's random numbers.
    pub(crate) fn rng_seed(&self, role: Role) -> [u8; 32] {
        let mut bytes = [role as u8; 32];
        bytes[..8].copy_from_slice(&self.seed.to_le_bytes());
        bytes
    }

    /// The number from which an endpoint counts its connection IDs.
    pub(crate) fn first_id(&self, role: Role) -> u64 {
        self.seed.wrapping_mul(2).wrapping_add(role as u64) << 20
    }
}

/// The name of a congestion control of a stack's own, without its prefix.
pub(crate) fn own_name(congestion: &AlgorithmChoice) -> Option<&str> {
    congestion.name.strip_prefix(OWN)
}

/// The refusal of a congestion control that `stack` does not have.
pub(crate) fn unknown_congestion(stack: &str, congestion: &AlgorithmChoice, known: &[&str]) -> String {
    let known: Vec<_> = known.iter().map(|name| format!("{OWN}{name}")).collect();
    format!("{stack} has no `{}`; there are: {}", congestion.name, known.join(", "))
}

impl Role {
    pub(crate) fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The address of this end on a path.
    pub(crate) fn address(self, path: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, path as u8, 1 + self as u8], PORT))
    }
}

/// The path to which an address belongs.
pub(crate) fn path_of(address: SocketAddr) -> u16 {
    match address {
        SocketAddr::V4(address) => address.ip().octets()[2].into(),
        SocketAddr::V6(_) => 0,
    }
}

/// An eight-byte connection ID for each number; the constant spreads consecutive numbers.
pub(crate) fn connection_id(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}
