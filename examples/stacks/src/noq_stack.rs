//! noq-proto, n0's fork of quinn with multipath QUIC: what differs from quinn's host.
//!
//! Its BBR3 draws from a seed that is private: no two runs of it are the same.

#[expect(clippy::duplicate_mod, reason = "the same calls of two stacks whose types differ")]
#[path = "host.rs"]
mod host;

use crate::options::{Options, Role};
use bytes::{Bytes, BytesMut};
use noq_proto as proto;
use noq_proto::congestion::{Bbr3Config, Controller, ControllerFactory};
use noq_proto::{
    Connection, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, Event, FourTuple, PathId,
    SendStream, ServerConfig, TransportConfig,
};
use ropewalk_noq::Factory;
use stack::PathStatus;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;
use units::{Rate, Span};

pub(crate) use host::endpoints;

const NAME: &str = "noq";
/// noq's own congestion controls.
const OWN_CONGESTION: &[&str] = &["cubic", "newreno", "bbr3"];
/// One datagram for each transmission.
const ONE_DATAGRAM: NonZeroUsize = NonZeroUsize::MIN;

mod null {
    null_crypto!(noq_proto, ConnectionId, &Self, [noq_proto::PathId]);

    /// The key of address-validation tokens.
    pub(super) struct NullTokens;

    impl HandshakeTokenKey for NullTokens {
        fn seal(&self, _token_nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
            data.extend([0; TAG]);
            seal(INITIAL, data);
            Ok(())
        }

        fn open<'a>(&self, _token_nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
            let length = open(INITIAL, data).ok_or(CryptoError)?;
            Ok(&data[..length])
        }
    }
}

/// The paths of a connection.
struct Paths {
    count: u16,
    /// noq's names of the paths that are open, or being opened, in their order.
    ids: Vec<PathId>,
    /// Whether the handshake is confirmed, so that the client may open further paths.
    is_confirmed: bool,
}

impl Paths {
    fn new(count: u16) -> Self {
        Self { count, ids: vec![PathId::ZERO], is_confirmed: false }
    }

    fn on_event(&mut self, event: &Event) {
        self.is_confirmed |= matches!(event, Event::HandshakeConfirmed);
    }

    /// The client opens further paths. noq refuses until the peer has issued connection IDs for them.
    fn open(&mut self, connection: &mut Connection, now: Instant) {
        while self.is_confirmed && (self.ids.len() as u16) < self.count {
            let addresses = addresses(Role::Client, self.ids.len() as u16);
            match connection.open_path(addresses, noq_proto::PathStatus::Available, now) {
                Ok(id) => self.ids.push(id),
                Err(_) => return,
            }
        }
    }

    /// What noq tells of a path. It tells losses to the owner of a mutable connection only.
    fn status(&self, path: u16, connection: &Connection) -> Option<PathStatus> {
        let id = *self.ids.get(usize::from(path))?;
        let metrics = connection.congestion_state(id).map(Controller::metrics);
        Some(PathStatus {
            cwnd: metrics.as_ref().map(|metrics| metrics.congestion_window),
            srtt: connection.rtt(id).map(|rtt| Span(rtt.as_nanos() as u64)),
            pacing_rate: metrics.and_then(|metrics| metrics.pacing_rate).map(|bytes| Rate::from_bits(bytes * 8)),
            lost: None,
        })
    }
}

/// The addresses of a path, as its end `role` sees them.
fn addresses(role: Role, path: u16) -> FourTuple {
    FourTuple::new(role.peer().address(path), Some(role.address(path).ip()))
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, true)
}

fn set_id_generator(
    config: &mut EndpointConfig,
    generator: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(Arc::new(generator));
}

fn set_paths(config: &mut TransportConfig, paths: u16) {
    if paths > 1 {
        config.max_concurrent_multipath_paths(paths.into());
    }
}

fn bbr(options: &Options<'_>) -> Result<Arc<dyn ControllerFactory + Send + Sync>, String> {
    if !options.is_unrepeatable {
        return Err("noq's bbr3 draws from a seed that nobody can set, so that no two runs are the same; \
                    `unrepeatable = \"on\"` among the stack's parameters allows it"
            .to_owned());
    }
    Ok(Arc::new(Bbr3Config::default()))
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    role: Role,
    path: u16,
    ecn: Option<EcnCodepoint>,
    bytes: BytesMut,
    response: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, addresses(role, path), ecn, bytes, response)
}

/// Returns how many bytes of the chunks the stream takes.
fn write(stream: &mut SendStream<'_>, chunks: &mut [Bytes]) -> u64 {
    stream.write_chunks(&mut &mut chunks[..]).map_or(0, |bytes| bytes as u64)
}
