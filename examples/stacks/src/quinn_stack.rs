//! quinn-proto: what differs from noq's host.

#[expect(clippy::duplicate_mod, reason = "the same calls of two stacks whose types differ")]
#[path = "host.rs"]
mod host;

use crate::options::{Options, Role};
use bytes::{Bytes, BytesMut};
use quinn_proto as proto;
use quinn_proto::congestion::{BbrConfig, ControllerFactory};
use quinn_proto::{
    Connection, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, Event, SendStream,
    ServerConfig, TransportConfig,
};
use ropewalk_quinn::Factory;
use stack::PathStatus;
use std::sync::Arc;
use std::time::Instant;
use units::Span;

pub(crate) use host::endpoints;

const NAME: &str = "quinn";
/// quinn's own congestion controls.
const OWN_CONGESTION: &[&str] = &["cubic", "newreno", "bbr"];
/// One datagram for each transmission.
const ONE_DATAGRAM: usize = 1;

mod null {
    null_crypto!(quinn_proto, &ConnectionId, std::sync::Arc<Self>, []);

    /// The key of address-validation tokens.
    pub(super) struct NullTokens;

    impl HandshakeTokenKey for NullTokens {
        fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn crypto::AeadKey> {
            Box::new(Self)
        }
    }

    impl crypto::AeadKey for NullTokens {
        fn seal(&self, data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
            data.extend([0; TAG]);
            seal(INITIAL, data);
            Ok(())
        }

        fn open<'a>(&self, data: &'a mut [u8], _additional_data: &[u8]) -> Result<&'a mut [u8], CryptoError> {
            let length = open(INITIAL, data).ok_or(CryptoError)?;
            Ok(&mut data[..length])
        }
    }
}

/// The one path of a connection.
struct Paths;

impl Paths {
    fn new(_count: u16) -> Self {
        Self
    }

    fn on_event(&self, _event: &Event) {}

    fn open(&self, _connection: &mut Connection, _now: Instant) {}

    fn status(&self, path: u16, connection: &Connection) -> Option<PathStatus> {
        let stats = connection.stats().path;
        (path == 0).then_some(PathStatus {
            cwnd: Some(stats.cwnd),
            srtt: Some(Span(stats.rtt.as_nanos() as u64)),
            pacing_rate: None,
            lost: Some(stats.lost_packets),
        })
    }
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, true, None)
}

fn set_id_generator(
    config: &mut EndpointConfig,
    generator: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(generator);
}

fn set_paths(_config: &mut TransportConfig, _paths: u16) {}

#[expect(clippy::unnecessary_wraps, reason = "noq's may be refused")]
fn bbr(_options: &Options<'_>) -> Result<Arc<dyn ControllerFactory + Send + Sync>, String> {
    Ok(Arc::new(BbrConfig::default()))
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
    endpoint.handle(now, role.peer().address(path), None, ecn, bytes, response)
}

/// Returns how many bytes of the chunks the stream takes.
fn write(stream: &mut SendStream<'_>, chunks: &mut [Bytes]) -> u64 {
    stream.write_chunks(chunks).map_or(0, |written| written.bytes as u64)
}
